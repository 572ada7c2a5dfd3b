import { randomUUID } from 'node:crypto';
import { USDT_CONTRACTS } from '@quittance/tron/usdt';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { findOpenAlarms, raiseAlarm } from '../../src/core/store/chain/alarms.ts';
import { acquireLease, watcherLease } from '../../src/core/store/chain/leases.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { acknowledgeAlarms } from '../../src/faces/operator/subjects/chain.ts';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';

let service: TestService;
let live: TestProject;
const lines: string[] = [];
const log = createLogger({ level: 'info', destination: { write: (line: string) => void lines.push(line) } });
/** Only the local network is configured, but there is a mainnet shop. */
beforeEach(async () => {
  lines.length = 0;
  service = await startTestService({ log });
  live = await createTestProject(service.db, { network: 'mainnet', wasWatched: false });
});
afterEach(() => service.stop());

const SILENT = `update leases set expires_at = now() - interval '61 seconds' where name = 'watcher:mainnet'`;
const SEEN = `insert into chain_cursors (network, solid_number, solid_id, solid_time, genesis_id)
  values ('mainnet', 1, decode(repeat('01', 32), 'hex'), '2026-01-01', decode(repeat('02', 32), 'hex'))`;
const kinds = async () => (await findOpenAlarms(service.db, 'mainnet')).map(({ kind }) => kind);
const readyz = async () => (await call(`${service.metricsUrl}/readyz`)).body;

test('an invoice on a network that nobody ever watched is refused, and nothing is used up', async () => {
  const order = { apiKey: live.apiKey, idempotencyKey: 'one', body: { externalId: 'one' } };
  const refused = await createInvoice(service, order);
  expect(refused).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
  expect(refused.body.detail).toContain("this project's network, mainnet, is not set up on this server");
  expect(refused.headers['retry-after']).toBe('60');
  expect(await runSql(service, 'select from invoices')).toHaveLength(0);
  // The other shop isn't affected.
  expect(await createInvoice(service)).toMatchObject({ status: 201 });

  // A watcher whose nodes don't answer, as with a mistyped URL.
  await acquireLease(service.db, watcherLease('mainnet'), 'another process', 60_000);
  const unseen = await createInvoice(service, order);
  expect(unseen).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
  expect(unseen.body.detail).toContain('no node has returned a block');
  expect(unseen.body.detail).toContain('check QUITTANCE_MAINNET_NODES with "quittance doctor"');

  await runSql(service, SEEN);
  expect(await createInvoice(service, order)).toMatchObject({ status: 201 });
});

test('a watcher that is down keeps no invoice from being made, and is an alarm', async () => {
  await runSql(service, SEEN);
  await acquireLease(service.db, watcherLease('mainnet'), 'another process', 60_000);
  service.clock.advance(61_000);
  expect((await readyz()).troubles).toBeUndefined();
  await runSql(service, SILENT);
  service.clock.advance(16_000);
  await eventually(kinds, (open) => open.includes('network-unwatched'));
  const [alarm] = await findOpenAlarms(service.db, 'mainnet');
  expect(alarm?.detail).toMatch(/^no mainnet watcher has run since \d{4}-.*set QUITTANCE_MAINNET_NODES/);
  expect(await createInvoice(service, { apiKey: live.apiKey })).toMatchObject({ status: 201 });
  expect(await readyz()).toMatchObject({
    status: 'ready',
    troubles: [{ kind: 'network-unwatched', network: 'mainnet' }],
    networks: { mainnet: { blind: true, reason: 'no watcher is following it', alarms: ['network-unwatched'] } },
  });

  await acquireLease(service.db, watcherLease('mainnet'), 'another process', 60_000);
  service.clock.advance(16_000);
  await eventually(kinds, (open) => !open.includes('network-unwatched'));
  await eventually(readyz, (body) => body.troubles === undefined);
  const told = lines.map((line) => JSON.parse(line)).filter(({ alarm }) => alarm === 'network-unwatched');
  expect(told.map(({ level, network }) => [level, network])).toEqual([
    ['error', 'mainnet'],
    ['info', 'mainnet'],
  ]);
});

test('an alarm whose process ended is closed by another after ten minutes', async () => {
  await acquireLease(service.db, watcherLease('mainnet'), 'another process', 60_000);
  await runSql(service, SILENT);
  service.clock.advance(61_000);
  await eventually(kinds, (open) => open.includes('network-unwatched'));
  await service.stopService();
  await runSql(service, `update alarms set seen_at = now() - interval '11 minutes'`);
  await runSql(service, `update leases set expires_at = now() + interval '9 minutes' where name = 'watcher:mainnet'`);
  await service.restart();
  await eventually(kinds, (open) => open.length === 0);
});

