import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { readdir, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { findOpenAlarms } from '../../src/core/store/chain/alarms.ts';
import { takeLedger } from '../../src/core/store/db/ledger-identity.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { findNewestBackup, requestBackup } from '../../src/faces/operator/backup/backup-directory.ts';
import { checkBackup, createAgePair } from '../../src/faces/operator/backup/backup-read.ts';
import { startBackupSchedule } from '../../src/faces/operator/backup/backup-schedule.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { type LedgerDatabase, newFolder, newLedger } from '../support/ledger-copies.ts';
import { createTestProject, eventually, startTestService } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const LEDGER = { id: '0198c0de-0000-7000-8000-000000000001', firstIndex: 0 };

async function newLedgerWithRows(): Promise<LedgerDatabase> {
  const ledger = await newLedger();
  await takeLedger(ledger.db, LEDGER, 'any');
  await createTestProject(ledger.db, { addressCount: 2 });
  return ledger;
}

type Given = { intervalMs?: number; keep?: number; recipients?: readonly string[]; clock?: { now: number } };

/** Starts a process that follows the network and checks all the time. */
function start({ db, connection }: LedgerDatabase, directory: string, given: Given = {}) {
  const { intervalMs = DAY_MS, keep = 3, recipients = [], clock } = given;
  const lines: string[] = [];
  const metrics = createMetrics();
  const loop = startBackupSchedule({
    ...{ db, connection, keyRing: TEST_KEY_RING, needsOwnUser: false, host: 'test', network: 'devnet', metrics },
    log: createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } }),
    now: () => unixMs(clock?.now ?? Date.now()),
    isLeader: () => true,
    schedule: { directory, intervalMs, keep, recipients },
    ...{ lookMs: 20, retryMs: 20 },
  });
  onTestFinished(() => loop.stop());
  const age = async () => (await metrics.backupAge.get()).values[0]?.value;
  return { ...loop, lines, age };
}

const kept = async (folder: string) => (await readdir(folder)).filter((name) => name.endsWith('.backup')).sort();
const numberOf = (name: string) => Number(name.split('-')[1]);
const untilKept = (folder: string, numbers: readonly number[]) =>
  eventually(
    async () => (await kept(folder)).map(numberOf),
    (found) => JSON.stringify(found) === JSON.stringify(numbers),
  );
const alarmsOf = async ({ db }: LedgerDatabase) => (await findOpenAlarms(db, 'devnet')).map(({ kind }) => kind).sort();

test('a service makes a backup that only the master key opens, verifies it, and shows its age', async () => {
  const folder = await newFolder();
  const backups = { directory: folder, intervalMs: DAY_MS, keep: 3, recipients: [] };
  const service = await startTestService({ config: { backups } });
  onTestFinished(() => service.stop());
  await untilKept(folder, [1]);
  const [name = ''] = await kept(folder);
  const path = join(folder, name);
  const digest = createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
  await eventually(
    async () => (await readdir(folder)).length,
    (count) => count === 2,
  );
  expect(await readFile(`${path}.sha256`, 'utf8')).toBe(`${digest}  ${name}\n`);
  for (const each of [path, `${path}.sha256`]) expect((await stat(each)).mode & 0o777).toBe(0o600);
  expect((await readFile(path)).subarray(0, 21).toString()).toBe('age-encryption.org/v1');
  expect((await checkBackup(path, { keyRing: TEST_KEY_RING })).authenticity.kind).toBe('authentic');
  await expect(checkBackup(path, { keyRing: null })).rejects.toMatchObject({ code: 'BACKUP_ENCRYPTED' });
  await eventually(
    async () =>
      (await (await fetch(`${service.metricsUrl}/metrics`)).text()).match(/^quittance_backup_age_seconds (.+)$/m),
    (found) => Number(found?.[1]) < 3600,
  );
});

test('a backup that a person asked for is made at once, and once', async () => {
  const [ledger, folder] = [await newLedgerWithRows(), await newFolder()];
  start(ledger, folder);
  await untilKept(folder, [1]);
  const asking = { db: ledger.db, now: () => unixMs(Date.now()) };
  await requestBackup(asking, commandActor('ann'));
  await untilKept(folder, [1, 2]);
  await requestBackup(asking, commandActor('ann'));
  await untilKept(folder, [1, 2, 3]);
});

