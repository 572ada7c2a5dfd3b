import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { syncDirectory, writePrivateFile } from '../../runtime/private-file.ts';
import type { RecordedAction } from '../../store/access/audit-log.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { answerOf } from '../../store/db/rows-of.ts';
import { sealColumn } from '../../store/db/seal.ts';
import { SEALED_ACTION } from '../../store/db/sealed-tables.ts';
import { isAsSealed, json, text } from '../../store/db/statement.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';

/**
 * `quittance-000012-20261124T030000Z.backup` was verified, and `….backup.sha256` beside it says how it was then, as `sha256sum -c` reads it.
 * The number says which is newer, for clocks go back. What is not verified yet has another name, so nobody takes it for a backup.
 */
export type KeptBackup = { name: string; number: number; writtenAtMs: number };

const KEPT = /^quittance-(\d{6,12})-\d{8}T\d{6}Z\.backup$/;
const DIGEST = /^(quittance-\d{6,12}-\d{8}T\d{6}Z\.backup)\.sha256$/;
const UNVERIFIED_END = '.unverified';
const UNVERIFIED = /^quittance-(\d{6,12})-\d{8}T\d{6}Z\.backup\.unverified$/;
/** What is written when a process is killed. */
const DRAFT = /^quittance-\d{6,12}-\d{8}T\d{6}Z\.backup\.(unverified\.\d+|sha256)\.draft$/;

const isUnverified = (path: string): boolean => path.endsWith(UNVERIFIED_END);

/** The path that it has, or will have, as a backup. */
const nameWhenVerified = (path: string): string => (isUnverified(path) ? path.slice(0, -UNVERIFIED_END.length) : path);

