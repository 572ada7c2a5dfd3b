import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { RecordedAction } from '../../../core/domain/recorded-action.ts';
import { HOUR_MS, toIso, type UnixMs } from '../../../core/domain/time.ts';
import { syncDirectory, writePrivateFile } from '../../../core/runtime/private-file.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { answerOf } from '../../../core/store/db/rows-of.ts';
import { sealColumn } from '../../../core/store/db/seal.ts';
import { SEALED_ACTION } from '../../../core/store/db/sealed-tables.ts';
import { isAsSealed, json, type Row, text } from '../../../core/store/db/statement.ts';
import type { Actor } from '../actor.ts';
import { recordAction } from '../record-actions.ts';

/**
 * The name of a verified backup is `quittance-000012-20261124T030000Z.backup`. The file `….backup.sha256` next to it contains its digest
 * when it was verified, in `sha256sum -c` format. The number decides which backup is newer, because clocks can be set back. Unverified
 * files have a different name so that no one mistakes them for backups.
 */
export type KeptBackup = { name: string; number: number; writtenAtMs: number };

const KEPT = /^quittance-(\d{6,12})-\d{8}T\d{6}Z\.backup$/;
const DIGEST = /^(quittance-\d{6,12}-\d{8}T\d{6}Z\.backup)\.sha256$/;
const UNVERIFIED_END = '.unverified';
const UNVERIFIED = /^quittance-(\d{6,12})-\d{8}T\d{6}Z\.backup\.unverified$/;
/** Matches the files left behind by a process that was killed. */
const DRAFT = /^quittance-\d{6,12}-\d{8}T\d{6}Z\.backup\.(unverified\.\d+|sha256)\.draft$/;

const isUnverified = (path: string): boolean => path.endsWith(UNVERIFIED_END);

const nameWhenVerified = (path: string): string => (isUnverified(path) ? path.slice(0, -UNVERIFIED_END.length) : path);

