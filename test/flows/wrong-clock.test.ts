import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { uuidV7 } from '../../src/domain/ids.ts';
import type { Network } from '../../src/domain/network.ts';
import { unlimitedNode } from '../../src/domain/node.ts';
import { unixMs } from '../../src/domain/time.ts';
import { createTroubles } from '../../src/payments/troubles/troubles.ts';
import { createClockWatch } from '../../src/payments/troubles/watch-clocks.ts';
import { createLogger } from '../../src/runtime/log.ts';
import { findOpenAlarms } from '../../src/store/chain/alarms.ts';
import { insertCursor } from '../../src/store/chain/cursor.ts';
import { parseAddress } from '../../src/tron/address.ts';
import { runSql } from '../contract/sql.ts';
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
/** The API of a network whose blocks another process examines; the newest one is of now. */
beforeEach(async () => {
  const nile = { nodes: [unlimitedNode('http://127.0.0.1:1')], usdt: USDT.account, agreement: 1 };
  service = await startTestService({
    config: { roles: ['api', 'webhooks'], networks: { nile } },
    comparesClocks: true,
  });
  await insertCursor(service.db, 'nile', { number: 7, id: '07'.repeat(32), time: unixMs(Date.now()) }, null);
});
afterEach(() => service.stop());

const examine = (time: number) =>
  runSql(service, `update chain_cursors set solid_time = $1 where network = 'nile'`, [new Date(time)]);
const readyz = async () => (await call(`${service.url}/readyz`)).body;
const clockAlarm = async () => (await findOpenAlarms(service.db, 'nile')).find(({ kind }) => kind === 'clock-wrong');
/** A process begins with its clock so far off. */
async function startOff(ms: number) {
  await service.stopService();
  service.clock.advance(ms);
  await service.restart();
}

describe('a process whose clock is an hour behind', () => {
  test('is named, and goes by the others: no invoice is born expired', async () => {
    const shop = await createTestProject(service.db, { network: 'nile' });
    await startOff(-HOUR_MS);
    const { body } = await createInvoice(service, { apiKey: shop.apiKey });
    expect(Date.parse(body.expiresAt)).toBeGreaterThan(Date.now() + 25 * 60_000);
    expect(await readyz()).toMatchObject({
      status: 'ready',
      troubles: [
        { kind: 'clock-wrong', detail: expect.stringMatching(/^the clock of this process is 60 minutes behind/) },
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
  });
});

/** A watch whose times the test moves; the database's clock is the real one. */
function watchOver(offsetMs: number, networks: readonly Network[] = ['nile']) {
  const troubles = createTroubles({ log });
  let elapsedMs = 0;
  const clock = { now: () => Date.now() + offsetMs };
  const watch = createClockWatch({ clock, troubles, networks, host: 'here', monotonicMs: () => elapsedMs });
  /** The chain goes on as time does, up to now. */
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
    expect(found()).toEqual([expect.stringMatching(/60 minutes apart, and it cannot be told which is wrong/)]);
    expect(watch.clock.now()).toBeGreaterThan(Date.now() + HOUR_MS - 10_000);
    await walk();
    expect(found()).toEqual([
      expect.stringMatching(/^the clock of this process is 60 minutes ahead: the database and the chain agree/),
    ]);
    expect(Math.abs(watch.clock.now() - Date.now())).toBeLessThan(10_000);
  });

  test('the database: with this process, the chain names it', async () => {
    // The database's clock is the real one, so all others are moved.
    const { watch, walk, found } = watchOver(-HOUR_MS);
    await examine(Date.now() - HOUR_MS);
    await walk(Date.now() - HOUR_MS);
    expect(found()).toEqual([expect.stringMatching(/^the clock of the database is 60 minutes ahead/)]);
    expect(watch.clock.now()).toBeLessThan(Date.now() - HOUR_MS + 10_000);
  });

  test('one machine with both, behind: a verified block is later, so it goes by the chain', async () => {
    const { watch, look, found } = watchOver(0);
    await examine(Date.now() + HOUR_MS);
    await look();
    expect(found()).toEqual([
      expect.stringMatching(/^the clocks of this process and of the database are 60 minutes behind/),
    ]);
    expect(watch.clock.now()).toBeGreaterThan(Date.now() + HOUR_MS - 10_000);
  });

  test('one machine with both, ahead: it cannot be told, and nothing is deleted by it', async () => {
    const { watch, walk, found } = watchOver(0);
    await examine(Date.now() - HOUR_MS);
    await walk(Date.now() - HOUR_MS);
    expect(found()).toEqual([expect.stringMatching(/60 minutes ahead by the chain.*it cannot be told/)]);
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

  /** A delivery that ended so long ago. */
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
      troubles: [{ detail: expect.stringMatching(/91 days apart, and it cannot be told/) }],
    });
  });
});
