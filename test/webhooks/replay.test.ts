import { describe, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { LEASE_MS, leaseDueDeliveries } from '../../src/core/store/outbox/deliveries.ts';
import { replayDeliveries } from '../../src/faces/operator/subjects/delivery-replay.ts';
import { expediteDeliveries } from '../../src/faces/operator/subjects/webhook-sending.ts';
import { createWorldForEachTest, deliveredOutcome, failedOutcome, recordOne, world } from './fixture.ts';

createWorldForEachTest();

const FROM_THE_FIRST = { after: '00000000-0000-0000-0000-000000000000', limit: 100 };

async function leaseOne() {
  const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
  const event = await world.addEvent([endpoint]);
  const db = world.openDatabase();
  const now = unixMs(world.clock.now());
  const { deliveries } = await leaseDueDeliveries(db, { now, limit: 1, defaultRoom: 1, room: new Map() });
  const [delivery] = deliveries;
  if (delivery === undefined) return expect.fail('one is due');
  return { endpoint, event, db, now, delivery };
}

describe('an attempt that is under way is not made again', () => {
  // The command's clock may be behind the dispatcher's, whose lease then ends later than any lease of the command.
  test.each([0, 5, 30_000])('by a command whose clock is %i ms behind', async (behindMs) => {
    const { endpoint, event, db, now, delivery } = await leaseOne();
    const theirs = unixMs(now - behindMs);
    expect(await expediteDeliveries(db, endpoint.id, theirs, FROM_THE_FIRST)).toEqual([]);
    const replay = { endpointId: endpoint.id, eventIds: [event.id], now: theirs };
    expect(await replayDeliveries(db, replay)).toMatchObject([{ was: 'pending', outcome: 'due' }]);
    expect(await recordOne(db, deliveredOutcome(delivery), now)).toBe(true);
  });
});

test('what waits for a later attempt is hastened, and so is a lease that a wrong clock made', async () => {
  const { endpoint, event, db, now, delivery } = await leaseOne();
  const later = { ...failedOutcome(delivery), nextAttemptAt: unixMs(now + LEASE_MS + 5000) };
  expect(await recordOne(db, later, now)).toBe(true);
  expect(await expediteDeliveries(db, endpoint.id, now, FROM_THE_FIRST)).toEqual([event.id]);
  await leaseDueDeliveries(db, { now, limit: 1, defaultRoom: 1, room: new Map() });
  await world.sql("update deliveries set next_attempt_at = next_attempt_at + interval '10 years'");
  expect(await expediteDeliveries(db, endpoint.id, now, FROM_THE_FIRST)).toEqual([event.id]);
});

test('what was delivered since it was chosen is not sent again', async () => {
  const { endpoint, event, db, now, delivery } = await leaseOne();
  await recordOne(db, deliveredOutcome(delivery), now);
  const replay = { endpointId: endpoint.id, eventIds: [event.id], now };
  expect(await replayDeliveries(db, { ...replay, statuses: ['pending', 'dead', 'missing'] })).toEqual([]);
  expect(await world.delivery(event)).toMatchObject({ status: 'delivered' });
  expect(await replayDeliveries(db, { ...replay, statuses: ['delivered'] })).toMatchObject([{ outcome: 'replayed' }]);
});
