import { expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { schedulePosition } from '../../src/core/domain/retry.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger, createTally } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import {
  bringDeliveriesForward,
  leaseDueDeliveries,
  returnDeliveries,
} from '../../src/core/store/outbox/deliveries.ts';
import { createExpediter, recordAttempts } from '../../src/core/webhooks/record-attempts.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { readDeliveries } from '../../src/faces/operator/explain/facts.ts';
import { describeEvent } from '../../src/faces/operator/explain/timeline.ts';
import { enableEndpoint } from '../../src/faces/operator/subjects/webhook-sending.ts';
import {
  createWorldForEachTest,
  deliveredOutcome,
  eventually,
  failedOutcome,
  recordOne,
  startReceiver,
  world,
} from './fixture.ts';

createWorldForEachTest();

const now = () => unixMs(world.clock.now());
const leaseAll = async (db = world.openDatabase()) =>
  (await leaseDueDeliveries(db, { now: now(), limit: 100, defaultRoom: 100, room: new Map() })).deliveries;
const log = createLogger({ level: 'fatal', destination: { write: () => undefined } });

test('a receiver that refuses ever more events while it takes others gets each of them once more at a return, and then by its schedule', async () => {
  let isRefusing = false;
  const refuses = new Map<string, boolean>();
  const { url, received } = await startReceiver(world, (response, { id }) => {
    if (!refuses.has(id)) refuses.set(id, isRefusing);
    response.writeHead(refuses.get(id) === true ? 500 : 204).end();
  });
  const endpoint = await world.addEndpoint(url);
  world.startDispatcher();
  for (let index = 0; index < 48; index++) {
    isRefusing = index % 2 === 0;
    world.clock.advance(600);
    const event = await world.addEvent([endpoint]);
    await eventually(() => expect(refuses.has(event.wireId)).toBe(true));
    await world.untilNothingIsUnderWay();
  }
  const counts = [...refuses].map(([id]) => received.filter((one) => one.id === id).length);
  // In 29 s: at once, after 5 s, and after a recovery.
  expect(counts.filter((count) => count > 3)).toEqual([]);
});

test('a delivery that is hastened again and again without an attempt is left no more than its schedule', async () => {
  const db = world.openDatabase();
  const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
  const event = await world.addEvent([endpoint]);
  for (const delivery of await leaseAll(db)) await recordOne(db, failedOutcome(delivery), now());
  for (let index = 0; index < 20; index++) {
    const asked = [{ target: endpoint.id, isBack: true, returnedAt: null }];
    expect(await bringDeliveriesForward(db, asked, now())).toMatchObject([{ eventId: event.id }]);
    // As if its secret couldn't be decrypted.
    expect(await returnDeliveries(db, await leaseAll(db), unixMs(now() + 10_000))).toBe(1);
  }
  const { attempt_count: attempts, max_attempts: most } = await world.delivery(event);
  expect([attempts, most]).toEqual([1, 13]);
  expect(schedulePosition(Number(attempts) + 1, Number(most))).toBe(1);
});

test('an endpoint that fails and takes another before either is recorded gets at once what it failed at', async () => {
  const db = world.openDatabase();
  const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
  const [dropped] = [await world.addEvent([endpoint]), await world.addEvent([endpoint])];
  const outcomes = (await leaseAll(db)).map((delivery) =>
    delivery.eventId === dropped.id ? failedOutcome(delivery) : deliveredOutcome(delivery),
  );
  outcomes.sort((a, b) => b.kind.localeCompare(a.kind));
  const expediter = createExpediter({ db, clock: world.clock, log });
  await recordAttempts(
    { db, log, metrics: createMetrics(), outages: createTally(Date.now), expediter },
    outcomes,
    now(),
  );
  expect(expediter.restMs()).toBe(0);
  expect(await expediter.round()).toBe(true);
  expect(await leaseAll(db)).toMatchObject([{ eventId: dropped.id, attempt: 2, maxAttempts: 13 }]);
});

test('a late success at the previous URL neither clears the failures of the new URL nor sends anything to it', async () => {
  const db = world.openDatabase();
  const endpoint = await world.addEndpoint('http://127.0.0.1:1/old');
  const [late] = [await world.addEvent([endpoint]), await world.addEvent([endpoint])];
  const leased = await leaseAll(db);
  await world.sql(
    `update webhook_endpoints set url = 'http://127.0.0.1:1/new', failing_since = $1, consecutive_failures = 3, open_until = $1`,
    [new Date(now())],
  );
  const outcomes = leased.map((delivery) =>
    delivery.eventId === late.id
      ? deliveredOutcome(delivery)
      : failedOutcome({ ...delivery, url: 'http://127.0.0.1:1/new' }),
  );
  outcomes.sort((a, b) => b.kind.localeCompare(a.kind));
  const expediter = createExpediter({ db, clock: world.clock, log });
  const deps = { db, log, metrics: createMetrics(), outages: createTally(Date.now), expediter };
  await recordAttempts(deps, outcomes, now());
  expect(await world.delivery(late)).toMatchObject({ status: 'delivered' });
  expect(await world.endpoint(endpoint)).toMatchObject({ failing_since: new Date(now()), consecutive_failures: 4 });
  expect(expediter.restMs()).toBeGreaterThan(0);
});

