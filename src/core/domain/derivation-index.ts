import type { UnixMs } from './time.ts';

/**
 * After a restore, it's unknown which indexes were used since the backup, or after earlier restores of that backup. Therefore a clock
 * limits the indexes: no index is used before the clock reaches it, so an index that the clock hasn't reached can't have been used. The
 * clock starts in 2026, advances by two indexes per second, and reaches the last index (2³¹) in 2060.
 */
const EPOCH_MS = Date.UTC(2026, 0, 1);
const INDEXES_A_SECOND = 2;
const LAST_INDEX = 2 ** 31 - 1;

/** Returns the lowest index that has certainly never been used, no matter what happened to the ledger before. */
export function indexAt(now: UnixMs): number {
  const seconds = Math.max(0, Math.floor((now - EPOCH_MS) / 1000));
  return Math.min(LAST_INDEX, 1 + seconds * INDEXES_A_SECOND);
}

/**
 * Returns how many addresses a restored ledger may derive now, starting at the index `next`, so that it stays below `indexAt` at any later
 * moment.
 */
export function derivableAt(now: UnixMs, next: number): number {
  return Math.max(0, indexAt(now) - next);
}
