import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { request } from 'undici';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runOperation } from '../../src/cli/terminal/run-operation.ts';
import type { AlarmKind } from '../../src/core/domain/alarm-kinds.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { raiseAlarm, resolveAlarms } from '../../src/core/store/chain/alarms.ts';
import { insertCursor, setHalt } from '../../src/core/store/chain/cursor.ts';
import { acquireLease, releaseLease, watcherLease } from '../../src/core/store/chain/leases.ts';
import { saveChainStatus } from '../../src/core/store/chain/status.ts';
import { resumeChain } from '../../src/faces/operator/subjects/chain.ts';

import { readyz } from '../support/fault-flow.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { recordTerminal } from '../support/terminal.ts';

// A process that only serves the API. Another process has written the chain's state.
let service: TestService;
beforeEach(async () => {
  service = await startTestService({ config: { roles: ['api'] } });
});
afterEach(() => service.stop());

const raise = (kind: AlarmKind) =>
  raiseAlarm(service.db, 'devnet', { id: randomUUID(), kind, subject: '', detail: 'http://node.example is down' });

async function examine(ageMs: number): Promise<void> {
  const time = unixMs(service.clock.now() - ageMs);
  await insertCursor(service.db, 'devnet', { number: 7, id: '07'.repeat(32), time }, null);
}

/** Writes the state of another process that follows the chain. */
async function lead() {
  await saveChainStatus(service.db, 'devnet', unixMs(service.clock.now()), {
    ...{ blind: null, headNumber: 7, ownSolidNumber: 7, nodeSolidNumber: 9007, processedNumber: 7, nodes: [] },
    ...{ catchUp: { blocksPerSecond: 90, secondsLeft: 100 }, requestsPerBlock: null },
  });
  return acquireLease(service.db, watcherLease('devnet'), 'another', 60_000);
}

/** Every kind of trouble that the answers must not reveal to a stranger. */
const STATES: readonly [name: string, arrange: () => Promise<unknown>, status: number][] = [
  ['all is well', async () => undefined, 200],
  ['an integrity alarm is open', () => raise('row-changed'), 200],
  ['the network is halted', () => raise('halted'), 200],
  ['migrations are not applied', () => withOwner('delete from schema_migrations where version = 1'), 503],
  [
    'the schema is of a later release',
    () =>
      withOwner(
        "insert into schema_migrations (version, name, sha256) select 9999, 'later', sha256 from schema_migrations limit 1",
      ),
    503,
  ],
];

async function withOwner(sql: string): Promise<void> {
  const client = new pg.Client(service.ownerString);
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

test.each(STATES)(
  'when %s, the public port tells anyone who asks no more than its status',
  async (_name, arrange, status) => {
    await arrange();
    const { body, statusCode } = await request(`${service.url}/readyz`);
    expect([statusCode, await body.json()]).toEqual([status, { status: status === 200 ? 'ready' : 'unavailable' }]);
    expect(await (await request(`${service.url}/healthz`)).body.json()).toEqual({ status: 'ok' });
    // The operator reads the reason on the metrics port.
    const inner = await request(`${service.metricsUrl}/readyz`);
    expect([inner.statusCode, Object.keys((await inner.body.json()) as object).length > 1]).toEqual([status, true]);
  },
);

const STRANGE = [
  'evil.example',
  'evil.example:9464',
  '127.0.0.1.nip.io',
  'localhost.evil.example',
  'a.svc.evil.example',
  '.',
];
const OWN = ['127.0.0.1', '[::1]:9464', 'LOCALHOST:9464', '10.1.2.3', 'quittance', 'quittance:9464'];
const OWN_NAMES = ['quittance.shop.svc', 'quittance.shop.svc.cluster.local:9464', 'box.home.arpa', 'metrics.internal.'];

test.each([
  ...STRANGE.map((host) => [host, 421] as const),
  ...[...OWN, ...OWN_NAMES].map((host) => [host, 200] as const),
])('a request to the metrics port for the host %s is answered %i', async (host, status) => {
  for (const path of ['/metrics', '/readyz', '/healthz']) {
    const { statusCode, body } = await request(service.metricsUrl + path, { headers: { host } });
    const text = await body.text();
    expect([path, statusCode, /quittance_|alarms|ok/.test(text)]).toEqual([path, status, status === 200]);
  }
});

test('a network of which nothing was examined is blind, and its alarms are told', async () => {
  expect(await readyz(service)).toEqual({ blind: true, reason: 'no node has responded yet', alarms: [] });
  await raise('blind');
  expect(await readyz(service)).toMatchObject({ blind: true, alarms: ['blind'] });
});

test('an alarm that any process raised makes it blind, however fresh the newest block is, until the alarm is over', async () => {
  await examine(1000);
  expect(await readyz(service)).toMatchObject({ blind: false, alarms: [] });
  await raise('blind');
  const reported = await readyz(service);
  expect(reported).toMatchObject({ blind: true, alarms: ['blind'] });
  expect(reported.reason).toBe('no node returns new blocks: run quittance chain status');
  await resolveAlarms(service.db, 'devnet', 'blind');
  expect(await readyz(service)).toMatchObject({ blind: false, alarms: [] });
});

test('old blocks of a watcher that catches up are no blindness, and those of one that stopped or hangs are', async () => {
  service.clock.freeze();
  await examine(600_000);
  const unwatched = { blind: true, reason: 'the newest examined block is 600 s old, and no watcher is following it' };
  expect(await readyz(service)).toMatchObject(unwatched);
  const lease = await lead();
  expect(await readyz(service)).toMatchObject({ blind: false, catchUp: { secondsLeft: 100 }, alarms: [] });
  service.clock.advance(31_000);
  const silent = await readyz(service);
  expect(silent).toMatchObject({ blind: true, reason: expect.stringContaining('and no watcher is following it') });
  expect(silent).not.toHaveProperty('catchUp');
  service.clock.advance(-31_000);
  if (lease !== null) await releaseLease(service.db, lease);
  expect(await readyz(service)).toMatchObject(unwatched);
});

test('a halt is blind with its alarm, and neither is left when an operator resumes, though no watcher runs', async () => {
  await examine(1000);
  await service.db.transaction(async (tx) => {
    await setHalt(tx, 'devnet', 'two nodes contradict');
    await raiseAlarm(tx, 'devnet', { id: randomUUID(), kind: 'halted', subject: '7', detail: 'the watcher stopped' });
  });
  expect(await readyz(service)).toMatchObject({ blind: true, alarms: ['halted'] });
  const env = { DATABASE_URL: service.connectionString, QUITTANCE_DEVNET_NODES: service.devnet.url };
  const usdt = { QUITTANCE_DEVNET_USDT: service.devnet.usdtContract };
  await runOperation(recordTerminal({ env: { ...env, ...usdt } }), resumeChain, { isSettled: true } as never);
  expect(await readyz(service)).toMatchObject({ blind: false, alarms: [] });
});