test('deliveries that were tried 240 times are two entries each: the last attempt with those before it, and what is next', async () => {
  const endpoints = [];
  for (let index = 0; index < 6; index++) endpoints.push(await world.addEndpoint('http://127.0.0.1:1/'));
  const { id } = await world.addEvent(endpoints);
  await world.sql(`update deliveries set attempt_count = 240, max_attempts = 240, last_error = 'http_500: no'`);
  await world.sql(
    `insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at, status, error)
     select event_id, endpoint_id, n, created_at + interval '1 minute' * n, 500, 'http_500: no' from deliveries, generate_series(1, 240) n`,
  );
  const event = { id, type: 'ping', sequence: 1, transferId: null, createdAt: now(), body: '{}' } as const;
  const { events } = await readDeliveries(world.openDatabase(), [event]);
  const entries = events.flatMap(describeEvent);
  const texts = entries.map(({ text }) => text);
  expect(texts).toHaveLength(1 + 6 * 2);
  expect(entries.flatMap(({ details }) => details)).toHaveLength(6 * 10);
  const last = '240 of ping to http://127.0.0.1:1/: http_500: no; the 59 attempts before it also failed';
  expect(texts.filter((text) => text === last)).toHaveLength(6);
  expect(texts.filter((text) => text.endsWith('attempt 241 is due'))).toHaveLength(6);
});

test('what was hastened waits while its endpoint is disabled, and is tried when that is enabled', async () => {
  const db = world.openDatabase();
  let isGone = true;
  const { url, received } = await startReceiver(world, (response) => response.writeHead(isGone ? 410 : 204).end());
  const endpoint = await world.addEndpoint(url);
  const event = await world.addEvent([endpoint]);
  for (const delivery of await leaseAll(db)) await recordOne(db, failedOutcome(delivery), now());
  await world.sql('update webhook_endpoints set failing_since = $1', [new Date(now())]);
  world.startDispatcher();
  await eventually(async () => {
    world.clock.advance(10);
    expect((await world.endpoint(endpoint))['disabled_at']).not.toBeNull();
  });
  await world.untilNothingIsUnderWay();
  world.clock.advance(4 * 3_600_000);
  const asked = [{ target: endpoint.id, isBack: true, returnedAt: null }];
  expect(await bringDeliveriesForward(db, asked, now())).toEqual([]);
  isGone = false;
  await enableEndpoint.run({ db, now }, commandActor('test'), { endpointId: encodeId('whe', endpoint.id) });
  await eventually(async () => expect(await world.delivery(event)).toMatchObject({ status: 'delivered' }));
  expect(received).toHaveLength(2);
});

test('an outage of an endpoint is one line a minute, with how often it failed, and each endpoint has its own', async () => {
  const db = world.openDatabase();
  const endpoints = [await world.addEndpoint('http://127.0.0.1:1/'), await world.addEndpoint('http://127.0.0.1:2/')];
  for (const endpoint of endpoints) await world.addBacklog([endpoint], 25, 1);
  const lines: Record<string, unknown>[] = [];
  const noting = createLogger({ level: 'info', destination: { write: (line) => lines.push(JSON.parse(line)) } });
  let ms = 0;
  const expediter = createExpediter({ db, clock: world.clock, log });
  const deps = { db, log: noting, metrics: createMetrics(), outages: createTally(() => ms), expediter };
  const failed = (await leaseAll(db)).map((delivery) => failedOutcome(delivery));
  const lasts = endpoints.flatMap(({ id }) => failed.findLast(({ delivery }) => delivery.endpointId === id) ?? []);
  const before = failed.filter((outcome) => !lasts.includes(outcome));
  expect([lasts.length, before.length > 10]).toEqual([2, true]);
  await recordAttempts(deps, before, now());
  expect(lines.map(({ failures }) => failures)).toEqual([1, 1]);
  ms = 60_000;
  await recordAttempts(deps, lasts, now());
  // Includes those that weren't logged.
  expect(lines.slice(2).reduce((sum, { failures }) => sum + Number(failures), 0)).toBe(failed.length - 2);
  expect(lines).toHaveLength(4);
});
