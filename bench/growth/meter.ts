import { readFile } from 'node:fs/promises';
import type { Client } from 'pg';
import { cpuMsWithEnded, descendants } from '../proc.ts';

/** The cost of work besides its time: the CPU of the benchmark and of PostgreSQL, bytes read from the disk, and bytes of the log. */
export type Cost = { cpuMs: number; readBytes: number; logBytes: number };

export const NO_COST: Cost = { cpuMs: 0, readBytes: 0, logBytes: 0 };

/** Runs work and returns its cost. Includes other work in the benchmark's process and its server. */
export async function meter<Result>(
  client: Client,
  work: () => Promise<Result>,
): Promise<{ result: Result; cost: Cost }> {
  const before = await readCost(client);
  const result = await work();
  const after = await readCost(client);
  return { result, cost: combine(after, before, (a, b) => a - b) };
}

/** Adds an equal share of the other cost. */
export function addCost(sum: Cost, other: Cost, shares = 1): Cost {
  return combine(sum, other, (a, b) => a + b / shares);
}

function combine(one: Cost, other: Cost, by: (a: number, b: number) => number): Cost {
  return {
    cpuMs: by(one.cpuMs, other.cpuMs),
    readBytes: by(one.readBytes, other.readBytes),
    logBytes: by(one.logBytes, other.logBytes),
  };
}

/** Returns the cost of the benchmark's processes so far. Linux adds the cost of ended processes to their parent. */
async function readCost(client: Client): Promise<Cost> {
  const { rows } = await client.query<{ bytes: string }>("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as bytes");
  let cost: Cost = { ...NO_COST, logBytes: Number(rows[0]?.bytes ?? 0) };
  for (const pid of [process.pid, ...(await descendants(process.pid))]) {
    cost = addCost(cost, { cpuMs: await cpuMsWithEnded(pid), readBytes: await bytesRead(pid), logBytes: 0 });
  }
  return cost;
}

/** Returns the bytes that a process had to read from the disk, without those from the system's cache. */
async function bytesRead(pid: number): Promise<number> {
  const io = await readFile(`/proc/${pid}/io`, 'utf8').catch(() => '');
  return Number(/^read_bytes: (\d+)$/m.exec(io)?.[1] ?? 0);
}
