import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { startGuardedService } from '../manifest/guarded-service.ts';
import { putTogether, takeApart } from '../support/forge-backup.ts';
import { createInvoice, createTestProject, startTestService, type TestService } from '../support/service.ts';
import { examine, expectNamed, type Fault, MASTER_KEY, settingsOf, told } from './doctored.ts';

let service: TestService;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'quittance-doctor-'));
  service = await startTestService();
});
afterAll(async () => {
  await service.stop();
  await rm(folder, { recursive: true, force: true });
});

const DAY_MS = 86_400_000;

/** Sends payments from three payers, each of which is swept completely within the hour; `paid` is in micro-USDT. */
async function sweep(running: TestService, { hours, to }: { hours: number; to: readonly string[] }): Promise<void> {
  for (const [place, recipient] of to.entries()) {
    const begun = `now() - interval '${30 - place} days'`;
    const own = `select $1, p.network, p.id, a.id, decode(repeat($2, 32), 'hex'), 0, $3::int8, decode(repeat($2, 32), 'hex')`;
    const columns = 'network, project_id, address_id, tx_id, log_index, block_number, block_id, block_time';
    const from = 'from projects p join addresses a on a.project_id = p.id where p.id = $5';
    const byte = (kind: number) => (kind * 16 + place).toString(16).padStart(2, '0');
    await runSql(
      running,
      `insert into transfers (id, ${columns}, from_address, amount_micro, kind, verified, nodes)
       ${own.replace('$1', '$1::uuid')}, ${begun}, $4, 5000000, 'unmatched', 'proven', '{}' ${from}`,
      [`00000000-0000-4000-8000-0000000000${byte(1)}`, byte(1), 1000 + 2 * place, `TPayer${place}`, running.project.id],
    );
    await runSql(
      running,
      `insert into outgoing_transfers (${columns}, to_address, amount_micro, verified, nodes)
       ${own.replace('$1, ', '')}, ${begun} + interval '${hours} hours', $3, 5000000, 'proven', '{}' ${from.replace('$5', '$4')}`
        .replace('$2', '$1')
        .replace('$2', '$1')
        .replace('$3::int8', '$2::int8'),
      [byte(2), 1001 + 2 * place, recipient, running.project.id],
    );
  }
}

const setProject = (running: TestService, change: string) =>
  runSql(running, `update projects set ${change} where id = $1`, [running.project.id]);

const FAULTS: Fault[] = [
  {
    ...{
      title: 'a project without a support contact',
      check: 'support-contact',
      state: 'warning',
      fix: /--support help/,
    },
    plant: () => ({}),
  },
  {
    ...{
      title: 'a receiver that fails since hours',
      check: 'receivers',
      state: 'failed',
      fix: /quittance webhook test/,
    },
    plant: async (running) => {
      const set = (change: string) => runSql(running, `update webhook_endpoints set ${change}`);
      await set("failing_since = now() - interval '3 hours', consecutive_failures = 20");
      return { undo: () => set('failing_since = null, consecutive_failures = 0') };
    },
  },
  {
    ...{ title: 'a receiver that was disabled', check: 'receivers', state: 'warning', fix: /quittance webhook enable/ },
    plant: async (running) => {
      const set = (change: string) => runSql(running, `update webhook_endpoints set ${change}`);
      await set("disabled_at = now(), disabled_reason = 'planted'");
      return { undo: () => set('disabled_at = null, disabled_reason = null') };
    },
  },
  {
    ...{ title: 'a project without an address', check: 'capacity', state: 'warning', fix: /quittance address add/ },
    plant: async (running) => {
      await createTestProject(running.db, { addressCount: 0 });
      return {};
    },
  },
  {
    ...{ title: 'no payable amount that is left', check: 'capacity', state: 'failed', fix: /quittance address add/ },
    plant: async (running) => {
      const { apiKey } = await createTestProject(running.db, { maxSurchargeMicro: 100n });
      for (let status = 201; status === 201; ) ({ status } = await createInvoice(running, { apiKey }));
      return {};
    },
  },
  {
    ...{ title: 'no backup', check: 'backup-age', state: 'warning', fix: /quittance backup/ },
    plant: () => ({}),
  },
];

test.each(FAULTS)('$title is named by $check', (fault) => expectNamed(service, fault));

test('a receiver that was sent nothing is not called good', async () => {
  const found = told(await examine(service), 'receivers');
  expect(found).toMatchObject({ state: 'skipped', says: expect.stringContaining('quittance webhook test whe_') });
});

