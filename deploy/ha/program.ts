import { spawn } from 'node:child_process';
import { open, readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** A running program of the cluster. */
export type Program = {
  pid: number;
  /** Its exit code, or the name of the signal that ended it, once it has ended. */
  ended: Promise<number | string>;
  isRunning(): boolean;
};

export type ProgramUser = { uid: number; gid: number };

export type ProgramOptions = {
  setpriv: string;
  /** PostgreSQL does not run as root; `null` stands for ourselves. */
  user: ProgramUser | null;
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string;
  /** Where its output goes. */
  logFile: string;
};

/** Starts a program that is told to stop when this process ends, however that happens. */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const { user, command, args, env, cwd } = options;
  const log = await open(options.logFile, 'a');
  try {
    const as = user === null ? [] : [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];
    const child = spawn(options.setpriv, ['--pdeathsig=TERM', ...as, command, ...args], {
      cwd,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C.UTF-8', HOME: cwd, ...env },
      stdio: ['ignore', log.fd, log.fd],
    });
    const ended = new Promise<number | string>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
    });
    // Whoever awaits it later gets the error all the same.
    ended.catch(() => undefined);
    if (child.pid === undefined) await ended;
    return {
      pid: child.pid as number,
      ended,
      isRunning: () => child.exitCode === null && child.signalCode === null,
    };
  } finally {
    await log.close();
  }
}

/** Asks a program to stop, and ends it by force after `graceMs`. */
export async function stopProgram(program: Program, graceMs: number): Promise<void> {
  if (!program.isRunning()) return;
  for (const signal of ['SIGCONT', 'SIGTERM'] as const) send(program.pid, signal);
  const ended = new AbortController();
  const late = delay(graceMs, 'late', { signal: ended.signal }).catch(() => 'ended');
  if ((await Promise.race([program.ended, late])) === 'late') send(program.pid, 'SIGKILL');
  ended.abort();
  await program.ended;
}

/** Sends a signal to a process that may be gone already. Answers whether it was there. */
export function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

/** A process and all that descend from it, as /proc shows them; none if it is gone. */
export async function processTree(pid: number): Promise<number[]> {
  const children = new Map<number, number[]>();
  let isThere = false;
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    // 4242 (postgres: a) b) S 4100 …: the name may hold anything, so what follows its last bracket counts.
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (stat === '' || state === 'Z') continue;
    const own = Number(name);
    if (own === pid) isThere = true;
    children.set(Number(parent), [...(children.get(Number(parent)) ?? []), own]);
  }
  const below = (of: number): number[] => (children.get(of) ?? []).flatMap((child) => [child, ...below(child)]);
  return isThere ? [pid, ...below(pid)] : [];
}
