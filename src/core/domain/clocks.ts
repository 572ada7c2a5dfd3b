import type { UnixMs } from './time.ts';

/** The clock for creation and expiry of invoices. `problem`: why no invoice may be created by it now, or `null`. */
export type DeadlineClock = { now(): UnixMs; problem(): string | null };

/**
 * The readings of all clocks at one moment, in Unix milliseconds. `chain`: the time of the newest known verified block; `null` if no real
 * network is followed. `isLive`: its time advances at the pace of real time, so it's current to within some seconds. Otherwise it's only a
 * lower bound, because a verified block was made in the past.
 */
export type Readings = { process: number; database: number; chain: { time: number; isLive: boolean } | null };

/**
 * `byMs`: how far ahead, negative if behind; for `both` that of the nearer clock. `unclear`: it can't be decided. Then the values are how
 * far both are ahead of the chain, or how far the process is ahead of the database, which is then 0.
 */
export type Verdict =
  | { kind: 'right' }
  | { kind: 'process' | 'database' | 'both'; byMs: number }
  | { kind: 'unclear'; process: number; database: number };

/** Synchronized clocks differ by milliseconds, and an examined block is seconds old. */
export const MOST_MS = 30_000;

/** Decides which clock is wrong: the one that two others contradict, or that is behind a block that was already made. */
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
