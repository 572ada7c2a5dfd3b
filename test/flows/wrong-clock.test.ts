import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { parseAddress } from '@quittance/tron/address';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { decodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import type { Network } from '../../src/core/domain/network.ts';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createClockWatch, createDatabaseClock } from '../../src/core/payments/clocks.ts';
import { createHealthProblems } from '../../src/core/payments/health-problems.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { findOpenAlarms, raiseAlarm } from '../../src/core/store/chain/alarms.ts';
import { insertCursor } from '../../src/core/store/chain/cursor.ts';
import { acquireLease, watcherLease } from '../../src/core/store/chain/leases.ts';
import { insertEvents } from '../../src/core/store/outbox/events.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { runSql } from '../contract/sql.ts';
import { addTestEndpoint } from '../support/key-ring.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  startTestService,
  type TestService,
} from '../support/service.ts';

const HOUR_MS = 3_600_000;
const USDT = parseAddress('TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t');
if (USDT.kind !== 'ok') throw new Error(USDT.reason);
const log = createLogger({ level: 'silent' });

let service: TestService;
/** The API of a network whose blocks another process examines; the newest one is current. */
beforeEach(async () => {
  const nile = { nodes: [unlimitedNode('http://127.0.0.1:1')], usdt: USDT.account, agreement: 1 };
  service = await startTestService({
    config: { roles: ['api', 'webhooks'], networks: { nile } },
    comparesClocks: true,
  });
  await acquireLease(service.db, watcherLease('nile'), 'another process', 60_000);
  await insertCursor(service.db, 'nile', { number: 7, id: '07'.repeat(32), time: unixMs(Date.now()) }, null);
});
afterEach(() => service.stop());

const examine = (time: number) =>
  runSql(
    service,
    `update chain_cursors set solid_number = solid_number + 1, solid_id = sha256(solid_id), solid_time = $1 where network = 'nile'`,
    [new Date(time)],
  );
const readyz = async () => (await call(`${service.metricsUrl}/readyz`)).body;
const clockAlarm = async () => (await findOpenAlarms(service.db, 'nile')).find(({ kind }) => kind === 'clock-wrong');
/** Starts a process whose clock is wrong by this much. */
async function startOff(ms: number) {
  await service.stopService();
  service.clock.advance(ms);
  await service.restart();
}

