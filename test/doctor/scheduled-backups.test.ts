import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { takeLedger } from '../../src/core/store/db/ledger-identity.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { createAgePair } from '../../src/faces/operator/backup/backup-read.ts';
import { startBackupSchedule } from '../../src/faces/operator/backup/backup-schedule.ts';
import { recordActions } from '../../src/faces/operator/record-actions.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { newFolder } from '../support/ledger-copies.ts';
import { eventually, startTestService, type TestService } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';
import { examine, expectNamed, pastGuards, settingsOf, told } from './doctored.ts';

const HOUR_MS = 3_600_000;
const later = (hours: number) => ({ now: () => unixMs(Date.now() + hours * HOUR_MS) });
const LEDGER = { id: '0198c0de-0000-7000-8000-000000000001', firstIndex: 0 };

/** Starts a service that makes a backup in a directory as soon as it checks. */
async function startService(): Promise<{ service: TestService; directory: string }> {
  const [service, directory] = [await startTestService(), await newFolder()];
  onTestFinished(() => service.stop());
  await takeLedger(service.db, LEDGER, 'any');
  return { service, directory };
}

/** Makes a backup for `recipients`. Returns its path, or `null` if it isn't good. */
async function makeOne(service: TestService, directory: string, recipients: readonly string[] = []) {
  const lines: string[] = [];
  const loop = startBackupSchedule({
    ...{ db: service.db, connection: service.connectionString, keyRing: TEST_KEY_RING },
    ...{ needsOwnUser: false, host: 'test', network: 'devnet', metrics: createMetrics(), isLeader: () => true },
    log: createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } }),
    now: () => unixMs(Date.now()),
    schedule: { directory, intervalMs: 24 * HOUR_MS, keep: 3, recipients },
    lookMs: 20,
  });
  const ended = await eventually(
    async () => lines.find((line) => /created and verified a backup|a scheduled backup failed/.test(line)),
    (line) => line !== undefined,
  );
  await loop.stop();
  const name = (await readdir(directory)).find((each) => each.endsWith('.backup'));
  return ended?.includes('created and verified a backup') && name !== undefined ? join(directory, name) : null;
}

const scheduled = (directory: string) => ({ settings: { backups: { directory, intervalMs: 24 * HOUR_MS } } });

test('a scheduled backup is good, until it is older than 26 hours, damaged or gone', async () => {
  const { service, directory } = await startService();
  await expectNamed(service, {
    ...{ title: '', check: 'backup-age', state: 'warning', fix: /watcher role/ },
    plant: () => scheduled(directory),
  });
  const path = (await makeOne(service, directory)) ?? expect.fail('no backup was made');
  const view = await examine(service, scheduled(directory));
  expect(told(view, 'backup-age').state).toBe('good');
  expect(told(view, 'backup-verified')).toMatchObject({
    state: 'good',
    says: expect.stringContaining(`${path} is complete and authentic, and was verified at `),
  });
  expect(told(await examine(service, { ...scheduled(directory), deps: later(25) }), 'backup-age').state).toBe('good');
  const old = { title: '', check: 'backup-age', fix: /watcher role/ };
  const at27 = () => ({ ...scheduled(directory), deps: later(27) });
  await expectNamed(service, { ...old, state: 'warning', plant: at27 });
  // With real money, it's a failure.
  const networks = settingsOf(service).networks.map((each) => ({ ...each, network: 'mainnet' as const }));
  const live = () => ({ ...at27(), settings: { ...scheduled(directory).settings, networks } });
  await expectNamed(service, { ...old, state: 'failed', plant: live });
  // Without scheduled backups, a week is allowed.
  expect(told(await examine(service, { deps: later(27) }), 'backup-age').state).toBe('good');
  const bytes = await readFile(path);
  await writeFile(path, bytes.fill(0, bytes.length - 40));
  const damaged = { title: '', check: 'backup-verified', fix: /Make a new backup/, plant: () => scheduled(directory) };
  await expectNamed(service, { ...damaged, state: 'failed' });
  await rm(path);
  await expectNamed(service, { ...damaged, state: 'warning', fix: /mount its disk/ });
});

longTest('one that nobody here can open is known by its digest', async () => {
  const { service, directory } = await startService();
  const path = (await makeOne(service, directory, [(await createAgePair()).recipient])) ?? expect.fail('none was made');
  expect(told(await examine(service, scheduled(directory)), 'backup-verified')).toMatchObject({
    state: 'good',
    says: expect.stringContaining('is encrypted, and was verified at'),
  });
  const bytes = await readFile(path);
  await writeFile(path, bytes.fill(0, bytes.length - 40));
  await expectNamed(service, {
    ...{ title: '', check: 'backup-verified', state: 'failed', fix: /Make a new backup/ },
    plant: () => scheduled(directory),
  });
});

longTest('one that does not verify is no backup: the one before it is still the newest', async () => {
  const { service, directory } = await startService();
  const made = { projectId: null, action: 'project.created', subject: 'shop', detail: {} } as const;
  await recordActions(service.db, commandActor('anna'), unixMs(Date.now()), [made]);
  const first = (await makeOne(service, directory)) ?? expect.fail('none was made');
  await pastGuards(service, 'operator_actions', `update operator_actions set subject = 'other' where subject = 'shop'`);
  const elsewhere = await newFolder();
  expect(await makeOne(service, elsewhere)).toBeNull();
  expect((await readdir(elsewhere)).join()).toMatch(/\.backup\.unverified$/);
  const view = await examine(service, scheduled(directory));
  expect(told(view, 'backup-verified').says).toContain(first);
  expect(told(view, 'alarms')).toMatchObject({ says: expect.stringContaining('backup-failed') });
});
