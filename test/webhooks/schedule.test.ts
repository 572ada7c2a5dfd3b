import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAX_ATTEMPTS, retryDelayMs } from '../../src/domain/retry.ts';

const HOUR_MS = 3_600_000;
const chances = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), {
  minLength: MAX_ATTEMPTS,
  maxLength: MAX_ATTEMPTS,
});
const retryAfters = fc.array(fc.option(fc.integer({ min: 0, max: 1e12 })), {
  minLength: MAX_ATTEMPTS,
  maxLength: MAX_ATTEMPTS,
});

test('12 attempts span at least 75 hours and at most 16 days, whatever the jitter and the receiver ask for', () => {
  fc.assert(
    fc.property(chances, retryAfters, (randoms, asked) => {
      const delays = randoms.map((random, index) => retryDelayMs(index + 1, random, asked[index] ?? null));
      expect(MAX_ATTEMPTS).toBe(12);
      expect(delays.at(-1)).toBeNull();
      const spanMs = delays.reduce<number>((sum, delay) => sum + (delay ?? 0), 0);
      expect(spanMs).toBeGreaterThanOrEqual(75 * HOUR_MS);
      expect(spanMs).toBeLessThanOrEqual(16 * 24 * HOUR_MS);
      expect(delays.slice(0, -1).every((delay) => Number.isSafeInteger(delay))).toBe(true);
    }),
  );
});

test('the wait is never shorter than the Retry-After, up to a day', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: MAX_ATTEMPTS - 1 }), fc.nat(30 * HOUR_MS), (attempt, retryAfterMs) => {
      expect(retryDelayMs(attempt, 0, retryAfterMs)).toBeGreaterThanOrEqual(Math.min(retryAfterMs, 24 * HOUR_MS));
    }),
  );
});
