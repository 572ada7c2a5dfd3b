import { expect, test } from 'vitest';
import { deliverBacklog } from '../webhooks/backlog-flow.ts';
import { createWorld } from '../webhooks/fixture.ts';

test('100,000 due events arrive each once and in order from two dispatchers, beside as many at an endpoint that fails', async () => {
  const world = await createWorld();
  try {
    await deliverBacklog(world, 100_000);
    expect(await world.sql("select from deliveries where status = 'dead'")).toEqual([]);
  } finally {
    await world.end();
  }
});
