import type { UnixMs } from './time.ts';

/**
 * After a restore nobody knows which indexes were used since the backup, nor in how many restores of it before. Only time tells: an
 * index that is reached no sooner than a clock reaches it was used by nobody before. It runs from 2026 at two a second, and ends with
 * the indexes (2³¹) in 2060.
 */
const EPOCH_MS = Date.UTC(2026, 0, 1);
const INDEXES_A_SECOND = 2;
const LAST_INDEX = 2 ** 31 - 1;

/** The lowest index that was never used, whatever happened to the ledger before. */
export function indexAt(now: UnixMs): number {
  const seconds = Math.max(0, Math.floor((now - EPOCH_MS) / 1000));
  return Math.min(LAST_INDEX, 1 + seconds * INDEXES_A_SECOND);
}

/** How many addresses a restored ledger may derive now from the index `next`, so that it stays below `indexAt` of any later moment. */
export function derivableAt(now: UnixMs, next: number): number {
  return Math.max(0, indexAt(now) - next);
}
