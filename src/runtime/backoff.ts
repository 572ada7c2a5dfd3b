export type Backoff = { firstMs: number; longestMs: number };

/** The pause after so many failures in a row, from 1: the first, and twice as long each time up to the longest. */
export function backoffMs(failures: number, { firstMs, longestMs }: Backoff): number {
  // No pause is longer than its first one by more than this factor, and the product stays a number of milliseconds.
  return Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 30));
}
