import { afterAll, beforeAll, expect, test } from 'vitest';
import { runModel } from './run-model.ts';
import { type ModelService, startModelService } from './world.ts';

let service: ModelService;
beforeAll(async () => {
  service = await startModelService();
});
afterAll(() => service.stop());

// `npm run test:long` runs several hundred, with other seeds.
test('whatever clients do, one by one and at once, the API does as its documentation says', async () => {
  const tally = await runModel(service, { runs: 6, commands: 25, seed: 1 });
  const kinds = [...tally.keys()].map((what) => what.split(' ')[0]);
  expect(kinds).toEqual(
    expect.arrayContaining([
      'create',
      'endpoint',
      'expire',
      'feed',
      'find',
      'list',
      'order',
      'pay',
      'rate',
      'read',
      'retire',
      'trade',
      'transfers',
      'wait',
      'walk',
    ]),
  );
});
