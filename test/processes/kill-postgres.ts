import { readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';

/** Kills a data directory's embedded PostgreSQL with all its processes and the guardian at once, as in a power failure. */
export async function killPostgres(dataDir: string): Promise<void> {
  const parents = await readParents();
  const [postmaster, ...children] = await processesOfPostgres(dataDir, parents);
  if (postmaster === undefined) return;
  const guardian = parents.get(postmaster);
  // First the guardian and its watcher, which would otherwise start an orderly shutdown; they lead a process group with the postmaster.
  if (guardian !== undefined && guardian > 1) send(-guardian);
  for (const pid of [postmaster, ...children]) send(pid);
}

/** Returns the postmaster that runs on a data directory and its children; empty if there is none. */
export async function processesOfPostgres(dataDir: string, parents?: Map<number, number>): Promise<number[]> {
  const data = join(dataDir, 'postgres/data');
  const file = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '');
  const postmaster = Number(file.split('\n')[0]);
  const all = parents ?? (await readParents());
  // The file outlives a killed postmaster, and its process id may be another process's by then.
  const cwd = await readlink(`/proc/${postmaster}/cwd`).catch(() => null);
  if (cwd === null || cwd !== (await realpath(data))) return [];
  return [postmaster, ...[...all].flatMap(([pid, parent]) => (parent === postmaster ? [pid] : []))];
}

/** Returns every process of this machine with its parent (proc_pid_stat(5): the fourth field, after the name in parentheses). */
async function readParents(): Promise<Map<number, number>> {
  const parents = new Map<number, number>();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const text = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    const parent = Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]);
    if (text !== '') parents.set(Number(name), parent);
  }
  return parents;
}

function send(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It has ended by itself meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