/** Compares a file with the digest next to it. Returns `null` if there's no digest. Throws the errors of the file system. */
export async function isAsDigestSays(path: string): Promise<boolean | null> {
  const told = await readFile(`${path}.sha256`, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  return told === null ? null : told === `${await digestOf(path)}  ${basename(path)}\n`;
}

export type BackupDirectory = ReturnType<typeof openBackupDirectory>;

/**
 * Opens a directory that only one process may use at a time. It's never created, because a missing directory means that a disk isn't
 * mounted.
 */
export function openBackupDirectory(directory: string) {
  const pathOf = (name: string) => join(directory, name);
  const remove = async (names: readonly string[]) => {
    for (const name of names) await rm(pathOf(name), { force: true });
  };
  /** Returns the backups, newest first. Throws the errors of the file system. */
  const list = async () => {
    const names = await readdir(directory);
    const kept: KeptBackup[] = [];
    for (const name of names) {
      const number = KEPT.exec(name)?.[1];
      if (number === undefined || !names.includes(`${name}.sha256`)) continue;
      kept.push({ name, number: Number(number), writtenAtMs: (await stat(pathOf(name))).mtimeMs });
    }
    return kept.sort((a, b) => b.number - a.number || b.name.localeCompare(a.name));
  };
  return {
    list,
    /** Returns the path for the next backup, which isn't verified yet. Deletes unfinished files of processes that were killed. */
    begin: async (now: UnixMs) => {
      const names = await readdir(directory);
      const orphans = names.filter((name) => !names.includes(DIGEST.exec(name)?.[1] ?? name));
      await remove([...names.filter((name) => DRAFT.test(name)), ...orphans]);
      const numbers = names.map((name) => Number((KEPT.exec(name) ?? UNVERIFIED.exec(name))?.[1] ?? 0));
      const number = String(Math.max(0, ...numbers) + 1).padStart(6, '0');
      const time = toIso(now)
        .replace(/\.\d+Z$/, 'Z')
        .replace(/[:-]/g, '');
      return pathOf(`quittance-${number}-${time}.backup${UNVERIFIED_END}`);
    },
    /** Deletes all unverified backups except this one. */
    removeOthers: async (path: string) => {
      const names = await readdir(directory);
      await remove(names.filter((name) => UNVERIFIED.test(name) && pathOf(name) !== path));
    },
    /** Gives a verified backup its final name, and writes its digest next to it. */
    keep: async (path: string): Promise<KeptBackup> => {
      const target = nameWhenVerified(path);
      const name = basename(target);
      await writePrivateFile(`${target}.sha256`, `${await digestOf(path)}  ${name}\n`);
      await rename(path, target);
      await syncDirectory(directory);
      return { name, number: Number(KEPT.exec(name)?.[1]), writtenAtMs: (await stat(target)).mtimeMs };
    },
    /**
     * Deletes all backups except the newest `count`, but only if they still match their digest. Returns the names of the files that it
     * didn't delete.
     */
    removeOld: async (count: number) => {
      const left: string[] = [];
      for (const { name } of (await list()).slice(Math.max(1, count))) {
        if ((await isAsDigestSays(pathOf(name))) === true) await remove([name, `${name}.sha256`]);
        else left.push(name);
      }
      return left;
    },
  };
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** Clocks differ by less than this. If a file's date is further in the future, its age isn't known. */
const MOST_AHEAD_MS = 300_000;

/** One day, plus two hours for the backup itself and for restarting a service that had stopped. */
const LEAST_LIMIT_MS = 26 * HOUR_MS;
const GRACE_MS = 2 * HOUR_MS;

/** The age at which the newest scheduled backup is too old. */
export const limitOfAge = (intervalMs: number): number => Math.max(LEAST_LIMIT_MS, intervalMs + GRACE_MS);

type Seen = { baseMs: number | null; wallMs: number; monotonicMs: number };

/**
 * Tracks the age of the newest backup. The file's time is compared with our clock only once, when the file is first seen, and never for a
 * file that was made here. After that, the age grows by whichever of our two clocks has advanced further, because the monotonic clock stops
 * while a machine sleeps, and the wall clock can be set. With a wrong clock, a backup may therefore be made too early, but never more than
 * one interval too late.
 */
export function createBackupAges({ now, monotonicMs }: { now(): number; monotonicMs(): number }) {
  let newest: string | null = null;
  const seen = new Map<string, Seen>();
  const see = (name: string, baseMs: number | null) => {
    seen.set(name, { baseMs, wallMs: now(), monotonicMs: monotonicMs() });
  };
  return {
    onMade: (name: string) => {
      see(name, 0);
      newest = name;
    },
    /** `kept` lists the newest first. */
    onListed: (kept: readonly KeptBackup[]) => {
      const [first] = kept;
      newest = first?.name ?? null;
      for (const name of seen.keys()) if (name !== newest) seen.delete(name);
      if (first === undefined || seen.has(first.name)) return;
      const ageMs = now() - first.writtenAtMs;
      see(first.name, ageMs < -MOST_AHEAD_MS ? null : Math.max(0, ageMs));
    },
    /** Returns `null` if there's no backup or its age is unknown. */
    ofNewest: (): number | null => {
      const known = newest === null ? undefined : seen.get(newest);
      if (known === undefined || known.baseMs === null) return null;
      return known.baseMs + Math.max(monotonicMs() - known.monotonicMs, now() - known.wallMs);
    },
  };
}

/** `verifiedAt` is when this file was last verified. */
type NewestBackup = { madeAt: UnixMs; file: string; isFinal: boolean; verifiedAt: UnixMs | null };

/** Searching this many actions takes milliseconds. */
const NEWEST_ACTIONS = 10_000;

/** Finds the newest backup that this program made, according to the audit log. A scheduled backup counts only after it's been verified. */
export async function findNewestBackup(db: Sql): Promise<NewestBackup | null> {
  // The newest actions usually contain a backup. The whole log may have millions of actions, and then takes a second.
  return (
    findNewestAmong(await listBackupActions(db, NEWEST_ACTIONS)) ?? findNewestAmong(await listBackupActions(db, null))
  );
}

function findNewestAmong(actions: readonly BackupAction[]): NewestBackup | null {
  const good = actions.filter(({ action, detail }) => action === 'backup.verified' && detail.good === true);
  const verifiedAtOf = (subject: string) => good.find((each) => each.subject === subject)?.actedAt ?? null;
  for (const { action, subject, detail, actedAt } of actions) {
    const { file, isFinal = false } = detail;
    // If seals aren't required, a row's contents can't be trusted.
    if (action !== 'backup.created' || typeof file !== 'string') continue;
    const verifiedAt = verifiedAtOf(subject);
    if (verifiedAt === null && isUnverified(file)) continue;
    return { madeAt: actedAt, file: nameWhenVerified(file), isFinal, verifiedAt };
  }
  return null;
}

/** Returns when a person requested a backup that hasn't been made yet, or `null`. A scheduled backup that isn't good doesn't count. */
export async function findRequestedBackup(db: Sql): Promise<UnixMs | null> {
  const actions = await listBackupActions(db, NEWEST_ACTIONS);
  const [requested] = actions.filter(({ action }) => action === 'backup.requested');
  if (requested === undefined) return null;
  const since = actions.slice(0, actions.indexOf(requested));
  return findNewestAmong(since) === null ? requested.actedAt : null;
}

type Detail = { file?: string; isFinal?: boolean; good?: boolean };

const backupAction = {
  action: text<RecordedAction>(),
  subject: 'text',
  detail: json<Detail>(),
  actedAt: 'timestamptz',
  isSound: isAsSealed(SEALED_ACTION),
} as const;
type BackupAction = Row<typeof backupAction>;

/**
 * Searches the newest `searched` actions, or all if it's `null`, and returns up to 10,000 backup actions, newest first. If the scheduled
 * backup keeps failing, it writes two actions every ten minutes, so 10,000 of them cover a month.
 */
const listBackupActions = answerOf(
  'newest-backup',
  backupAction,
  `select action, subject, detail::text as detail, acted_at, ${sealColumn(SEALED_ACTION, '')} as is_sound from (select * from operator_actions order by seq desc limit $1::int8) newest
   where action in ('backup.created', 'backup.verified', 'backup.requested') order by seq desc limit 10000`,
  (searched: number | null) => [searched],
  (rows) => rows.filter(({ isSound }) => isSound),
);

/**
 * Requests a backup from the process with scheduled backups, because only one process may use its directory. The request is an entry in the
 * audit log, so it survives restarts. It's fulfilled by the next backup.
 */
export async function requestBackup({ db, now }: { db: Database; now(): UnixMs }, actor: Actor) {
  return db.transaction(async (tx) => {
    const waiting = await findRequestedBackup(tx);
    if (waiting !== null) return { requestedAt: toIso(waiting) };
    const requestedAt = toIso(now());
    await recordAction(tx, actor, now(), 'backup.requested', { subject: requestedAt, detail: {} });
    return { requestedAt };
  });
}
