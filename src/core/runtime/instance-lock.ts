import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Makes this process the only user of the data directory until it calls `release` or dies. Creates the directory if it's missing. Takes
 * over a lock left by a dead process; it also compares start times, in case the process id was reused. The lock only affects processes on
 * this machine or in this container. Throws DataDirError.
 */
export async function lockDataDir(dir: string, fileName = 'instance.lock'): Promise<{ release(): Promise<void> }> {
  const path = join(resolve(dir), fileName);
  const own: Holder = {
    pid: process.pid,
    startedAt: (await processState(process.pid))?.startedAt ?? null,
    id: randomUUID(),
  };
  heldHere.add(own.id);
  try {
    await ensureDataDir(dir);
    await acquirePatiently(path, own, dir);
    await removeRemains(path, own);
  } catch (cause) {
    heldHere.delete(own.id);
    throw dataDirError(dir, cause);
  }
  return {
    async release() {
      if (!heldHere.delete(own.id)) return;
      if ((await readHolder(path))?.id === own.id) await rm(path, { force: true });
    },
  };
}

/** Like `lockDataDir`, but while another process holds the lock, retries for `patienceMs` before it throws. */
export async function lockPatiently(
  dir: string,
  { patienceMs, pollMs, fileName }: { patienceMs: number; pollMs: number; fileName?: string },
): Promise<{ release(): Promise<void> }> {
  const deadlineMs = performance.now() + patienceMs;
  for (;;) {
    try {
      return await lockDataDir(dir, fileName);
    } catch (error) {
      const isInUse = error instanceof DataDirError && error.code === 'DATA_DIR_IN_USE';
      if (!isInUse || performance.now() > deadlineMs) throw error;
      await delay(pollMs);
    }
  }
}

/** The data directory is in use, full or not writable, depending on `code`. The message says what to do. */
export class DataDirError extends Error {
  override readonly name = 'DataDirError';
  readonly code: 'DATA_DIR_IN_USE' | 'DATA_DIR_NOT_WRITABLE' | 'DATA_DIR_FULL';

  constructor(code: DataDirError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Translates a failed file operation below `dir` into a DataDirError. Returns any other error unchanged. */
export function dataDirError(dir: string, cause: unknown): unknown {
  const code = errorCode(cause);
  const uid = process.getuid?.() ?? 'unknown';
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new DataDirError(
        'DATA_DIR_FULL',
        `The disk that holds the data directory ${dir} is full (${code}). Free some space, then start Quittance again.`,
        { cause },
      );
    case 'ENOTDIR':
    case 'EEXIST':
      return new DataDirError(
        'DATA_DIR_NOT_WRITABLE',
        `The data directory ${dir} or one of its parents is not a directory (${code}). Use another data directory.`,
        { cause },
      );
    case 'EROFS':
    case 'ENOENT':
      return new DataDirError(
        'DATA_DIR_NOT_WRITABLE',
        `The data directory ${dir} is not writable: nothing can be created there (${code}). Use another data directory.`,
        { cause },
      );
    case 'EACCES':
    case 'EPERM':
      return new DataDirError(
        'DATA_DIR_NOT_WRITABLE',
        `The data directory ${dir} is not writable by uid ${uid} (${code}). ${explainAccess(dir, uid)}, or use another data directory.`,
        { cause },
      );
    default:
      return cause;
  }
}

/** Explains how to get write access. It suggests a command only if this command affects nothing but the data directory itself. */
function explainAccess(dir: string, uid: number | string): string {
  if (existsSync(dir)) return `As root, run "chown -R ${uid} '${dir.replaceAll("'", "'\\''")}'"`;
  let parent = dirname(resolve(dir));
  while (!existsSync(parent)) parent = dirname(parent);
  return `Allow that user to write to ${parent}`;
}

/**
 * If root creates the directories, other users may traverse but not list them, because PostgreSQL runs as another user. Otherwise the
 * directories are private. The mode of an existing directory doesn't change.
 */
async function ensureDataDir(dir: string): Promise<void> {
  const mode = process.getuid?.() === 0 ? 0o711 : 0o700;
  for (const created of await makeMissing(resolve(dir), mode)) {
    // The umask may have removed bits.
    await chmod(created, mode);
  }
}

/**
 * Creates the directory and its missing parents, and returns the directories that it created. Node's own recursive mkdir never returns
 * below /proc.
 */
async function makeMissing(dir: string, mode: number): Promise<string[]> {
  try {
    await mkdir(dir, { mode });
    return [dir];
  } catch (error) {
    if (errorCode(error) === 'EEXIST' && (await stat(dir)).isDirectory()) return [];
    if (errorCode(error) !== 'ENOENT' || dirname(dir) === dir) throw error;
  }
  const parents = await makeMissing(dirname(dir), mode);
  await mkdir(dir, { mode }).catch((error: unknown) => {
    // Another process has created it in the meantime.
    if (errorCode(error) !== 'EEXIST') throw error;
  });
  return [...parents, dir];
}

/**
 * A lock file's contents, such as {"pid":4242,"startedAt":"918273","id":"0b9c…"}. `startedAt` is in clock ticks since boot, or null if
 * there's no /proc.
 */
type Holder = { pid: number; startedAt: string | null; id: string };

/**
 * The ids of the locks that this process holds or waits for. The id is needed because an earlier process may have had the same process id.
 */
const heldHere = new Set<string>();

/** Waits up to two seconds for another process that is taking over the same stale lock, which normally takes milliseconds. */
const MAX_ATTEMPTS = 100;
const ATTEMPT_DELAY_MS = 20;

async function acquirePatiently(path: string, own: Holder, dir: string): Promise<void> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const outcome = await acquire(path, own);
    if (outcome.kind === 'acquired') return;
    if (outcome.kind === 'held') throw inUse(dir, path, outcome.by);
    await delay(ATTEMPT_DELAY_MS);
  }
  throw new DataDirError(
    'DATA_DIR_IN_USE',
    `The data directory ${dir} is being locked by other processes. Start again; if this persists, delete ${path}.`,
  );
}

