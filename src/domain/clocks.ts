import type { UnixMs } from './time.ts';

/** By which invoices are made and expire. `problem`: why none may be made by it now, or `null`. */
export type DeadlineClock = { now(): UnixMs; problem(): string | null };

/**
 * What the clocks show at one moment, in Unix milliseconds. `chain`: of the newest verified block that is known, `null` where no real
 * network is followed. `isLive`: its time goes on as time does, so it is that of now, to some seconds. Else it says only that it is later by
 * now: what is verified was made before.
 */
export type Readings = { process: number; database: number; chain: { time: number; isLive: boolean } | null };

/**
 * `byMs`: how far ahead, less than 0 where behind; of `both` the one that is nearer. `unclear`: it cannot be told; how far both
 * are ahead of the chain, or the process of the database, which is 0 then.
 */
export type Verdict =
  | { kind: 'right' }
  | { kind: 'process' | 'database' | 'both'; byMs: number }
  | { kind: 'unclear'; process: number; database: number };

/** Clocks that are looked after differ by milliseconds; a block that is examined is seconds old. */
export const MOST_MS = 30_000;

/** Which clock is wrong: the one that two others agree against, or that is behind a block which was made already. */
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
