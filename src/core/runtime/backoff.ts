export type Backoff = { firstMs: number; longestMs: number };

/** Returns the pause after `failures` failures in a row, counted from 1. It starts at `firstMs` and doubles up to `longestMs`. */
export function backoffMs(failures: number, { firstMs, longestMs }: Backoff): number {
  // The bounded exponent keeps the product a safe number. No configuration needs a larger factor.
  return Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 30));
}
