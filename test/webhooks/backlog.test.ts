import { describe, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { LEASE_MS, leaseDueDeliveries } from '../../src/core/store/outbox/deliveries.ts';
import { longTest } from '../support/some-cases.ts';
import { deliverBacklog } from './backlog-flow.ts';
import { createWorldForEachTest, world } from './fixture.ts';

createWorldForEachTest();

// test/long has the same test with 100,000.
longTest(
  '4,000 due events arrive each once and in order from two dispatchers, beside as many at an endpoint that fails',
  async () => {
    await deliverBacklog(world, 4000);
  },
);

/** Leases until nothing is left and nothing was postponed. Returns the ids of the leased deliveries, and the number of rounds. */
async function leaseAll(limit = 100): Promise<{ leased: string[]; rounds: number }> {
  const db = world.openDatabase();
  const leased: string[] = [];
  for (let rounds = 1; rounds < 500; rounds++) {
    const now = unixMs(world.clock.now());
    const round = await leaseDueDeliveries(db, { now, limit, defaultRoom: 10, room: new Map() });
    leased.push(...round.deliveries.map(({ eventId }) => eventId));
    if (round.deliveries.length === 0 && !round.isMore) return { leased, rounds };
  }
  return expect.fail('it goes on for ever');
}

test('what waits for an earlier event is put off with it, so that it is not looked at in vain again', async () => {
  const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
  await world.addBacklog([endpoint], 1000, 2);
  const retryAt = new Date(world.clock.now() + 600_000);
  await world.sql('update deliveries set attempt_count = 1, next_attempt_at = $1 where sequence = 1', [retryAt]);
  await world.sql(
    'insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at) select event_id, endpoint_id, 1, now() from deliveries where sequence = 1',
  );
  const free = await world.addEvent([endpoint]);
  const { leased, rounds } = await leaseAll();
  expect(leased).toEqual([free.id]);
  // A round sees about eighty of one endpoint.
  expect(rounds).toBeLessThan(16);
  expect(await world.sql('select distinct next_attempt_at from deliveries where event_id <> $1', [free.id])).toEqual([
    { next_attempt_at: retryAt },
  ]);
});

describe('later events that are due before the earlier ones of their invoices do not block the endpoint', () => {
  const INVOICES = 500;
  const firstOnes = async () =>
    (await world.sql('select event_id from deliveries where sequence = 1')).map((row) => row['event_id']);

  test('after an outage, when the earlier ones were retried since', async () => {
    const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
    await world.addBacklog([endpoint], INVOICES, 2);
    await world.sql("update deliveries set next_attempt_at = next_attempt_at + interval '15 min' where sequence = 1");
    await world.sql('update webhook_endpoints set failing_since = now(), consecutive_failures = 40');
    world.clock.advance(20 * 60_000);
    const { leased } = await leaseAll();
    // A failing endpoint gets a single probe, and nothing else until its result is recorded.
    expect(leased).toHaveLength(1);
    await world.sql('update webhook_endpoints set failing_since = null, consecutive_failures = 0, open_until = null');
    expect([...leased, ...(await leaseAll()).leased].sort()).toEqual((await firstOnes()).sort());
  });

  test('after a crash, when the leases of many earlier ones have run out', async () => {
    const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
    await world.addBacklog([endpoint], INVOICES, 2);
    const lost = (await leaseAll()).leased;
    expect(lost).toHaveLength(INVOICES);
    world.clock.advance(LEASE_MS + 1);
    expect((await leaseAll()).leased.sort()).toEqual(lost.sort());
  });
});