describe('a process whose clock is an hour behind', () => {
  test('is named, is not ready because it creates no invoices, and goes by the others', async () => {
    await startOff(-HOUR_MS);
    expect((await call(`${service.url}/readyz`)).status).toBe(503);
    expect(await readyz()).toMatchObject({
      status: 'unavailable',
      reason: expect.stringMatching(/^This process's clock is 60 minutes behind the database clock/),
      troubles: [
        {
          kind: 'clock-wrong',
          detail: expect.stringContaining(`on ${hostname()}, this process's clock is 60 minutes behind`),
        },
      ],
    });
    const alarm = await eventually(clockAlarm, (found) => found !== undefined);
    expect(alarm?.detail).toContain('the database and the chain agree');
    expect(alarm?.subject).not.toBe('');
  });

  test('is named while it runs, and well again when its clock is', async () => {
    expect((await readyz()).troubles).toBeUndefined();
    service.clock.advance(-HOUR_MS);
    await eventually(clockAlarm, (found) => found !== undefined);
    service.clock.advance(HOUR_MS);
    await eventually(clockAlarm, (found) => found === undefined);
    await eventually(readyz, ({ troubles }) => troubles === undefined);
    expect(await readyz()).toMatchObject({ status: 'ready' });
  });
});

test('an alarm of before a restart ends with the first look that finds the clocks right', async () => {
  for (const subject of [hostname(), 'database']) {
    await raiseAlarm(service.db, 'nile', {
      id: randomUUID(),
      kind: 'clock-wrong',
      subject,
      detail: 'the clock was wrong',
    });
  }
  expect(await clockAlarm()).toBeDefined();
  await service.restart();
  await eventually(clockAlarm, (found) => found === undefined);
});

describe('deadlines follow the clock of the database', () => {
  const LIFETIME_MS = 30 * 60_000;
  /** The database's time is known to within half of the response time, and a response that took more than 5 s is ignored. */
  const READ_ERROR_MS = 2600;
  const made = (id: string) =>
    runSql(service, 'select created_at, expires_at from invoices where id = $1', [decodeId('inv', id)]);

  test.each([-7_200_000, -3_600_000, -63_000, -57_000, -20_000, 0, 20_000, 57_000, 63_000, 3_600_000, 86_400_000])(
    'with a process that is %d ms off, an order is made by it or refused, and a repeat is answered',
    async (offMs) => {
      const { apiKey } = await createTestProject(service.db, { network: 'nile' });
      const order = { apiKey, idempotencyKey: 'before', body: { externalId: 'before' } };
      const before = await createInvoice(service, order);
      // No check has run since: a clock change between two checks counts at once.
      service.clock.advance(offMs);
      const repeat = await createInvoice(service, order);
      expect([repeat.status, repeat.body.invoiceId]).toEqual([201, before.body.invoiceId]);
      const count = async () => (await runSql(service, 'select from invoices')).length;
      const known = await count();
      const fromMs = Date.now() - READ_ERROR_MS;
      const { status, headers, body } = await createInvoice(service, { apiKey });
      if (Math.abs(offMs) > 60_000) {
        expect([status, body.code, headers['retry-after']]).toEqual([503, 'UNAVAILABLE', '5']);
        expect(body.detail).toMatch(
          offMs < 0
            ? /^No invoice was created\. This process's clock is \d+ (s|minutes|hours|days) behind the database clock/
            : /^No invoice was created\. This process's clock is \d+ (s|minutes|hours|days) ahead of the database clock/,
        );
        expect(body.detail).toMatch(/chrony/);
        expect(await count()).toBe(known);
        service.clock.advance(-offMs);
        expect((await createInvoice(service, { apiKey })).status).toBe(201);
        return;
      }
      const toMs = Date.now() + READ_ERROR_MS;
      expect(status).toBe(201);
      const [row] = await made(body.invoiceId);
      for (const ms of [Date.parse(body.expiresAt) - LIFETIME_MS, Number(row?.['created_at'])]) {
        expect(ms).toBeGreaterThan(fromMs);
        expect(ms).toBeLessThan(toMs);
      }
    },
  );

  test('a start with a clock that is off refuses, and takes orders once it is right', async () => {
    const { apiKey } = await createTestProject(service.db, { network: 'nile' });
    await startOff(-HOUR_MS);
    expect((await createInvoice(service, { apiKey })).status).toBe(503);
    service.clock.advance(HOUR_MS);
    expect((await createInvoice(service, { apiKey })).status).toBe(201);
  });

  test('whatever the clock of the process and the monotonic one do between two readings, no time is made that is off by more than a minute', () => {
    const step = fc.record({
      kind: fc.constantFrom('time', 'set', 'sleep', 'read'),
      ms: fc.integer({ min: -10_000_000, max: 10_000_000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        let [database, process, monotonic] = [1_800_000_000_000, 1_800_000_000_000, 0];
        const clock = createDatabaseClock({ now: () => process }, () => monotonic);
        expect(clock.problem()).toContain('has not read');
        let sleptMs = 0;
        for (const { kind, ms } of steps) {
          const passedMs = kind === 'time' || kind === 'sleep' ? Math.abs(ms) : 0;
          database += passedMs;
          process += kind === 'set' ? ms : passedMs;
          if (kind === 'time') monotonic += passedMs;
          if (kind === 'sleep') sleptMs += passedMs;
          if (kind === 'read') {
            clock.read(database, monotonic);
            sleptMs = 0;
          }
          if (clock.problem() !== null) continue;
          // A machine that slept while its clock was set back by the same time can't be distinguished.
          if (sleptMs === 0) expect(clock.now()).toBe(database);
          expect(Math.abs(clock.now() - process)).toBeLessThanOrEqual(60_000);
        }
        clock.read(database, monotonic);
        expect(clock.problem() === null).toBe(Math.abs(process - database) <= 60_000);
      }),
    );
  });
});

test('a sender whose clock is an hour off sends at once, and puts no retry off by it', async () => {
  const shop = await createTestProject(service.db, { network: 'nile' });
  let received = 0;
  let status = 500;
  const server = createServer((_, response) => {
    received += 1;
    response.writeHead(status).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const endpoint = { id: randomUUID(), url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
  await addTestEndpoint(service.db, { ...endpoint, secret: createWebhookSecret(randomBytes), projectId: shop.id });
  for (const offMs of [HOUR_MS, -HOUR_MS]) {
    service.clock.advance(offMs);
    status = 500;
    const before = received;
    const id = uuidV7(Date.now(), randomBytes(10));
    const event = { id, projectId: shop.id, type: 'ping', invoiceId: null, transferId: null, sequence: 1 } as const;
    await service.db.transaction((tx) =>
      insertEvents(tx, 'nile', [{ ...event, body: '{}' }], unixMs(service.clock.now())),
    );
    await eventually(
      () => received,
      (count) => count > before,
    );
    const next = () =>
      runSql(service, 'select next_attempt_at as at from deliveries where event_id = $1 and last_error is not null', [
        id,
      ]);
    const [row] = await eventually(next, ({ length }) => length === 1);
    expect(Math.abs(Number(row?.['at']) - Date.now())).toBeLessThan(HOUR_MS / 2);
    status = 204;
    const delivered = () =>
      runSql(service, `select from deliveries where event_id = $1 and status = 'delivered'`, [id]);
    await eventually(delivered, ({ length }) => length === 1);
    service.clock.advance(-offMs);
  }
});

/** A watch whose times the test moves; the database's clock is real. */
function watchOver(offsetMs: number, networks: readonly Network[] = ['nile']) {
  const troubles = createHealthProblems({ log });
  let elapsedMs = 0;
  const clock = { now: () => Date.now() + offsetMs };
  const watch = createClockWatch({ clock, troubles, networks, host: 'here', monotonicMs: () => elapsedMs });
  /** Advances the chain with the time, up to now. */
  const walk = async (endMs = Date.now()) => {
    for (let stepMs = 45_000; stepMs >= 0; stepMs -= 5000) {
      elapsedMs += 5000;
      await examine(endMs - stepMs);
      await watch.look(service.db);
    }
  };
  const look = async () => {
    elapsedMs += 5000;
    await watch.look(service.db);
  };
  return { watch, walk, look, found: () => troubles.list().map(({ detail }) => detail) };
}

describe('two clocks that agree against one', () => {
  test('ahead: only a chain that goes on tells which; then the process goes by the others', async () => {
    const { watch, walk, look, found } = watchOver(HOUR_MS);
    await examine(Date.now() - 50_000);
    await look();
    expect(found()).toEqual([
      expect.stringMatching(/60 minutes apart. Quittance cannot determine which clock is wrong/),
    ]);
    expect(watch.clock.now()).toBeGreaterThan(Date.now() + HOUR_MS - 10_000);
    await walk();
    expect(found()).toEqual([
      expect.stringMatching(/^on here, this process's clock is 60 minutes ahead: the database and the chain agree/),
    ]);
    expect(Math.abs(watch.clock.now() - Date.now())).toBeLessThan(10_000);
  });

  test('the database: with this process, the chain names it', async () => {
    // The database's clock is real, so all others are moved.
    const { watch, walk, found } = watchOver(-HOUR_MS);
    await examine(Date.now() - HOUR_MS);
    await walk(Date.now() - HOUR_MS);
    expect(found()).toEqual([expect.stringMatching(/^the database clock is 60 minutes ahead/)]);
    expect(watch.clock.now()).toBeLessThan(Date.now() - HOUR_MS + 10_000);
  });

  test('one machine with both, behind: a verified block is later, so it goes by the chain', async () => {
    const { watch, look, found } = watchOver(0);
    await examine(Date.now() + HOUR_MS);
    await look();
    expect(found()).toEqual([
      expect.stringMatching(/^on here, the clocks of this process and the database are at least 60 minutes behind/),
    ]);
    expect(watch.clock.now()).toBeGreaterThan(Date.now() + HOUR_MS - 10_000);
    expect(watch.deadlineClock.now()).toBeGreaterThan(Date.now() + HOUR_MS - 10_000);
    expect(watch.deadlineClock.problem()).toBeNull();
  });

  test('one machine with both, ahead: it cannot be told, and nothing is deleted by it', async () => {
    const { watch, walk, found } = watchOver(0);
    await examine(Date.now() - HOUR_MS);
    await walk(Date.now() - HOUR_MS);
    expect(found()).toEqual([expect.stringMatching(/60 minutes ahead compared with the chain.*cannot determine/)]);
    expect(watch.certainNow()).toBeLessThan(Date.now() - HOUR_MS + 10_000);
  });

  test('a watcher that catches up contradicts nobody', async () => {
    const { walk, look, found } = watchOver(0);
    for (const behindMs of [9, 7, 5, 3].map((hours) => hours * HOUR_MS)) {
      await examine(Date.now() - behindMs);
      await look();
    }
    expect(found()).toEqual([]);
    await walk();
    expect(found()).toEqual([]);
  });

  test('the time of a local network is its user’s', async () => {
    await insertCursor(
      service.db,
      'devnet',
      { number: 7, id: '07'.repeat(32), time: unixMs(Date.now() + HOUR_MS) },
      null,
    );
    const { look, found } = watchOver(0, ['devnet']);
    await look();
    expect(found()).toEqual([]);
  });
});

describe('what deletes', () => {
  const DAY_MS = 24 * HOUR_MS;

  /** Leaves a delivery that ended this long ago. */
  async function leaveDelivery(agoMs: number): Promise<string> {
    const id = uuidV7(Date.now() - agoMs, randomBytes(10));
    await runSql(
      service,
      `insert into events (id, project_id, network, type, sequence, body) values ($1, $2, 'devnet', 'ping', 1, '{}')`,
      [id, service.project.id],
    );
    await runSql(
      service,
      `insert into deliveries (event_id, endpoint_id, project_id, sequence, next_attempt_at, created_at, status, finished_at)
       select $1, id, project_id, 1, $2, $2, 'delivered', $2 from webhook_endpoints`,
      [id, new Date(Date.now() - agoMs)],
    );
    return id;
  }

  test('goes by no clock that another contradicts: 91 days ahead, only what is old by all of them goes', async () => {
    const [young] = [await leaveDelivery(0), await leaveDelivery(200 * DAY_MS)];
    expect((await createInvoice(service)).status).toBe(201);
    const requests = () => runSql(service, 'select from requests');
    const { length: before } = await eventually(requests, ({ length }) => length > 0);
    await startOff(91 * DAY_MS);
    const left = () => runSql(service, 'select event_id from deliveries');
    expect(await eventually(left, ({ length }) => length === 1)).toEqual([{ event_id: young }]);
    expect(await requests()).toHaveLength(before);
    expect(await readyz()).toMatchObject({
      troubles: [{ detail: expect.stringMatching(/91 days apart. Quittance cannot determine/) }],
    });
  });
});