test('each start names it, and so does making a project or a key', async () => {
  const named = () => lines.filter((line) => line.includes('no mainnet watcher has ever run'));
  // The first process may have looked before or after the shop existed.
  await service.stopService();
  lines.length = 0;
  for (let start = 1; start <= 2; start += 1) {
    await service.restart();
    await eventually(named, ({ length }) => length === start);
  }
  const env = {
    DATABASE_URL: service.connectionString,
    ...{ QUITTANCE_DEVNET_NODES: service.devnet.url, QUITTANCE_DEVNET_USDT: service.devnet.usdtContract },
  };
  const make = (network: string, ...more: string[]) =>
    runCli(['project', 'create', '--name', 'Shop', '--network', network, ...more], { env });
  expect(await make('mainnet')).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^warning: no mainnet watcher has ever run.*\(503\)\nwarning: .*\nnext: /m),
  });
  expect((await make('mainnet', '--json')).json.warning).toContain('no mainnet watcher has ever run');
  expect((await make('devnet', '--json')).json.warning).toBeUndefined();
  const key = (projectId: string, ...more: string[]) =>
    runCli(['key', 'create', '--project', projectId, ...more], { env });
  const made = await key(live.projectId);
  expect(made).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^warning: no mainnet watcher has ever run.*\(503\)\ncopy the secret key now/m),
  });
  expect((await key(service.project.projectId, '--json')).json.warning).toBeUndefined();

  await acquireLease(service.db, watcherLease('mainnet'), 'another process', 60_000);
  const unseen =
    'no mainnet node has returned a block yet. Until a node returns a block, Quittance creates no invoices for the project (503). If this does not change, check QUITTANCE_MAINNET_NODES with "quittance doctor"';
  expect((await key(live.projectId, '--json')).json.warning).toBe(unseen);
  expect((await make('mainnet', '--json')).json.warning).toBe(unseen);
  await runSql(service, SEEN);
  expect((await key(live.projectId, '--json')).json.warning).toBeUndefined();
});

test('a process is not ready while a network of real money was never seen, and is ready forever once it was', async () => {
  const nodes = [unlimitedNode('http://127.0.0.1:9')];
  const usdt = USDT_CONTRACTS.mainnet.account;
  const both = await startTestService({
    config: {
      roles: ['api'],
      networks: { mainnet: { nodes, usdt, agreement: 1 }, nile: { nodes, usdt, agreement: 1 } },
    },
  });
  try {
    const ready = async () => {
      const [open, inner] = [await call(`${both.url}/readyz`), await call(`${both.metricsUrl}/readyz`)];
      expect([open.status, open.body.status]).toEqual([inner.status, inner.body.status]);
      return inner;
    };
    await acquireLease(both.db, watcherLease('mainnet'), 'another process', 60_000);
    const unseen = await ready();
    expect(unseen).toMatchObject({
      status: 503,
      body: { status: 'unavailable', networks: { mainnet: { blind: true, reason: 'no node has responded yet' } } },
    });
    expect(unseen.body.reason).toBe(
      'no mainnet node has returned a block yet, so Quittance creates no invoices for this network (503): check QUITTANCE_MAINNET_NODES with "quittance doctor"',
    );
    expect((await call(`${both.url}/healthz`)).status).toBe(200);

    // Seen once, and down ever since: the newest block is months old.
    await runSql(both, SEEN);
    await runSql(both, SILENT);
    expect(await ready()).toMatchObject({ status: 200, body: { networks: { mainnet: { blind: true } } } });
    await both.restart();
    expect(await ready()).toMatchObject({ status: 200, body: { status: 'ready' } });
  } finally {
    await both.stop();
  }
});

test('an alarm of a network that was removed from the settings is shown, and closed by a person once nobody follows it', async () => {
  const [db, now, networks] = [service.db, () => unixMs(service.clock.now()), ['devnet'] as const];
  await runSql(service, SEEN);
  await raiseAlarm(db, 'mainnet', { id: randomUUID(), kind: 'blind', subject: '', detail: 'no node responds' });
  const close = () =>
    acknowledgeAlarms.run({ db, now, networks }, commandActor('ann'), {
      ...{ network: 'mainnet', kind: 'blind', subject: null },
    });
  await acquireLease(db, watcherLease('mainnet'), 'another process', 60_000);
  await expect(close()).rejects.toThrow('closes automatically');
  await runSql(service, SILENT);
  const database = { DATABASE_URL: service.connectionString };
  const shown = await runCli(['chain', 'status', '--network', 'mainnet'], { env: database });
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('no node responds') });
  expect(await close()).toMatchObject({ kind: 'blind', closed: 1 });
  expect(await kinds()).not.toContain('blind');
});

test('alarms of a feature that is off end when a watcher starts', async () => {
  for (const kind of ['backup-failed', 'backup-old', 'address-not-vouched'] as const)
    await raiseAlarm(service.db, 'devnet', {
      id: randomUUID(),
      kind,
      subject: '',
      detail: 'raised with other settings',
    });
  const open = async () => (await findOpenAlarms(service.db, 'devnet')).map(({ kind }) => kind);
  await service.restart();
  await eventually(open, ({ length }) => length === 0);
});