function inUse(dir: string, path: string, by: Holder): DataDirError {
  return new DataDirError(
    'DATA_DIR_IN_USE',
    `The data directory ${dir} is in use by process ${by.pid} (${path}). ` +
      `Stop that process ("kill ${by.pid}"), or use another data directory.`,
  );
}

type Outcome = { kind: 'acquired' } | { kind: 'held'; by: Holder } | { kind: 'retry' };

/**
 * Creates the lock file, or replaces a dead holder's lock file. The right to replace holder X is itself a lock, `<path>.after-X`, which is
 * acquired the same way. Before the holder of that lock replaces the file, it checks once more that the file still names X. So no matter
 * how many processes start, exactly one of them replaces X, and no live lock is ever replaced.
 */
async function acquire(path: string, own: Holder): Promise<Outcome> {
  if (await createExclusively(path, own)) return { kind: 'acquired' };
  const holder = await readHolder(path);
  if (holder === undefined) return { kind: 'retry' };
  if (await isAlive(holder)) return { kind: 'held', by: holder };
  const successionPath = `${path.replace(/\.after-.*$/, '')}.after-${holder.id}`;
  if ((await acquire(successionPath, own)).kind !== 'acquired') return { kind: 'retry' };
  try {
    if ((await readHolder(path))?.id !== holder.id) return { kind: 'retry' };
    const draft = await writeDraft(path, own);
    await rename(draft, path);
    return { kind: 'acquired' };
  } finally {
    await rm(successionPath, { force: true });
  }
}

/** Linking a finished file is atomic and fails if the name exists, whereas an exclusive open would expose an empty file for a moment. */
async function createExclusively(path: string, own: Holder): Promise<boolean> {
  const draft = await writeDraft(path, own);
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

async function writeDraft(path: string, own: Holder): Promise<string> {
  const draft = `${path}.draft-${own.pid}-${randomUUID()}`;
  await writeFile(draft, JSON.stringify(own), { mode: 0o644, flag: 'wx' });
  return draft;
}

/**
 * Returns undefined if the file doesn't exist. If the file can't be parsed, for example after a power loss, its holder can't be alive and
 * gets the id `damaged`.
 */
async function readHolder(path: string): Promise<Holder | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const { pid, startedAt, id } = JSON.parse(text);
    if (Number.isSafeInteger(pid) && pid > 0 && typeof id === 'string' && /^[\w-]+$/.test(id)) {
      return { pid, startedAt: typeof startedAt === 'string' ? startedAt : null, id };
    }
  } catch {
    // It isn't JSON, so treat the lock as damaged.
  }
  return { pid: 0, startedAt: null, id: 'damaged' };
}

async function isAlive(holder: Holder): Promise<boolean> {
  if (holder.pid === 0) return false;
  if (holder.pid === process.pid) return heldHere.has(holder.id);
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    // EPERM means that the process exists but belongs to another user.
    if (errorCode(error) !== 'EPERM') return false;
  }
  const state = await processState(holder.pid);
  if (state === undefined) return true;
  return state.isRunning && (holder.startedAt === null || holder.startedAt === state.startedAt);
}

/**
 * Reads /proc/<pid>/stat, for example `42 (node) S 1 42 … 918273 …`, where field 3 is the state and field 22 the start time in ticks
 * (proc(5)). Returns undefined if it can't be read. A zombie, which was killed but not yet reaped by its parent, doesn't count as running.
 */
async function processState(pid: number): Promise<{ isRunning: boolean; startedAt: string } | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (stat === undefined) return undefined;
  // The name in parentheses may itself contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startedAt] = [fields[0], fields[19]];
  return state === undefined || startedAt === undefined ? undefined : { isRunning: !'ZXx'.includes(state), startedAt };
}

/**
 * Deletes the files left behind by processes that were killed while starting: drafts, and succession locks, which have no meaning while the
 * lock is held. The process id is in the draft's name, because its contents may not be written yet.
 */
async function removeRemains(path: string, own: Holder): Promise<void> {
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(`${basename(path)}.`)) continue;
    const draftPid = /\.draft-(\d+)-/.exec(name)?.[1];
    const isLeft =
      draftPid === undefined
        ? name.includes('.after-') && !name.endsWith(own.id)
        : !(await isAlive({ pid: Number(draftPid), startedAt: null, id: own.id }));
    if (isLeft) await rm(join(dirname(path), name), { force: true });
  }
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
