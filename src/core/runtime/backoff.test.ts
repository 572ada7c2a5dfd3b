import { expect, test } from 'vitest';
import { backoffMs } from './backoff.ts';

test('a pause doubles with each failure, and not beyond the longest', () => {
  const pauses = [1, 2, 3, 4, 5, 1_000_000].map((failures) => backoffMs(failures, { firstMs: 250, longestMs: 1500 }));
  expect(pauses).toEqual([250, 500, 1000, 1500, 1500, 1500]);
});
