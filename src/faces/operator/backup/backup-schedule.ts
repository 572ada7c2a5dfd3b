import { setTimeout as delay } from 'node:timers/promises';
import type { AlarmKind } from '../../../core/domain/alarm-kinds.ts';
import { HOUR_MS, type UnixMs } from '../../../core/domain/time.ts';
import { type Leading, loopWhileLeading, whileLeading } from '../../../core/payments/watching.ts';
import { unlessAborted } from '../../../core/runtime/concurrency.ts';
import type { KeyRing } from '../../../core/runtime/key-ring.ts';
import type { Logger } from '../../../core/runtime/log.ts';
import type { Loop } from '../../../core/runtime/loop.ts';
import type { Metrics } from '../../../core/runtime/metrics.ts';
import { readVersion } from '../../../core/runtime/package.ts';
import { reasonOf } from '../../../core/runtime/reason-of.ts';
import { endAlarm, tellAlarm } from '../../../core/store/chain/alarms.ts';
import type { Connection, Database } from '../../../core/store/db/database.ts';
import { commandActor } from '../actor.ts';
import {
  type BackupDirectory,
  createBackupAges,
  findRequestedBackup,
  type KeptBackup,
  limitOfAge,
  openBackupDirectory,
} from './backup-directory.ts';
import { createAgePair, pairOfMasterKey } from './backup-read.ts';
import { createBackup } from './create-backup.ts';
import { verifyBackup, withScratch } from './verify-backup.ts';

const LOOK_MS = 30_000;
/** How long to wait after a failed backup. A full disk either has free space again by then, or needs a person. */
const RETRY_MS = 600_000;

/** After a failure, another backup is due, even if the newest one isn't too old yet. */
const NO_RETRY = { isDue: false, notBeforeMs: Number.NEGATIVE_INFINITY };

type Options = Leading &
  MakeDeps & {
    schedule: { directory: string; intervalMs: number; keep: number; recipients: readonly string[] };
    metrics: Pick<Metrics, 'backupAge'>;
    lookMs?: number;
    retryMs?: number;
  };

/**
 * While this process follows the network, makes a verified backup whenever the newest one is older than the interval or a person has
 * requested one. Keeps the configured number of backups. Raises an alarm if a backup fails or the newest one is too old. `stop` aborts the
 * current backup and removes its files.
 */
export function startBackupSchedule(options: Options): Loop {
  const { schedule, metrics, now, lookMs = LOOK_MS, retryMs = RETRY_MS } = options;
  const stopping = new AbortController();
  const directory = openBackupDirectory(schedule.directory);
  const ages = createBackupAges({ now, monotonicMs: () => performance.now() });
  const limitMs = limitOfAge(schedule.intervalMs);
  const alarms = createAlarmKeeper(options, limitMs);
  let retry: { isDue: boolean; notBeforeMs: number } = NO_RETRY;
  const isDue = async () => {
    const ageMs = ages.ofNewest();
    return (
      retry.isDue || ageMs === null || ageMs >= schedule.intervalMs || (await findRequestedBackup(options.db)) !== null
    );
  };
  /** Makes a backup if one is due. If it's too early to retry after a failure, returns the reason for the failure. */
  const makeIfDue = async () => {
    ages.onListed(await directory.list());
    if (!(await isDue())) return null;
    if (performance.now() < retry.notBeforeMs) return alarms.failure();
    retry = { isDue: true, notBeforeMs: performance.now() + retryMs };
    await makeOne(options, directory, ages.onMade, stopping.signal);
    retry = NO_RETRY;
    return null;
  };
  const showAge = (isMissed: boolean | null) => {
    const ageMs = ages.ofNewest();
    if (ageMs === null) metrics.backupAge.remove();
    else metrics.backupAge.set(ageMs / 1000);
    return alarms.keepAge(ageMs, isMissed);
  };
  const look = async (shouldEnd: () => boolean) => {
    const startedMs = performance.now();
    let failure: string | null;
    try {
      failure = await whileMeasuring(makeIfDue(), lookMs, async () => {
        if (!shouldEnd()) await showAge(performance.now() - startedMs > limitMs ? true : null);
      });
    } catch (error) {
      if (shouldEnd()) return;
      failure = describe(error, schedule.directory);
    }
    await alarms.keepFailure(failure);
    await showAge(failure !== null);
  };
  const onFollower = () => {
    metrics.backupAge.remove();
    alarms.forget();
    retry = NO_RETRY;
  };
  const loop = loopWhileLeading(options, { name: 'scheduled backup', pauseMs: lookMs, onFollower }, look);
  return {
    stop: () => {
      const ended = loop.stop();
      stopping.abort();
      return ended;
    },
  };
}

/**
 * Waits for work on the directory, which may hang. Until it ends, calls `measure` at each interval. Ignores its errors, because it's called
 * again.
 */
async function whileMeasuring<Output>(work: Promise<Output>, intervalMs: number, measure: () => Promise<void>) {
  const hasEnded = work.then(
    () => true,
    () => true,
  );
  while (!(await Promise.race([hasEnded, delay(intervalMs, false, { ref: false })]))) {
    await measure().catch(() => undefined);
  }
  return work;
}

