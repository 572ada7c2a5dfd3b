import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { NIL_UUID, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { deleteFinishedDeliveries, startRetention } from '../../src/core/webhooks/retention.ts';
import { createWorldForEachTest, eventually, world } from './fixture.ts';

const DAY_MS = 86_400_000;
createWorldForEachTest();

const silent = createLogger({ level: 'silent' });
const left = async () =>
  (await world.sql('select event_id from deliveries order by event_id')).map((row) => row['event_id']);

/** Finishes an event's delivery, with one attempt in the log. */
async function finish(event: { id: string }, status: string, finishedAt: number) {
  await world.sql('update deliveries set status = $2, attempt_count = 1, finished_at = $3 where event_id = $1', [
    ...[event.id, status, new Date(finishedAt)],
  ]);
  await world.sql(
    'insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at) select event_id, endpoint_id, 1, now() from deliveries where event_id = $1',
    [event.id],
  );
}

test('finished deliveries and their attempts go after 90 days; what is pending, younger, or was replayed stays, and all events', async () => {
  const endpoints = [await world.addEndpoint('http://127.0.0.1:1/'), await world.addEndpoint('http://127.0.0.1:2/')];
  const startMs = world.clock.now();
  const add = () => world.addEvent(endpoints);
  const [delivered, dead, pending, replayed] = [await add(), await add(), await add(), await add()];
  await finish(delivered, 'delivered', startMs + 1000);
  await finish(dead, 'dead', startMs + DAY_MS / 2);
  await finish(replayed, 'delivered', startMs + 30 * DAY_MS);
  world.clock.advance(DAY_MS);
  const younger = await add();
  await finish(younger, 'delivered', world.clock.now());
  world.clock.moveTo(new Date(startMs + 90 * DAY_MS + 60_000));
  const retention = startRetention({ db: world.openDatabase(), clock: world.clock, log: silent, days: 90 });
  const kept = [pending, replayed, younger].flatMap(({ id }) => [id, id]).sort();
  // `dead` finished half a day later than `delivered`.
  await eventually(async () => expect(await left()).toEqual([...kept, dead.id, dead.id].sort()));
  await retention.stop();
  world.clock.advance(DAY_MS / 2);
  const again = startRetention({ db: world.openDatabase(), clock: world.clock, log: silent, days: 90 });
  await eventually(async () => expect(await left()).toEqual(kept));
  await again.stop();
  expect(await world.sql('select distinct event_id from delivery_attempts')).toHaveLength(2);
  expect(await world.sql('select from events')).toHaveLength(5);
});

test('batches go on behind what stays, and end', async () => {
  const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
  const events = [];
  for (let number = 0; number < 7; number++) events.push(await world.addEvent([endpoint]));
  for (const event of events.slice(3)) await finish(event, 'delivered', world.clock.now());
  const db = world.openDatabase();
  const before = unixMs(world.clock.now() + 1);
  const seen: number[] = [];
  for (let after: string | null = NIL_UUID; after !== null; ) {
    const { last, deleted } = await deleteFinishedDeliveries(db, { after, before, limit: 2 });
    seen.push(deleted);
    after = last;
  }
  expect(seen.reduce((sum, deleted) => sum + deleted)).toBe(4);
  expect(seen).toHaveLength(5);
  expect(await left()).toHaveLength(3);
});

test('the bound among the ids is the time of the event', async () => {
  const id = uuidV7(world.clock.now(), randomBytes(10));
  const bound = `lpad(to_hex($1::int8), 12, '0') || repeat('0', 20)`;
  const [row] = await world.sql(
    `select $2::uuid >= (${bound})::uuid as is_after, $2::uuid < (${bound.replace('$1', '($1 + 1)')})::uuid as is_before`,
    [...[world.clock.now(), id]],
  );
  expect(row).toEqual({ is_after: true, is_before: true });
});
