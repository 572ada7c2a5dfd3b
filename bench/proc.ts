import { readdir, readFile } from 'node:fs/promises';

/** Values from /proc about processes. On systems without /proc, every value is 0, and the report omits them. */

/** Linux counts CPU time in ticks of 10 ms (USER_HZ), whatever the kernel's own clock. */
const TICK_MS = 10;

/** Returns the CPU time of one process in milliseconds, with all its threads. */
export async function cpuMs(pid: number): Promise<number> {
  const fields = await statFields(pid);
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_MS;
}

/** Returns the CPU time of the whole machine in milliseconds. */
export async function machineCpuMs(): Promise<number> {
  const stat = await readFile('/proc/stat', 'utf8').catch(() => '');
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0] = stat
    .split(/\s+/)
    .slice(1, 8)
    .map(Number);
  return (user + nice + system + interrupts + softInterrupts) * TICK_MS;
}

/** Includes the CPU time of children that have ended, so that the total of a process tree is complete. */
export async function cpuMsWithEnded(pid: number): Promise<number> {
  const fields = await statFields(pid);
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0);
}

/** Returns the resident memory of one process in bytes. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}

/** Returns the memory of one process in bytes, with a proportional share of the pages that it shares. */
export async function proportionalBytes(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0) * 1024;
}

/** Returns the ids of a process's children and their descendants. */
export async function descendants(pid: number): Promise<number[]> {
  const names = await readdir('/proc').catch(() => []);
  const ids = names.map(Number).filter((id) => id > 0);
  const parents = new Map<number, number>();
  for (const id of ids) parents.set(id, Number((await statFields(id))[1] ?? 0));
  const childrenOf = (parent: number): number[] =>
    ids.filter((id) => parents.get(id) === parent).flatMap((id) => [id, ...childrenOf(id)]);
  return childrenOf(pid);
}

/** Returns the fields of /proc/<pid>/stat after the name, which may contain spaces: state, parent, … */
async function statFields(pid: number): Promise<string[]> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
