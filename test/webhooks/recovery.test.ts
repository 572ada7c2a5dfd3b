import { describe, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { LEASE_MS, leaseDueDeliveries, returnDeliveries } from '../../src/core/store/outbox/deliveries.ts';
import { createExpediter, createOutcomeQueue } from '../../src/core/webhooks/record-attempts.ts';
import {
  attemptsMade,
  createWorldForEachTest,
  deliveredOutcome,
  eventually,
  failedOutcome,
  recorded,
  recordOne,
  startReceiver,
  type World,
  world,
} from './fixture.ts';

const HOUR_MS = 3_600_000;
createWorldForEachTest();

const END_BACKEND = unlistedStatement(
  'end-backend',
  { ended: 'bool' },
  'select pg_terminate_backend(pg_backend_pid()) as ended',
);
const now = () => unixMs(world.clock.now());
const times = (count: number) => Array.from({ length: count });
const leaseAll = async (db: ReturnType<World['openDatabase']>) =>
  (await leaseDueDeliveries(db, { now: now(), limit: 100, defaultRoom: 100, room: new Map() })).deliveries;

describe('a sender that crashes between the send and its record', () => {
  test('is replaced when its lease runs out, with the same id and bytes', async () => {
    const receiver = await startReceiver(world);
    const event = await world.addEvent([await world.addEndpoint(receiver.url)]);
    const [crashed] = await leaseAll(world.openDatabase());
    expect(crashed).toMatchObject({ eventId: event.id, attempt: 1, body: event.body });

    const { metrics } = world.startDispatcher();
    const other = await world.addEvent([await world.addEndpoint(receiver.url)]);
    await recorded(metrics, 1);
    expect(receiver.received.map(({ id }) => id)).toEqual([other.wireId]);

    world.clock.advance(LEASE_MS);
    await recorded(metrics, 2);
    expect(receiver.received[1]).toMatchObject({ id: event.wireId, body: Buffer.from(event.body) });
    expect(await world.delivery(event)).toMatchObject({ status: 'delivered', attempt_count: 2 });
  });

  test('writes nothing when it comes back too late', async () => {
    const db = world.openDatabase();
    const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
    const event = await world.addEvent([endpoint]);
    const [late] = await leaseAll(db);
    world.clock.advance(LEASE_MS);
    const [present] = await leaseAll(db);
    if (late === undefined || present === undefined) return expect.fail('nothing was leased');
    expect(present.attempt).toBe(2);
    const before = await world.delivery(event);
    expect(await recordOne(db, deliveredOutcome(late), now())).toBe(false);
    expect(await recordOne(db, { ...failedOutcome(late), nextAttemptAt: null }, now())).toBe(false);
    expect(await returnDeliveries(db, [late], now())).toBe(0);
    expect(await world.delivery(event)).toEqual(before);
    expect(await world.endpoint(endpoint)).toMatchObject({ failing_since: null, disabled_at: null });
    expect(await recordOne(db, deliveredOutcome({ ...present, attempt: 1 }), now())).toBe(false);
    expect(await recordOne(db, deliveredOutcome(present), now())).toBe(true);
    expect(await recordOne(db, deliveredOutcome(present), now())).toBe(false);
  });

  test('does not regain a lease because a later one was given back', async () => {
    const db = world.openDatabase();
    const event = await world.addEvent([await world.addEndpoint('http://127.0.0.1:1/')]);
    const [late] = await leaseAll(db);
    world.clock.advance(LEASE_MS);
    const [second] = await leaseAll(db);
    if (late === undefined || second === undefined) return expect.fail('nothing was leased');
    expect(await returnDeliveries(db, [second], now())).toBe(1);
    expect(await world.delivery(event)).toMatchObject({ attempt_count: late.attempt });
    expect(await recordOne(db, deliveredOutcome(late), now())).toBe(false);
  });
});

test('an event that is given back is not passed by the next one of its invoice, however old both are', async () => {
  const db = world.openDatabase();
  const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
  const invoice = await world.addInvoice();
  const first = await world.addEvent([endpoint], { id: invoice, sequence: 1 });
  await world.addEvent([endpoint], { id: invoice, sequence: 2 });
  world.clock.advance(2 * HOUR_MS);
  const leased = await leaseAll(db);
  expect(leased.map(({ eventId }) => eventId)).toEqual([first.id]);
  const deps = { db, clock: world.clock, log: createLogger({ level: 'fatal' }), metrics: createMetrics() };
  const outcomes = createOutcomeQueue({ ...deps, expediter: createExpediter(deps) });
  outcomes.giveBack(leased);
  await outcomes.flush();
  expect((await leaseAll(db)).map(({ eventId }) => eventId)).toEqual([first.id]);
});

describe('senders side by side', () => {
  test('share the work, and each event is sent once', async () => {
    let answer: () => void = () => undefined;
    const mayAnswer = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const receiver = await startReceiver(world, async (response) => {
      await mayAnswer;
      response.writeHead(204).end();
    });
    const endpoints = [];
    for (const _ of times(5)) endpoints.push(await world.addEndpoint(receiver.url));
    for (const _ of times(40)) await world.addEvent(endpoints);
    const dispatchers = [world.startDispatcher(), world.startDispatcher()];
    // More than one of them leases at once.
    await eventually(async () =>
      expect(await world.sql('select count(*)::int from deliveries where attempt_count = 1')).toEqual([{ count: 200 }]),
    );
    answer();
    await eventually(async () => {
      expect(await world.sql(`select count(*)::int from deliveries where status <> 'delivered'`)).toEqual([
        { count: 0 },
      ]);
    });
    expect(receiver.received).toHaveLength(200);
    for (const { metrics } of dispatchers) {
      await eventually(async () => expect(await attemptsMade(metrics)).toBeGreaterThan(0));
    }
    expect(await world.sql('select max(attempt_count) from deliveries')).toEqual([{ max: 1 }]);
  });

  test('that lease at the same moment never get the same delivery', async () => {
    const endpoints = [];
    for (const _ of times(4)) endpoints.push(await world.addEndpoint('http://127.0.0.1:1/'));
    for (const _ of times(25)) await world.addEvent(endpoints);
    const databases = times(6).map(() => world.openDatabase());
    const leased = (await Promise.all(databases.map((db) => leaseAll(db)))).flat();
    const keys = leased.map(({ eventId, endpointId }) => `${eventId} ${endpointId}`);
    expect(new Set(keys).size).toBe(keys.length);
    const rest = await leaseAll(world.openDatabase());
    expect(keys.length + rest.length).toBe(100);
  });
});

test('a delivery that someone holds locked does not hold up the others', async () => {
  const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
  const [locked, free] = [await world.addEvent([endpoint]), await world.addEvent([endpoint])];
  await world.sql('begin');
  await world.sql('select from deliveries where event_id = $1 for update', [locked.id]);
  const leased = await leaseAll(world.openDatabase());
  await world.sql('rollback');
  expect(leased.map(({ eventId }) => eventId)).toEqual([free.id]);
});

describe('a database that fails', () => {
  test('and drops every connection delays deliveries and loses none', async () => {
    const receiver = await startReceiver(world);
    const endpoint = await world.addEndpoint(receiver.url);
    world.startDispatcher();
    const events = [];
    for (const _ of times(10)) {
      events.push(await world.addEvent([endpoint]));
      await world.sql(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      );
    }
    for (const event of events) {
      await eventually(async () => {
        // A lease whose answer was lost has to expire.
        world.clock.advance(LEASE_MS / 100);
        expect(await world.delivery(event)).toMatchObject({ status: 'delivered' });
      });
    }
  });

  test('and answers with errors is asked again, with pauses, until it works', async () => {
    const receiver = await startReceiver(world);
    const endpoint = await world.addEndpoint(receiver.url);
    await world.sql('alter table webhook_endpoints rename to webhook_endpoints_away');
    const { lines } = world.startDispatcher();
    await eventually(() => expect(lines.join('')).toContain('could not be leased'));
    await world.sql('alter table webhook_endpoints_away rename to webhook_endpoints');
    await world.addEvent([endpoint]);
    await eventually(() => expect(receiver.received).toHaveLength(1));
    await eventually(() => expect(lines.join('')).toContain('webhooks can be leased again'));
  });

  test('and drops the connection while a failure is recorded keeps nobody from knowing that the endpoint fails', async () => {
    const db = world.openDatabase();
    const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
    const event = await world.addEvent([endpoint]);
    const [delivery] = await leaseAll(db);
    if (delivery === undefined) return expect.fail('nothing was leased');
    let drops = 1;
    const transaction: typeof db.transaction = (work) =>
      db.transaction(async (tx) => {
        const result = await work(tx);
        if (drops-- > 0) await tx.run(END_BACKEND, []);
        return result;
      });
    const log = createLogger({ level: 'fatal', destination: { write: () => undefined } });
    const expediter = createExpediter({ db, clock: world.clock, log });
    const deps = { db: { ...db, transaction }, clock: world.clock, log, metrics: createMetrics(), expediter };
    const queue = createOutcomeQueue(deps);
    queue.add(failedOutcome(delivery));
    await expect(queue.flush()).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    expect(await world.delivery(event)).toMatchObject({ attempt_count: 1, last_status: null });
    await queue.flush();
    expect(await world.delivery(event)).toMatchObject({ attempt_count: 1, last_status: 500 });
    expect(await world.endpoint(endpoint)).toMatchObject({ consecutive_failures: 1, failing_since: expect.any(Date) });
  });

  test('between the send and its record does not make a delivered webhook go out again', async () => {
    const receiver = await startReceiver(world, async (response) => {
      await world.sql('alter table deliveries rename to deliveries_away');
      response.writeHead(204).end();
    });
    const event = await world.addEvent([await world.addEndpoint(receiver.url)]);
    const { lines } = world.startDispatcher();
    await eventually(() => expect(lines.join('')).toContain('could not be recorded'));
    await world.sql('alter table deliveries_away rename to deliveries');
    await eventually(async () =>
      expect(await world.delivery(event)).toMatchObject({ status: 'delivered', attempt_count: 1 }),
    );
    expect(receiver.received).toHaveLength(1);
  });
});

describe('stopping', () => {
  test('lets an attempt in flight end and records it', async () => {
    let finish = () => {};
    const receiver = await startReceiver(world, (response) => {
      finish = () => response.writeHead(204).end();
    });
    const event = await world.addEvent([await world.addEndpoint(receiver.url)]);
    const { stop } = world.startDispatcher();
    await eventually(() => expect(receiver.received).toHaveLength(1));
    const stopped = stop();
    finish();
    await stopped;
    expect(await world.delivery(event)).toMatchObject({ status: 'delivered' });
  });

  test('cuts a hanging attempt short and gives it back uncounted, and the next start makes it again', async () => {
    let isHanging = true;
    const receiver = await startReceiver(world, (response) => (isHanging ? undefined : response.writeHead(204).end()));
    const endpoint = await world.addEndpoint(receiver.url);
    const event = await world.addEvent([endpoint]);
    const { stop, metrics } = world.startDispatcher();
    await eventually(() => expect(receiver.received).toHaveLength(1));
    await stop();
    expect(await world.delivery(event)).toMatchObject({ status: 'pending', attempt_count: 0, last_error: null });
    expect(await world.endpoint(endpoint)).toMatchObject({ failing_since: null });
    expect(await attemptsMade(metrics)).toBe(0);

    isHanging = false;
    world.clock.advance(1);
    const later = await world.addEvent([endpoint]);
    expect(receiver.received).toHaveLength(1);
    world.startDispatcher();
    for (const one of [event, later]) {
      await eventually(async () =>
        expect(await world.delivery(one)).toMatchObject({ status: 'delivered', attempt_count: 1 }),
      );
    }
  });

  test('ends also while the database is away', async () => {
    const { stop, lines } = world.startDispatcher();
    await world.sql('alter table webhook_endpoints rename to webhook_endpoints_away');
    await eventually(() => expect(lines.join('')).toContain('could not be leased'));
    await stop();
  });
});

test('the gauge tells the age of the oldest event that is still to be delivered, and not of those of disabled endpoints', async () => {
  const [down, disabled] = [
    await world.addEndpoint('http://127.0.0.1:1/'),
    await world.addEndpoint('http://127.0.0.1:1/'),
  ];
  await world.addEvent([disabled]);
  await world.sql('update webhook_endpoints set disabled_at = now() where id = $1', [disabled.id]);
  world.clock.advance(100_000);
  const event = await world.addEvent([down]);
  const { metrics } = world.startDispatcher();
  const age = async () => (await metrics.oldestUndeliveredSeconds.get()).values[0]?.value;
  await recorded(metrics, 1);
  world.clock.advance(60_000);
  await eventually(async () => expect(await age()).toBe(60));
  await world.sql(`update deliveries set status = 'delivered' where event_id = $1`, [event.id]);
  world.clock.advance(5000);
  await eventually(async () => expect(await age()).toBe(0));
});
