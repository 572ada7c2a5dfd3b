import { afterAll, beforeAll, expect, test } from 'vitest';
import { runModel } from '../model/run-model.ts';
import { type ModelService, startModelService } from '../model/world.ts';

/** Of up to 60 commands each. */
const RUNS = Number(process.env['QUITTANCE_MODEL_RUNS'] ?? 200);
const SEED = Number(process.env['QUITTANCE_MODEL_SEED'] ?? Date.now() % 1_000_000_000);

let service: ModelService;
beforeAll(async () => {
  service = await startModelService();
});
afterAll(() => service.stop());

test('whatever clients do for long, the API does as its documentation says', async () => {
  const startedMs = performance.now();
  const tally = await runModel(service, { runs: RUNS, commands: 60, seed: SEED });
  const figures = [...tally].sort(([a], [b]) => a.localeCompare(b));
  const total = figures.reduce((sum, [, count]) => sum + count, 0);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  process.stdout.write(
    `model seed ${SEED}: ${RUNS} runs, ${total} operations, ${seconds} s\n${figures.map(([what, count]) => `${what}: ${count}`).join(', ')}\n`,
  );
  expect(total).toBeGreaterThan(RUNS);
}, 3_600_000);
