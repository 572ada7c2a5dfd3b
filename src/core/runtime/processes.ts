import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Without /proc, each check has to run `ps`. */
const LOOK_MS = process.platform === 'linux' ? 500 : 2000;

/**
 * Calls `onDeath` when the npm that started this process is gone. Otherwise this process would keep running unnoticed after `kill -9` of
 * `npm start`. A process that was started in any other way, for example with `nohup`, may outlive its parent.
 */
export function whenParentDies(onDeath: () => void): void {
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const parent = process.ppid;
  const described = describeProcess(parent);
  // npm runs a script as `sh -c '…'`. Some shells replace themselves with the command. Others stay between npm and this process, and
  // outlive npm.
  const shell = described?.args[1] === '-c' ? described : null;
  const timer = setInterval(() => {
    const isParentHere = process.ppid === parent;
    if (isParentHere && (shell === null || describeProcess(parent)?.parent === shell.parent)) return;
    clearInterval(timer);
    onDeath();
  }, LOOK_MS);
  timer.unref();
}

type Described = { parent: number; args: string[] };

/** Returns undefined if the process doesn't exist or can't be read. */
function describeProcess(pid: number): Described | undefined {
  return process.platform === 'linux' ? readProc(pid) : askPs(pid);
}

/**
 * `/proc/<pid>/stat` looks like `42 (sh) S 17 …`. The parent's id is the second field after the name, and the name may contain any
 * characters (proc(5)).
 */
function readProc(pid: number): Described | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    return { parent, args: readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0') };
  } catch {
    return undefined;
  }
}

/** The output looks like `  17 sh -c node bin/quittance.js start`. */
function askPs(pid: number): Described | undefined {
  const [parent, ...args] = spawnSync('ps', ['-o', 'ppid=,args=', '-p', String(pid)], { encoding: 'utf8' })
    .stdout.trim()
    .split(/\s+/);
  return parent ? { parent: Number(parent), args } : undefined;
}

/** Whether any user has a process with this id. The system reuses process ids after a while. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
