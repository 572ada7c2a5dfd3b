import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Binaries } from './binaries.ts';
import { dataPath } from './cluster.ts';
import { readPostmaster, stopPostmaster } from './postmaster.ts';
import { type SystemUser, spawnError, spawnOptions } from './user.ts';

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
