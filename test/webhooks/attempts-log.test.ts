import { expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { LEASE_MS, leaseDueDeliveries, returnDeliveries } from '../../src/core/store/outbox/deliveries.ts';
import { createWorldForEachTest, deliveredOutcome, failedOutcome, recordOne, world } from './fixture.ts';

createWorldForEachTest();

const now = () => unixMs(world.clock.now());
const logOf = (event: { id: string }) =>
  world.sql(
    'select attempt, attempted_at, latency_ms, status, error, answer from delivery_attempts where event_id = $1 order by attempt',
    [event.id],
  );

async function addLeasable() {
  const db = world.openDatabase();
  const event = await world.addEvent([await world.addEndpoint('http://127.0.0.1:1/')]);
  const lease = async () => {
    const { deliveries } = await leaseDueDeliveries(db, { now: now(), limit: 1, defaultRoom: 1, room: new Map() });
    return deliveries[0] ?? expect.fail('nothing was leased');
  };
  return { db, event, lease };
}

test('the log has each attempt that counted, with when it began, how long it took, what came of it and what was answered', async () => {
  const { db, event, lease } = await addLeasable();
  const [first, second, third] = [new Date(now()), new Date(now() + 5000), new Date(now() + 10_000)];
  const leased = await lease();
  const begun = { startedAt: now(), latencyMs: 290 };
  world.clock.advance(300);
  const refused = {
    ...begun,
    status: 500,
    error: 'http_500: no',
    answer: 'it "broke"\n\\',
    nextAttemptAt: unixMs(second.getTime()),
  };
  expect(await recordOne(db, { ...failedOutcome(leased), ...refused }, now())).toBe(true);
  world.clock.moveTo(second);
  const timeout = {
    startedAt: now(),
    status: null,
    error: 'timeout: no response',
    nextAttemptAt: unixMs(third.getTime()),
  };
  await recordOne(db, { ...failedOutcome(await lease()), ...timeout }, now());
  world.clock.moveTo(third);
  await recordOne(db, { ...deliveredOutcome(await lease()), startedAt: now() }, now());
  expect(await logOf(event)).toEqual([
    { attempt: 1, attempted_at: first, latency_ms: 290, status: 500, error: 'http_500: no', answer: 'it "broke"\n\\' },
    { attempt: 2, attempted_at: second, latency_ms: 1, status: null, error: 'timeout: no response', answer: null },
    { attempt: 3, attempted_at: third, latency_ms: 1, status: 204, error: null, answer: '' },
  ]);
});

test('the attempt after which a delivery is dead is logged too', async () => {
  const { db, event, lease } = await addLeasable();
  await recordOne(db, { ...failedOutcome(await lease()), status: 503, nextAttemptAt: null }, now());
  expect(await logOf(event)).toMatchObject([{ attempt: 1, status: 503 }]);
  expect(await world.delivery(event)).toMatchObject({ status: 'dead', finished_at: new Date(now()) });
});

test('what was given back, and what a sender records whose lease has run out, is not logged', async () => {
  const { db, event, lease } = await addLeasable();
  expect(await returnDeliveries(db, [await lease()], now())).toBe(1);
  const late = await lease();
  world.clock.advance(LEASE_MS);
  const present = await lease();
  expect(await recordOne(db, deliveredOutcome(late), now())).toBe(false);
  expect(await logOf(event)).toEqual([]);
  await recordOne(db, deliveredOutcome(present), now());
  expect(await logOf(event)).toMatchObject([{ attempt: 2, status: 204 }]);
});

test('an attempt that is made anew under a number that was used is recorded', async () => {
  const { db, event, lease } = await addLeasable();
  await recordOne(db, failedOutcome(await lease()), now());
  await world.sql(
    "update deliveries set status = 'pending', attempt_count = 0, finished_at = null, next_attempt_at = $1",
    [new Date(now())],
  );
  expect(await recordOne(db, deliveredOutcome(await lease()), now())).toBe(true);
  expect(await logOf(event)).toMatchObject([{ attempt: 1, status: 204, error: null }]);
});