longTest(
  'a requested backup that fails verification is an alarm, and is retried until it is good, also by another process',
  async () => {
    const [ledger, folder] = [await newLedgerWithRows(), await newFolder()];
    const first = start(ledger, folder);
    await untilKept(folder, [1]);
    await ledger.client.query('set session_replication_role = replica');
    const [row] = (await ledger.client.query('select seq, acted_by from operator_actions order by seq limit 1')).rows;
    const rename = (name: string) =>
      ledger.client.query('update operator_actions set acted_by = $2 where seq = $1', [row?.seq, name]);
    await rename('nobody');
    const made = async () =>
      (await ledger.client.query(`select from operator_actions where action = 'backup.created'`)).rowCount ?? 0;
    await requestBackup({ db: ledger.db, now: () => unixMs(Date.now()) }, commandActor('ann'));
    const fails = async (process: typeof first, times: number) => {
      await eventually(made, (count) => count >= times);
      await eventually(
        () => alarmsOf(ledger),
        (open) => open.includes('backup-failed'),
      );
      await process.stop();
      expect(await alarmsOf(ledger)).toContain('backup-failed');
    };
    await fails(first, 4);
    await fails(start(ledger, folder), (await made()) + 2);
    await rename(row?.acted_by);
    start(ledger, folder);
    await eventually(
      () => kept(folder),
      ({ length }) => length === 2,
    );
    await eventually(
      () => alarmsOf(ledger),
      ({ length }) => length === 0,
    );
  },
);

longTest('a backup that hangs does not hide that the newest one is too old', async () => {
  const [ledger, folder] = [await newLedgerWithRows(), await newFolder()];
  const clock = { now: Date.now() };
  const running = start(ledger, folder, { clock });
  await untilKept(folder, [1]);
  await ledger.client.query('begin; lock table invoices in access exclusive mode');
  onTestFinished(async () => void (await ledger.client.query('rollback')));
  clock.now += 27 * HOUR_MS;
  await eventually(
    () => alarmsOf(ledger),
    (open) => open.join() === 'backup-old',
  );
  expect(await running.age()).toBeGreaterThan((26 * HOUR_MS) / 1000);
  await ledger.client.query('rollback');
  await untilKept(folder, [1, 2]);
  await eventually(
    () => alarmsOf(ledger),
    ({ length }) => length === 0,
  );
});

longTest('the newest backup is found, however many actions follow', async () => {
  const [ledger, folder] = [await newLedgerWithRows(), await newFolder()];
  const running = start(ledger, folder);
  await untilKept(folder, [1]);
  await running.stop();
  const before = await findNewestBackup(ledger.db);
  expect(before).not.toBeNull();
  await ledger.client.query(
    `insert into operator_actions (acted_at, acted_by, action, subject, detail)
     select now(), 'ann', 'key.created', 'key', '{}' from generate_series(1, 10100)`,
  );
  expect(await findNewestBackup(ledger.db)).toEqual(before);
});

test('a backup for a recipient is verified, and opened by the recipient alone', async () => {
  const [ledger, folder, pair] = [await newLedgerWithRows(), await newFolder(), await createAgePair()];
  start(ledger, folder, { recipients: [pair.recipient] });
  await untilKept(folder, [1]);
  const path = join(folder, (await kept(folder))[0] ?? '');
  await expect(checkBackup(path, { keyRing: TEST_KEY_RING })).rejects.toMatchObject({ code: 'BACKUP_ENCRYPTED' });
  const opened = await checkBackup(path, { keyRing: TEST_KEY_RING, identities: [pair.identity] });
  expect(opened.authenticity.kind).toBe('authentic');
});

longTest('as many are kept as asked for; what is not ours, or not as it was verified, stays', async () => {
  const [ledger, folder] = [await newLedgerWithRows(), await newFolder()];
  const foreign = ['quittance-000001-20200101T000000Z.backup', 'shop.backup', 'notes.txt'];
  for (const name of foreign) await writeFile(join(folder, name), 'mine');
  const running = start(ledger, folder, { intervalMs: 1, keep: 2 });
  await eventually(
    async () => (await kept(folder)).map(numberOf).filter((number) => number > 4),
    (found) => found.length === 2,
  );
  await running.stop();
  const [oldest = ''] = (await kept(folder)).filter((name) => numberOf(name) > 1);
  await writeFile(join(folder, oldest), 'changed');
  const again = start(ledger, folder, { intervalMs: 1, keep: 2 });
  await eventually(
    async () => again.lines.filter((line) => line.includes('were changed after they were verified')),
    (found) => found.length > 0,
  );
  await again.stop();
  const names = await readdir(folder);
  expect(names).toEqual(expect.arrayContaining([...foreign, oldest]));
  expect(names.filter((name) => name.endsWith('.draft'))).toEqual([]);
});