/** Whether a file is as its digest beside it says; `null`: there is none. Errors: those of the file system. */
export async function isAsDigestSays(path: string): Promise<boolean | null> {
  const told = await readFile(`${path}.sha256`, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  return told === null ? null : told === `${await digestOf(path)}  ${basename(path)}\n`;
}

export type BackupDirectory = {
  /** Newest first. Errors: those of the file system. */
  list(): Promise<KeptBackup[]>;
  /** The path for the next backup while it is not verified. What killed processes left half written goes. */
  begin(now: UnixMs): Promise<string>;
  /** What was written and not verified before this one goes. */
  removeOthers(path: string): Promise<void>;
  /** It was verified: it gets its name, and its digest beside it. */
  keep(path: string): Promise<KeptBackup>;
  /** Deletes what is older than the newest `count`. Of those only what is as it was when it was verified; the names of the others. */
  removeOld(count: number): Promise<string[]>;
};

/** The directory is never made: where it is gone, a disk is not mounted. One process works with it at a time. */
export function openBackupDirectory(directory: string): BackupDirectory {
  const pathOf = (name: string) => join(directory, name);
  const remove = async (names: readonly string[]) => {
    for (const name of names) await rm(pathOf(name), { force: true });
  };
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
    begin: async (now) => {
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
    removeOthers: async (path) => {
      const names = await readdir(directory);
      await remove(names.filter((name) => UNVERIFIED.test(name) && pathOf(name) !== path));
    },
    keep: async (path) => {
      const target = nameWhenVerified(path);
      const name = basename(target);
      await writePrivateFile(`${target}.sha256`, `${await digestOf(path)}  ${name}\n`);
      await rename(path, target);
      await syncDirectory(directory);
      return { name, number: Number(KEPT.exec(name)?.[1]), writtenAtMs: (await stat(target)).mtimeMs };
    },
    removeOld: async (count) => {
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

/** A file that is written in the future by more than clocks differ: its age is not known. */
const MOST_AHEAD_MS = 300_000;

const HOUR_MS = 3_600_000;
/** A day, and two hours for the backup itself, and for somebody to restart something. */
const LEAST_LIMIT_MS = 26 * HOUR_MS;
const GRACE_MS = 2 * HOUR_MS;

/** Older than this the newest of scheduled backups is too old. */
export const limitOfAge = (intervalMs: number): number => Math.max(LEAST_LIMIT_MS, intervalMs + GRACE_MS);

type Seen = { baseMs: number | null; wallMs: number; monotonicMs: number };

/**
 * How old the newest backup is. The time of a file and our clock are compared once, when the file is first seen, and not at all for one that
 * was made here: from then on counts by how much both our clocks went on, and of these the one that went further, for the monotonic one
 * stands still while a machine sleeps, and the other is set. So a wrong clock makes one backup too early, and none too late by more than an
 * interval.
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
    /** Newest first. */
    onListed: (kept: readonly KeptBackup[]) => {
      const [first] = kept;
      newest = first?.name ?? null;
      for (const name of seen.keys()) if (name !== newest) seen.delete(name);
      if (first === undefined || seen.has(first.name)) return;
      const ageMs = now() - first.writtenAtMs;
      see(first.name, ageMs < -MOST_AHEAD_MS ? null : Math.max(0, ageMs));
    },
    /** `null`: there is none, or nobody knows. */
    ofNewest: (): number | null => {
      const known = newest === null ? undefined : seen.get(newest);
      if (known === undefined || known.baseMs === null) return null;
      return known.baseMs + Math.max(monotonicMs() - known.monotonicMs, now() - known.wallMs);
    },
  };
}

/** `verifiedAt`: when that very one was last found good. */
type NewestBackup = { madeAt: UnixMs; file: string; isFinal: boolean; verifiedAt: UnixMs | null };

/** The newest backup that this program made, as the audit log says; a scheduled one is none until it was verified. */
export async function findNewestBackup(db: Sql): Promise<NewestBackup | null> {
  const actions = await listBackupActions(db);
  const good = actions.filter(({ action, detail }) => action === 'backup.verified' && detail.good === true);
  const verifiedAtOf = (subject: string) => good.find((each) => each.subject === subject)?.actedAt ?? null;
  for (const { action, subject, detail, actedAt } of actions) {
    const { file, isFinal = false } = detail;
    // Where seals are not required, a row may say anything.
    if (action !== 'backup.created' || typeof file !== 'string') continue;
    const verifiedAt = verifiedAtOf(subject);
    if (verifiedAt === null && isUnverified(file)) continue;
    return { madeAt: actedAt, file: nameWhenVerified(file), isFinal, verifiedAt };
  }
  return null;
}

/** When a backup was asked for that is not made yet, or `null`. */
export async function findRequestedBackup(db: Sql): Promise<UnixMs | null> {
  const [newest] = (await listBackupActions(db)).filter(({ action }) => action !== 'backup.verified');
  return newest?.action === 'backup.requested' ? newest.actedAt : null;
}

type Detail = { file?: string; isFinal?: boolean; good?: boolean };

/** Of the newest 10,000 actions, the newest first. A scheduled backup that fails is two of them every ten minutes, which is three days. */
const listBackupActions = answerOf(
  'newest-backup',
  {
    action: text<RecordedAction>(),
    subject: 'text',
    detail: json<Detail>(),
    actedAt: 'timestamptz',
    isSound: isAsSealed(SEALED_ACTION),
  },
  `select action, subject, detail::text as detail, acted_at, ${sealColumn(SEALED_ACTION, '')} as is_sound from (select * from operator_actions order by seq desc limit 10000) newest
   where action in ('backup.created', 'backup.verified', 'backup.requested') order by seq desc limit 1000`,
  () => [],
  (rows) => rows.filter(({ isSound }) => isSound),
);

/**
 * Asks the process that makes scheduled backups for one now: its directory is for one process at a time. The entry of the audit log is the
 * request, so it outlasts every restart, and the next backup that is made answers it.
 */
export async function requestBackup(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
): Promise<{ requestedAt: string }> {
  return db.transaction(async (tx) => {
    const waiting = await findRequestedBackup(tx);
    if (waiting !== null) return { requestedAt: toIso(waiting) };
    const requestedAt = toIso(now());
    await recordActions(tx, actor, now(), [
      { projectId: null, action: 'backup.requested', subject: requestedAt, detail: {} },
    ]);
    return { requestedAt };
  });
}
