import { expect, test } from 'vitest';
import { createWorldForEachTest, eventually, startReceiver, world } from './fixture.ts';

createWorldForEachTest();

const times = (count: number) => Array.from({ length: count });
/** According to the database; the metrics are updated a moment later. */
const attemptsMade = async () => (await world.sql('select from delivery_attempts')).length;
const pending = async () => (await world.sql("select from deliveries where status = 'pending'")).length;

test('after five failures in a row an endpoint is left alone, then probed by one attempt at a time, and nothing of the others is used up', async () => {
  let status = 500;
  const receiver = await startReceiver(world, (response) => response.writeHead(status).end());
  const endpoint = await world.addEndpoint(receiver.url);
  for (const _ of times(40)) await world.addEvent([endpoint]);
  world.startDispatcher({ perEndpoint: 8 });
  // A few are in progress together when the first one fails.
  await eventually(async () => expect(await world.endpoint(endpoint)).toMatchObject({ consecutive_failures: 5 }));
  await world.untilNothingIsUnderWay();
  const burst = await attemptsMade();
  expect(burst).toBeLessThanOrEqual(8 + 4);
  for (const pauseMs of [750, 750, 750]) {
    const until = new Date(world.clock.now() + pauseMs);
    expect(await world.endpoint(endpoint)).toMatchObject({ open_until: until });
    const before = await attemptsMade();
    world.clock.moveTo(until);
    await eventually(async () => expect(await attemptsMade()).toBe(before + 1));
    await world.untilNothingIsUnderWay();
  }
  expect(await world.endpoint(endpoint)).toMatchObject({ consecutive_failures: 8 });
  expect(await world.sql('select sum(attempt_count)::int as made from deliveries')).toEqual([{ made: burst + 3 }]);

  status = 204;
  await world.liveOnUntil(async () => (await pending()) === 0);
  expect(await world.endpoint(endpoint)).toMatchObject({
    consecutive_failures: 0,
    open_until: null,
    failing_since: null,
  });
});

test('an endpoint that a wrong clock closed for years, or a former release left half recovered, is attempted', async () => {
  const receiver = await startReceiver(world);
  const endpoint = await world.addEndpoint(receiver.url);
  const at = [new Date(world.clock.now() - 1000), new Date(world.clock.now() + 10 * 365 * 86_400_000)];
  await world.sql('update webhook_endpoints set failing_since = $1, consecutive_failures = 9, open_until = $2', at);
  const first = await world.addEvent([endpoint]);
  world.startDispatcher();
  await eventually(async () => expect(await world.delivery(first)).toMatchObject({ status: 'delivered' }));

  await world.sql('update webhook_endpoints set failing_since = null, consecutive_failures = 9, open_until = null');
  await world.addBacklog([endpoint], 20, 1);
  await world.sql('notify quittance_deliveries');
  await eventually(async () => expect(await pending()).toBe(0));
  expect(await world.endpoint(endpoint)).toMatchObject({ consecutive_failures: 0, open_until: null });
});

test('two dispatchers do not probe an endpoint at the same time', async () => {
  const receiver = await startReceiver(world, () => undefined);
  const endpoint = await world.addEndpoint(receiver.url);
  for (const _ of times(6)) await world.addEvent([endpoint]);
  await world.sql('update webhook_endpoints set failing_since = $1, consecutive_failures = 9, open_until = $1', [
    new Date(world.clock.now()),
  ]);
  world.startDispatcher();
  await eventually(() => expect(receiver.received).toHaveLength(1));
  world.startDispatcher();
  const other = await startReceiver(world);
  const event = await world.addEvent([await world.addEndpoint(other.url)]);
  await eventually(async () => expect(await world.delivery(event)).toMatchObject({ status: 'delivered' }));
  expect(receiver.received).toHaveLength(1);
  expect(await attemptsMade()).toBe(1);
});
