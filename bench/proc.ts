import { readdir, readFile } from 'node:fs/promises';

/** What /proc says of processes. On systems without it everything is 0, and the report says nothing of it. */

/** Linux counts CPU time in ticks of 10 ms (USER_HZ), whatever the kernel's own clock. */
const TICK_MS = 10;

/** CPU time of one process in milliseconds, with all its threads. */
export async function cpuMs(pid: number): Promise<number> {
  const fields = await statFields(pid);
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_MS;
}

/** CPU time of everything on this machine in milliseconds, whoever used it. */
export async function machineCpuMs(): Promise<number> {
  const stat = await readFile('/proc/stat', 'utf8').catch(() => '');
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0] = stat
    .split(/\s+/)
    .slice(1, 8)
    .map(Number);
  return (user + nice + system + interrupts + softInterrupts) * TICK_MS;
}

/** The same with that of its children that ended, so that of a tree of processes nothing is lost. */
export async function cpuMsWithEnded(pid: number): Promise<number> {
  const fields = await statFields(pid);
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0);
}

/** Resident memory of one process in bytes. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}

/** Memory of one process in bytes, in which pages that it shares count in proportion. */
export async function proportionalBytes(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0) * 1024;
}

/** The ids of the processes that a process started, and theirs. */
export async function descendants(pid: number): Promise<number[]> {
  const names = await readdir('/proc').catch(() => []);
  const ids = names.map(Number).filter((id) => id > 0);
  const parents = new Map<number, number>();
  for (const id of ids) parents.set(id, Number((await statFields(id))[1] ?? 0));
  const childrenOf = (parent: number): number[] =>
    ids.filter((id) => parents.get(id) === parent).flatMap((id) => [id, ...childrenOf(id)]);
  return childrenOf(pid);
}

/** The fields of /proc/<pid>/stat after the name, which may hold spaces: state, parent, … */
async function statFields(pid: number): Promise<string[]> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
