import { execFile } from 'node:child_process';
import { readlink, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isRunning } from '../../runtime/processes.ts';
import { EmbeddedPostgresError, readIfExists } from './error.ts';
import { runAs, type SystemUser } from './user.ts';

/** A server as described in PostgreSQL's data directory (`miscinit.c CreateLockFile`). */
type Postmaster = { pid: number; socketDir: string; isReady: boolean };

/** The prefix for our socket directories' names. */
export const SOCKET_DIR_PREFIX = 'quittance-';

/**
 * Reads postmaster.pid. Its lines are pid, data directory, start time, port, socket directory, listen address, shared memory, status.
 * Returns undefined if the file is missing or is being written.
 */
export async function readPostmaster(data: string): Promise<Postmaster | undefined> {
  const text = await readIfExists(join(data, 'postmaster.pid'));
  const lines = text?.split('\n') ?? [];
  // In single-user mode, the pid is written as a negative number.
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isSafeInteger(pid) || pid < 2) return undefined;
  return { pid, socketDir: lines[4] ?? '', isReady: lines[7]?.trim() === 'ready' };
}

/**
 * Stops a PostgreSQL that has outlived its process, and removes its remains. PostgreSQL can outlive the process only if its guardian was
 * killed as well. The caller must hold the data directory's lock. postmaster.pid belongs to PostgreSQL's user, who may have written
 * anything into it, so signals and deletions use only that user's rights. Returns true if there's a postmaster.pid that doesn't belong to
 * any of this cluster's processes.
 */
export async function stopOrphan(data: string, user: SystemUser | undefined): Promise<boolean> {
  const postmaster = await readPostmaster(data);
  if (postmaster === undefined) return false;
  if (await isPostmasterOf(data, postmaster.pid, user)) await stopPostmaster(data, postmaster.pid, user);
  if (basename(postmaster.socketDir).startsWith(SOCKET_DIR_PREFIX)) {
    await runAs(user, '/bin/sh', ['-c', REMOVE_SOCKET, postmaster.socketDir]);
  }
  return (await readPostmaster(data)) !== undefined;
}

/** Removes everything that PostgreSQL creates in its socket directory. If the directory contains anything else, the directory is kept. */
const REMOVE_SOCKET = 'test -L "$0" || { rm -f -- "$0/.s.PGSQL.5432" "$0/.s.PGSQL.5432.lock"; rmdir -- "$0"; }';

/**
 * Whether PostgreSQL serves the database in `home`. This also detects a server in another container, because that server's guardian holds
 * the lock.
 */
export async function isServed(home: string, user: SystemUser | undefined): Promise<boolean> {
  const data = join(home, 'data');
  const postmaster = await readPostmaster(data).catch(() => undefined);
  if (postmaster !== undefined && (await isPostmasterOf(data, postmaster.pid, user))) return true;
  return (await runAs(user, '/bin/sh', ['-c', IS_LOCKED, join(home, 'postgres.lock')])).code === 0;
}

const IS_LOCKED = 'command -v flock >/dev/null && test -f "$0" && ! flock -n "$0" true';

/**
 * Process ids are reused, so the process must also belong to the user, and its working directory must be the data directory, as for every
 * postmaster.
 */
async function isPostmasterOf(data: string, pid: number, user: SystemUser | undefined): Promise<boolean> {
  if (!isRunning(pid)) return false;
  const uid = user?.uid ?? process.getuid?.();
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  if (cwd !== undefined) {
    return cwd === (await realpath(data)) && (await stat(`/proc/${pid}`).catch(() => undefined))?.uid === uid;
  }
  // There's no /proc (on macOS), or the process has just exited.
  const found = await promisify(execFile)('ps', ['-o', 'uid=', '-o', 'command=', '-p', String(pid)]).catch(() => null);
  const [, owner, command] = /^\s*(\d+)\s+(.*)/.exec(found?.stdout ?? '') ?? [];
  return Number(owner) === uid && command?.includes(data) === true;
}

/** A fast shutdown aborts running transactions and takes well under a second. The guardian allows the same time. */
const FAST_SHUTDOWN_MS = 5_000;
/** After an immediate shutdown, the postmaster kills its children within 5 s (`postmaster.c SIGKILL_CHILDREN_AFTER_SECS`). */
const IMMEDIATE_SHUTDOWN_MS = 7_000;

/** Requests a fast shutdown, and an immediate one if that takes too long. After an immediate shutdown, the next start replays the WAL. */
export async function stopPostmaster(data: string, pid: number, user: SystemUser | undefined): Promise<void> {
  for (const [signal, patienceMs] of [
    ['INT', FAST_SHUTDOWN_MS],
    ['QUIT', IMMEDIATE_SHUTDOWN_MS],
    ['KILL', IMMEDIATE_SHUTDOWN_MS],
  ] as const) {
    const deadlineMs = performance.now() + patienceMs;
    await runAs(user, '/bin/sh', ['-c', 'kill -s "$0" "$1"', signal, String(pid)]);
    while (performance.now() < deadlineMs) {
      if (!(await isPostmasterOf(data, pid, user))) return;
      await delay(10);
    }
  }
  throw new EmbeddedPostgresError(
    'EMBEDDED_FAILED',
    `Quittance could not stop PostgreSQL (process ${pid}) on ${data}. Stop that process, then start Quittance again.`,
  );
}
