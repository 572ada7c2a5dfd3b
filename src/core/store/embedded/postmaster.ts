import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readlink, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isRunning } from '../../runtime/processes.ts';
import type { Binaries } from './binaries.ts';
import { EmbeddedPostgresError, readIfExists } from './error.ts';
import { runAs, type SystemUser, spawnError, spawnOptions } from './user.ts';

/** A server as described in PostgreSQL's data directory (`miscinit.c CreateLockFile`). */
type Postmaster = { pid: number; socketDir: string; isReady: boolean };

/** The prefix for our socket directories' names. */
export const SOCKET_DIR_PREFIX = 'quittance-';

/** The path of PostgreSQL's data directory. A cluster has its own directory, `home`, which also contains PostgreSQL's log. */
export function dataPath(home: string): string {
  return join(home, 'data');
}

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
async function stopPostmaster(data: string, pid: number, user: SystemUser | undefined): Promise<void> {
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

/** How the guardian exited. Its exit code is postgres's exit code. */
type GuardianExit = { code: number | null; signal: NodeJS.Signals | null };

/** A running guardian. `exited` never rejects. `stop` is a fast shutdown with a time limit, and may be called more than once. */
export type Guardian = { exited: Promise<GuardianExit>; stop(): Promise<GuardianExit> };

/** The guardian's exit code if another live server uses the cluster. */
export const CLUSTER_IN_USE = 75;

/**
 * Runs postgres under a shell in a separate session. The shell lives exactly as long as postgres. It stops postgres when our end of its
 * standard input is closed, either by `stop` or because this process died for any reason. Ctrl-C in a terminal doesn't reach that session.
 * Without the shell, postgres would outlive a killed Node.js.
 *
 * The work is shared by two shells, because a shell can't wait for its input and its child at the same time. SIGUSR1 ends the watcher while
 * it's waiting for input. If it's already stopping postgres, the watcher exits on its own, so that its `sleep` isn't left behind. If
 * flock(1) is available, the guardian also holds a lock, which the kernel keeps until the cluster's last process is gone. The lock excludes
 * other containers on the same volume, whose processes aren't visible here, and makes a successor wait until this guardian has cleaned up.
 */
const SCRIPT = `
postgres=$1 home=$2 socket_dir=$3 connection_file=$4 stale_pid_file=$5
shift 5
trap '' INT TERM HUP QUIT
umask 077
exec 3<&0 </dev/null >>"$home/postgres.log" 2>&1
if command -v flock >/dev/null; then
  exec 9>>"$home/postgres.lock"
  tries=0
  until flock -n 9; do
    tries=$((tries + 1))
    if [ $tries -gt 100 ]; then exit ${CLUSTER_IN_USE}; fi
    sleep 0.1
  done
fi
if [ -n "$stale_pid_file" ]; then rm -f "$stale_pid_file"; fi
"$postgres" -D "$home/data" -k "$socket_dir" "$@" 3<&- &
pid=$!
(
  while read -r _; do :; done <&3
  trap '' USR1
  rm -f "$connection_file"
  kill -INT $pid
  tries=0
  while kill -0 $pid && [ $tries -lt 250 ]; do
    tries=$((tries + 1))
    sleep 0.02
  done
  kill -QUIT $pid
) 2>/dev/null 9>&- &
watcher=$!
exec 3<&-
wait $pid
code=$?
kill -USR1 $watcher 2>/dev/null
wait $watcher 2>/dev/null
rm -rf "$socket_dir"
rm -f "$connection_file" 2>/dev/null
exit $code
`;

/** The guardian allows 5 s for a fast shutdown, and postgres allows 5 s for an immediate one. Waiting longer is pointless. */
const STOP_TIMEOUT_MS = 12_000;

/** Starts the guardian. Rejects if the shell itself can't be started. */
export async function startGuardian(options: {
  home: string;
  socketDir: string;
  connectionFile: string;
  hasStalePidFile: boolean;
  settings: Readonly<Record<string, string>>;
  binaries: Binaries;
  user: SystemUser | undefined;
}): Promise<Guardian> {
  const { home, socketDir, connectionFile, settings, binaries, user } = options;
  const data = dataPath(home);
  const postgres = join(binaries.root, 'bin', 'postgres');
  const stalePidFile = options.hasStalePidFile ? join(data, 'postmaster.pid') : '';
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(
    '/bin/sh',
    ['-c', SCRIPT, 'quittance-postgres', postgres, home, socketDir, connectionFile, stalePidFile, ...flags],
    { ...spawnOptions(user), detached: true, stdio: ['pipe', 'ignore', 'ignore'] },
  );
  const exited = new Promise<GuardianExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  }).then(async (exit) => {
    child.stdin?.destroy();
    // A killed guardian couldn't stop postgres. Its watcher may already be stopping it, but another signal does no harm.
    if (exit.signal !== null) await stopRemaining(data, socketDir, user);
    return exit;
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (cause) => reject(spawnError('/bin/sh', user, cause)));
  });
  child.stdin?.on('error', () => {}); // If the guardian is gone, `exited` reports it.
  // Node.js may exit if it has nothing else to do. In that case, the guardian stops postgres.
  child.unref();
  return { exited, stop: () => stopGuardian(child, exited) };
}

async function stopGuardian(child: ChildProcess, exited: Promise<GuardianExit>): Promise<GuardianExit> {
  child.ref();
  child.stdin?.end();
  const timer = setTimeout(() => {
    // The guardian is the leader of its process group, which includes postgres.
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  }, STOP_TIMEOUT_MS);
  try {
    return await exited;
  } finally {
    clearTimeout(timer);
  }
}

async function stopRemaining(data: string, socketDir: string, user: SystemUser | undefined): Promise<void> {
  const postmaster = await readPostmaster(data).catch(() => undefined);
  if (postmaster?.socketDir === socketDir) {
    await stopPostmaster(data, postmaster.pid, user).catch(() => {});
  }
}
