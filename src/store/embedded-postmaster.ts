import { execFile } from 'node:child_process';
import { readFile, readlink, realpath, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isRunning } from '../runtime/is-running.ts';
import { EmbeddedPostgresError, errorCode } from './embedded-error.ts';

/** What PostgreSQL writes of itself into its data directory (`miscinit.c CreateLockFile`). */
export type Postmaster = { pid: number; socketDir: string; isReady: boolean };

/** The name with which our socket directories begin. */
export const SOCKET_DIR_PREFIX = 'quittance-';

/** Reads postmaster.pid; its lines are pid, data directory, start time, port, socket directory, listen address, shared memory, status. Undefined if there is none, or it is being written. */
export async function readPostmaster(data: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch((error) => {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  const lines = text?.split('\n') ?? [];
  // The single-user mode writes its pid as a negative number.
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isSafeInteger(pid) || pid < 2) return undefined;
  return { pid, socketDir: lines[4] ?? '', isReady: lines[7]?.trim() === 'ready' };
}

/**
 * Stops a PostgreSQL that outlived its Quittance (only possible if its guardian was killed with it) and removes its remains.
 * The caller holds the lock of the data directory.
 * Returns true if a postmaster.pid stands there that belongs to no process of this cluster.
 */
export async function stopOrphan(data: string): Promise<boolean> {
  const postmaster = await readPostmaster(data);
  if (postmaster === undefined) return false;
  if (await isPostmasterOf(data, postmaster.pid)) await stopPostmaster(data, postmaster.pid);
  if (basename(postmaster.socketDir).startsWith(SOCKET_DIR_PREFIX)) {
    await rm(postmaster.socketDir, { recursive: true, force: true });
  }
  return (await readPostmaster(data)) !== undefined;
}

/** A process id is reused after a while: the process must also stand in the data directory, as every postmaster does. */
async function isPostmasterOf(data: string, pid: number): Promise<boolean> {
  if (!isRunning(pid)) return false;
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  if (cwd !== undefined) return cwd === (await realpath(data));
  // No /proc (macOS), or a process that just ended.
  const command = await promisify(execFile)('ps', ['-o', 'command=', '-p', String(pid)]).catch(() => undefined);
  return command?.stdout.includes(data) ?? false;
}

/** A fast shutdown aborts the running transactions and takes well under a second; the guardian uses the same time. */
const FAST_SHUTDOWN_MS = 5_000;
/** After an immediate shutdown the postmaster kills its children within 5 s (`postmaster.c SIGKILL_CHILDREN_AFTER_SECS`). */
const IMMEDIATE_SHUTDOWN_MS = 7_000;

/** Stops it fast, and if that takes too long at once; its journal is replayed at the next start. */
export async function stopPostmaster(data: string, pid: number): Promise<void> {
  for (const [signal, patienceMs] of [
    ['SIGINT', FAST_SHUTDOWN_MS],
    ['SIGQUIT', IMMEDIATE_SHUTDOWN_MS],
    ['SIGKILL', IMMEDIATE_SHUTDOWN_MS],
  ] as const) {
    const deadlineMs = performance.now() + patienceMs;
    if (!sendSignal(pid, signal)) return;
    while (performance.now() < deadlineMs) {
      if (!(await isPostmasterOf(data, pid))) return;
      await delay(10);
    }
  }
  throw new EmbeddedPostgresError(
    'EMBEDDED_FAILED',
    `PostgreSQL (process ${pid}) on ${data} cannot be stopped. Stop it, then start again.`,
  );
}

/** False if there is no such process. */
function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}