async function makeOne(
  options: Options,
  directory: BackupDirectory,
  onMade: (name: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { log, schedule } = options;
  const startedMs = performance.now();
  const { name, bytes } = await makeVerifiedBackup(options, directory, { recipients: schedule.recipients, signal });
  onMade(name);
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  log.info({ backup: name, bytes, seconds }, 'created and verified a backup');
  const left = await directory.removeOld(schedule.keep);
  if (left.length > 0)
    log.warn(
      { backups: left },
      'Quittance did not delete some old backups, because they were changed after they were verified',
    );
}

/** File errors are reported with their code, and our own errors with their advice. */
function describe(error: unknown, directory: string): string {
  const { cause, message } = error as Partial<Error>;
  const { code, syscall } = (cause ?? error) as NodeJS.ErrnoException;
  if (typeof code === 'string' && typeof syscall === 'string' && /^[A-Z]+$/.test(code))
    return `${syscall} in ${directory} failed (${code}): check that the disk is mounted and not full, and that this user may write to it`;
  return message ?? String(error);
}

/** Raises and closes both alarms, and logs each failure once. */
function createAlarmKeeper({ db: whole, network, isLeader, log, schedule }: Options, limitMs: number) {
  const db = whileLeading(whole, network, isLeader);
  /** The alarms that are open, as far as this process knows. If a kind is absent, its state isn't known. */
  const told = new Map<AlarmKind, string | null>();
  const set = async (kind: AlarmKind, detail: string | null) => {
    if (told.get(kind) === detail && told.has(kind)) return;
    if (detail === null) await endAlarm({ db, log }, kind, network, '');
    else await tellAlarm({ db, log }, kind, { network, subject: '', detail });
    told.set(kind, detail);
  };
  let failure: string | null = null;
  return {
    failure: () => failure,
    forget: () => told.clear(),
    keepFailure: async (now: string | null) => {
      failure = now;
      await set('backup-failed', failure && `a scheduled backup failed: ${failure}`);
    },
    /** `isMissed` says whether a backup should exist by now; `null` means that this isn't known yet. It matters only without a backup. */
    keepAge: async (ageMs: number | null, isMissed: boolean | null) => {
      const isOld = ageMs === null ? isMissed : ageMs > limitMs;
      if (isOld === null) return;
      const hours = Math.round(limitMs / HOUR_MS);
      const which =
        ageMs === null ? 'there is no verified backup' : `the newest verified backup is older than ${hours} hours`;
      await set('backup-old', isOld ? `${which} in ${schedule.directory}` : null);
    },
  };
}

type MakeDeps = {
  db: Database;
  connection: Connection;
  keyRing: KeyRing;
  needsOwnUser: boolean;
  /** The name of the machine, for the audit log. */
  host: string;
  log: Logger;
  now(): UnixMs;
};

/**
 * Makes an encrypted backup, restores it to a scratch database, and compares the result with the sums in the file and with the running
 * ledger. Only then does the file get the name of a backup. Without `recipients`, it can be decrypted with the master key. With them, it
 * can also be decrypted with a temporary key that exists only in memory, so that it can be verified now, but no one can read it on this
 * machine later. `signal` aborts it. It throws on any failure, and never touches the kept backups.
 */
async function makeVerifiedBackup(
  { db, connection, keyRing, needsOwnUser, host, log, now }: MakeDeps,
  directory: BackupDirectory,
  { recipients, signal }: { recipients: readonly string[]; signal: AbortSignal },
): Promise<KeptBackup & { bytes: number }> {
  const actor = commandActor('scheduled backup', host);
  const own = recipients.length === 0 ? await pairOfMasterKey(keyRing.current()) : await createAgePair();
  const path = await directory.begin(now());
  const source = {
    db,
    connection,
    now,
    keyRing,
    kind: 'external',
    isStartedHere: false,
    release: readVersion(),
  } as const;
  const encryption = { path, recipients: [...recipients, own.recipient], isFinal: false, signal };
  const { bytes } = await createBackup(source, actor, encryption);
  await directory.removeOthers(path);
  const { view } = await verifyBackup(
    {
      ...{ keyRing, identities: [own.identity], hooks: {}, now },
      follow: async () => 'scheduled backups do not read the chain',
      onRead: () => undefined,
      // After an abort, the abandoned work fails on its own as soon as its database is gone.
      withScratch: (work) =>
        withScratch({ log, needsOwnUser }, (scratch) => unlessAborted(signal, () => work(scratch))),
      withRunning: (work) => work({ db }),
      describeError: reasonOf,
    },
    actor,
    { path, takesUnauthenticated: false, readsChain: false },
  );
  if (!view.good) throw new Error(`the backup ${path} failed verification: ${describeFault(view)}`);
  return { ...(await directory.keep(path)), bytes };
}

type View = Awaited<ReturnType<typeof verifyBackup>>['view'];

function describeFault(view: View): string {
  if (!('differences' in view)) return String(view.reason);
  if (view.auditProblem !== null) return view.auditProblem;
  return view.differences.length > 0
    ? 'its totals do not match its rows'
    : 'the backup contains data that is missing from the running ledger';
}
