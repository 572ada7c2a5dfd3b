import { afterEach, beforeEach, expect, test } from 'vitest';
import { unixMs } from '../../src/domain/time.ts';
import {
  LEASE_MS,
  leaseDueDeliveries,
  recordDelivered,
  recordFailure,
  returnDelivery,
} from '../../src/store/deliveries.ts';
import { createWorld, type World } from './fixture.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.end());

const now = () => unixMs(world.clock.now());
const logOf = (event: { id: string }) =>
  world.sql('select attempt, attempted_at, status, error from delivery_attempts where event_id = $1 order by attempt', [
    event.id,
  ]);

async function addLeasable() {
  const db = world.openDatabase();
  const event = await world.addEvent([await world.addEndpoint('http://127.0.0.1:1/')]);
  const lease = async () => {
    const options = { now: now(), limit: 1, perEndpoint: 1, inFlight: new Map<string, number>() };
    const [leased] = await leaseDueDeliveries(db, options);
    return leased ?? expect.fail('nothing was leased');
  };
  return { db, event, lease };
}

test('the log has each attempt that counted, with when it began and what came of it', async () => {
  const { db, event, lease } = await addLeasable();
  const [first, second, third] = [new Date(now()), new Date(now() + 5000), new Date(now() + 10_000)];
  const failure = { nextAttemptAt: unixMs(now() + 5000), status: 500, error: 'http_500: no', disableReason: null };
  const leased = await lease();
  world.clock.advance(300);
  await recordFailure(db, leased, { ...failure, now: now() });
  world.clock.moveTo(second);
  const timeout = { nextAttemptAt: unixMs(third.getTime()), status: null, error: 'timeout: no answer' };
  await recordFailure(db, await lease(), { ...failure, ...timeout, now: now() });
  world.clock.moveTo(third);
  await recordDelivered(db, await lease(), { now: now(), status: 204 });
  expect(await logOf(event)).toEqual([
    { attempt: 1, attempted_at: first, status: 500, error: 'http_500: no' },
    { attempt: 2, attempted_at: second, status: null, error: 'timeout: no answer' },
    { attempt: 3, attempted_at: third, status: 204, error: null },
  ]);
});

test('the attempt after which a delivery is dead is logged too', async () => {
  const { db, event, lease } = await addLeasable();
  const failure = { now: now(), nextAttemptAt: null, status: 503, error: 'http_503: no', disableReason: null };
  await recordFailure(db, await lease(), failure);
  expect(await logOf(event)).toMatchObject([{ attempt: 1, status: 503 }]);
});

test('what was given back, and what a sender records whose lease has run out, is not logged', async () => {
  const { db, event, lease } = await addLeasable();
  await returnDelivery(db, await lease(), now());
  world.clock.advance(1);
  const late = await lease();
  world.clock.advance(LEASE_MS);
  const present = await lease();
  expect(await recordDelivered(db, late, { now: now(), status: 200 })).toBe(false);
  expect(await logOf(event)).toEqual([]);
  await recordDelivered(db, present, { now: now(), status: 204 });
  expect(await logOf(event)).toMatchObject([{ attempt: 2, status: 204 }]);
});

test('an attempt that is made anew under a number that was used is recorded', async () => {
  const { db, event, lease } = await addLeasable();
  const failure = { now: now(), nextAttemptAt: null, status: 500, error: 'http_500: no', disableReason: null };
  await recordFailure(db, await lease(), failure);
  await world.sql(
    "update deliveries set status = 'pending', attempt_count = 0, finished_at = null, next_attempt_at = $1",
    [new Date(now())],
  );
  expect(await recordDelivered(db, await lease(), { now: now(), status: 204 })).toBe(true);
  expect(await logOf(event)).toMatchObject([{ attempt: 1, status: 204, error: null }]);
});
