import fc from 'fast-check';
import type { Tally } from './command.ts';
import { commandArbitraries } from './commands.ts';
import { cloneModel } from './model.ts';
import { createWorld, type ModelService } from './world.ts';

/**
 * Runs the model several times on one service, each time with up to `commands` commands in new projects. A failure is shrunk and reported
 * with its seed.
 */
export async function runModel(
  service: ModelService,
  { runs, commands, seed }: { runs: number; commands: number; seed: number },
): Promise<Tally> {
  const tally: Tally = new Map();
  const sequences = fc.commands(commandArbitraries(tally), { maxCommands: commands, size: 'max' });
  await fc.assert(
    fc.asyncProperty(sequences, async (sequence) => {
      const world = await createWorld(service);
      await fc.asyncModelRun(() => ({ model: { model: cloneModel(world.model) }, real: world }), sequence);
    }),
    { seed, numRuns: runs },
  );
  return tally;
}