test('a receiver in whose place a page for logging in answers 200 is named, with the words of the page', async () => {
  const page = createServer((request, response) =>
    request.resume().on('end', () => response.writeHead(200).end('<!doctype html><title>Log in to continue</title>')),
  );
  await once(page.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void page.close());
  await runSql(service, 'update webhook_endpoints set url = $1', [
    `http://127.0.0.1:${(page.address() as AddressInfo).port}`,
  ]);
  const env = {
    ...{ DATABASE_URL: service.connectionString, QUITTANCE_MASTER_KEY: MASTER_KEY },
    QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
  };
  const [{ endpointId } = { endpointId: '' }] = (
    await runCli(['webhook', 'list', '--project', service.project.projectId, '--json'], { env })
  ).json.data;
  expect(await runCli(['webhook', 'test', endpointId], { env })).toMatchObject({ code: 1 });
  const found = told(await examine(service), 'receivers');
  expect(found).toMatchObject({ state: 'warning', says: expect.stringContaining('“Log in to continue”') });
});

test('addresses that nobody signed are named, with real money', async () => {
  const networks = settingsOf(service).networks.map((each) => ({ ...each, network: 'mainnet' as const }));
  await expectNamed(service, {
    ...{ title: '', check: 'addresses-attested', state: 'warning', fix: /quittance manifest draft/ },
    plant: () => ({ settings: { networks } }),
  });
});

test('an address that the manifest does not have is named, and so is a manifest that nobody signed', async () => {
  const guarded = await startGuardedService('warn');
  const { manifestPath: path, pinned } = guarded;
  const dataDir = await mkdtemp(join(tmpdir(), 'quittance-doctor-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const settings = { addressManifest: { path, pinned, mode: 'warn' as const, dataDir } };
  expect(told(await examine(guarded, { settings }), 'addresses-attested')).toMatchObject({ state: 'good' });
  await guarded.vouchFor([]);
  const fault = { title: '', check: 'addresses-attested', state: 'failed' as const, fix: /manifest draft/ };
  await expectNamed(guarded, { ...fault, plant: () => ({ settings }) });
  const other = { ...pinned, keys: [Buffer.alloc(32, 9).toString('base64')] };
  await expectNamed(guarded, {
    ...fault,
    plant: () => ({ settings: { addressManifest: { ...settings.addressManifest, pinned: other } } }),
  });
});

test.each([
  ['that is emptied at once, to one place', 1, ['TX', 'TX', 'TX'], 'warning'],
  ['that its owner empties after days', 200, ['TX', 'TX', 'TX'], 'good'],
  ['that is spent from, to many', 1, ['TX', 'TY', 'TZ'], 'good'],
] as const)('an address %s', async (_title, hours, to, state) => {
  const own = await startTestService();
  onTestFinished(() => own.stop());
  await sweep(own, { hours, to });
  const found = told(await examine(own), 'addresses-own');
  expect(found.state, found.says).toBe(state);
  if (state === 'warning') expect(found.fix).toContain('quittance address retire');
});

test('a backup is good until it is old, damaged or changed', async () => {
  const path = join(folder, 'shop.backup');
  const env = { DATABASE_URL: service.connectionString, QUITTANCE_MASTER_KEY: MASTER_KEY };
  expect(await runCli(['backup', '--to', path], { env })).toMatchObject({ code: 0 });
  const view = await examine(service);
  expect(told(view, 'backup-age')).toMatchObject({ state: 'good' });
  expect(told(view, 'backup-verified')).toMatchObject({ state: 'good' });
  await expectNamed(service, {
    ...{ title: '', check: 'backup-age', state: 'warning', fix: /quittance backup/ },
    plant: () => ({ deps: { now: () => unixMs(Date.now() + 9 * DAY_MS) } }),
  });
  const bytes = await readFile(path);
  const fault = { title: '', check: 'backup-verified', state: 'failed' as const, fix: /Make a new backup/ };
  await writeFile(path, bytes.subarray(0, -40));
  await expectNamed(service, { ...fault, plant: () => ({}) });
  await writeFile(path, bytes);
  const parts = await takeApart(path);
  const signature = Buffer.from(parts.signature);
  signature[signature.length - 1] = (signature.at(-1) ?? 0) ^ 1;
  await putTogether(path, { ...parts, signature });
  await expectNamed(service, { ...fault, plant: () => ({}) });
  await rm(path);
  await expectNamed(service, { ...fault, state: 'warning', fix: /--verify/, plant: () => ({}) });
});

test('a support contact is good', async () => {
  const own = await startTestService();
  onTestFinished(() => own.stop());
  await setProject(own, "support_contact = 'help@shop.example'");
  expect(told(await examine(own), 'support-contact')).toMatchObject({ state: 'good' });
});