longTest(
  'a directory that vanished is named, an alarm, and not made anew; the alarm ends with a good backup',
  async () => {
    const [ledger, parent] = [await newLedgerWithRows(), await newFolder()];
    const folder = join(parent, 'backups');
    const running = start(ledger, folder);
    await eventually(
      () => alarmsOf(ledger),
      (open) => open.length === 2,
    );
    expect(await alarmsOf(ledger)).toEqual(['backup-failed', 'backup-old']);
    expect((await findOpenAlarms(ledger.db, 'devnet'))[0]?.detail).toContain(`scandir in ${folder} failed (ENOENT)`);
    expect(await readdir(parent)).toEqual([]);
    expect(await running.age()).toBeUndefined();
    const elsewhere = await newFolder();
    await rename(elsewhere, folder);
    await untilKept(folder, [1]);
    await eventually(
      () => alarmsOf(ledger),
      (open) => open.length === 0,
    );
  },
);

const hasMount = (() => {
  const at = mkdtempSync(join(tmpdir(), 'quittance-mount-'));
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', at]);
  if (status === 0) spawnSync('umount', [at]);
  rmdirSync(at);
  return status === 0;
})();

test.runIf(hasMount)(
  'a disk that is full is named, an alarm, and costs none that is there (needs root, to mount a small disk)',
  async () => {
    const [ledger, folder] = [await newLedgerWithRows(), await newFolder()];
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder]);
    onTestFinished(() => void spawnSync('umount', [folder]));
    const first = start(ledger, folder);
    await untilKept(folder, [1]);
    await first.stop();
    await writeFile(join(folder, 'filler'), Buffer.alloc(60_000)).catch(() => undefined);
    const before = await readdir(folder);
    start(ledger, folder, { intervalMs: 1 });
    await eventually(
      () => alarmsOf(ledger),
      (open) => open.includes('backup-failed'),
    );
    expect((await findOpenAlarms(ledger.db, 'devnet'))[0]?.detail).toMatch(/write in .* failed \(ENOSPC\)/);
    expect((await kept(folder)).map(numberOf)).toEqual([1]);
    expect(before).toEqual(expect.arrayContaining(await kept(folder)));
  },
);

longTest('a newest backup that is older than a day and two hours is an alarm, whatever fails', async () => {
  const [ledger, folder] = [await newLedgerWithRows(), await newFolder()];
  const clock = { now: Date.now() };
  const running = start(ledger, folder, { clock });
  await untilKept(folder, [1]);
  await eventually(running.age, (age) => age !== undefined);
  // The directory is gone, so no other backup can be made.
  const moved = `${folder}-moved`;
  await rename(folder, moved);
  onTestFinished(() => rename(moved, folder));
  clock.now += 25 * HOUR_MS;
  await eventually(
    () => alarmsOf(ledger),
    (open) => open.join() === 'backup-failed',
  );
  clock.now += 2 * HOUR_MS;
  await eventually(
    () => alarmsOf(ledger),
    (open) => open.join() === 'backup-failed,backup-old',
  );
});

test('a process that is stopped in the middle of a backup ends at once, and the next one takes away what a killed one left', async () => {
  const [ledger, folder] = [await newLedgerWithRows(), await newFolder()];
  const running = start(ledger, folder);
  await eventually(
    async () => (await readdir(folder)).length,
    (count) => count > 0,
  );
  await running.stop();
  const left = [
    'quittance-000007-20260101T000000Z.backup.unverified',
    'quittance-000008-20260101T000000Z.backup.unverified.99.draft',
  ];
  for (const name of left) await writeFile(join(folder, name), 'half');
  // On a slow machine, the backup may have ended before the process was stopped, but a new one is due anyway.
  start(ledger, folder, { intervalMs: 1 });
  await eventually(
    () => kept(folder),
    (names) => names.some((name) => numberOf(name) >= 8),
  );
  expect((await readdir(folder)).filter((name) => left.includes(name))).toEqual([]);
});

longTest('a clock that was wrong makes no backup too late: a file of the future is not believed', async () => {
  const [ledger, folder] = [await newLedgerWithRows(), await newFolder()];
  const first = start(ledger, folder);
  await untilKept(folder, [1]);
  await first.stop();
  const future = new Date(Date.now() + 400 * DAY_MS);
  await utimes(join(folder, (await kept(folder))[0] ?? ''), future, future);
  start(ledger, folder);
  await untilKept(folder, [1, 2]);
});
