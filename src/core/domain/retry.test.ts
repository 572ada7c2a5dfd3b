import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAX_ATTEMPTS, retryDelayMs, schedulePosition } from './retry.ts';

const HOUR_MS = 3_600_000;
const random = fc.double({ min: 0, max: 1, noNaN: true });
const attempts = fc.integer({ min: 1, max: 11 });

/** From the first attempt to the last, with the same jitter each time. */
function spanMs(jitter: number): number {
  return Array.from({ length: MAX_ATTEMPTS - 1 }, (_, index) => retryDelayMs(index + 1, jitter, null) ?? 0).reduce(
    (sum, delay) => sum + delay,
  );
}

test('there are 12 attempts', () => {
  expect(MAX_ATTEMPTS).toBe(12);
  expect(retryDelayMs(11, 0, null)).not.toBeNull();
  for (const after of [12, 13, 1000]) expect(retryDelayMs(after, 0.5, null)).toBeNull();
});

test('over at least 75 hours, also with the least jitter, and within five days with the most', () => {
  expect(spanMs(0)).toBeGreaterThanOrEqual(75 * HOUR_MS);
  expect(spanMs(1)).toBeLessThan(5 * 24 * HOUR_MS);
});

test('each wait is longer than the one before', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10 }), random, random, (after, a, b) => {
      expect(retryDelayMs(after + 1, a, null)).toBeGreaterThan(retryDelayMs(after, b, null) ?? 0);
    }),
  );
});

test('jitter only lengthens a wait, by a fifth at most', () => {
  fc.assert(
    fc.property(attempts, random, (after, jitter) => {
      const [least, drawn] = [retryDelayMs(after, 0, null) ?? 0, retryDelayMs(after, jitter, null) ?? 0];
      expect(drawn).toBeGreaterThanOrEqual(least);
      expect(drawn).toBeLessThanOrEqual(least * 1.2);
      expect(Number.isInteger(drawn)).toBe(true);
    }),
  );
});

test('Retry-After is honoured up to a day, and never shortens a wait', () => {
  fc.assert(
    fc.property(attempts, random, fc.integer({ min: 0, max: 100 * 24 * HOUR_MS }), (after, jitter, retryAfterMs) => {
      const scheduled = retryDelayMs(after, jitter, null) ?? 0;
      expect(retryDelayMs(after, jitter, retryAfterMs)).toBe(Math.max(scheduled, Math.min(retryAfterMs, 24 * HOUR_MS)));
    }),
  );
});

test('Retry-After does not add an attempt', () => {
  expect(retryDelayMs(12, 0, 1000)).toBeNull();
});

test('a replay begins the schedule anew, however many attempts there were, and a single attempt is the last at once', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 1, max: 12 }), (before, attempt) => {
      expect(schedulePosition(before + attempt, before + MAX_ATTEMPTS)).toBe(attempt);
    }),
  );
  expect(retryDelayMs(schedulePosition(1, 1), 0, null)).toBeNull();
  expect(retryDelayMs(schedulePosition(14, 13), 0, null)).toBeNull();
  expect(schedulePosition(1, 40)).toBe(1);
});
