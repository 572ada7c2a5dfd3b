import type { UnixMs } from './time.ts';

/**
 * The clock that decides when invoices are created and expire. `problem()` returns why no invoices may be created with this clock at the
 * moment, or `null`.
 */
export type DeadlineClock = { now(): UnixMs; problem(): string | null };

/**
 * The readings of all clocks at the same moment, in Unix milliseconds. `chain` is the time of the newest verified block, or `null` if no
 * real network is followed. With `isLive`, the chain keeps pace with real time, so its time is at most a few seconds old. Otherwise this
 * time is only a lower bound, because every verified block was made in the past.
 */
type Readings = { process: number; database: number; chain: { time: number; isLive: boolean } | null };

/**
 * `byMs` is how far the wrong clock is ahead, or behind if negative. For `both`, it refers to the clock that is less wrong. `unclear` means
 * that Quittance can't decide which clock is wrong. In that case, the values are how far each clock is ahead of the chain. Without a chain,
 * `process` is how far the process is ahead of the database, and `database` is 0.
 */
export type Verdict =
  | { kind: 'right' }
  | { kind: 'process' | 'database' | 'both'; byMs: number }
  | { kind: 'unclear'; process: number; database: number };

/** Synchronised clocks differ by milliseconds, and a block is examined seconds after it was made. */
export const MOST_MS = 30_000;

/** Decides which clock is wrong. A clock is wrong if the two others contradict it, or if it's behind a block that already exists. */
export function judgeClocks({ process, database, chain }: Readings): Verdict {
  const apart = process - database;
  const areApart = Math.abs(apart) >= MOST_MS;
  if (chain === null) return areApart ? { kind: 'unclear', process: apart, database: 0 } : { kind: 'right' };
  const [ofProcess, ofDatabase] = [process - chain.time, database - chain.time];
  const isBehind = { process: ofProcess <= -MOST_MS, database: ofDatabase <= -MOST_MS };
  if (isBehind.process && (isBehind.database || !areApart)) {
    return { kind: 'both', byMs: Math.max(ofProcess, ofDatabase) };
  }
  if (!areApart) {
    if (isBehind.database) return { kind: 'both', byMs: ofDatabase };
    const isAhead = chain.isLive && Math.min(ofProcess, ofDatabase) >= MOST_MS;
    return isAhead ? { kind: 'unclear', process: ofProcess, database: ofDatabase } : { kind: 'right' };
  }
  if (isBehind.process) return { kind: 'process', byMs: apart };
  if (isBehind.database) return { kind: 'database', byMs: -apart };
  const nearest = Math.min(Math.abs(ofProcess), Math.abs(ofDatabase));
  if (!chain.isLive || nearest >= MOST_MS) return { kind: 'unclear', process: apart, database: 0 };
  return Math.abs(ofProcess) > Math.abs(ofDatabase)
    ? { kind: 'process', byMs: apart }
    : { kind: 'database', byMs: -apart };
}
