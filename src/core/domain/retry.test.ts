import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type EndpointHealth,
  hasFailedTooLong,
  healthAfterFailures,
  MAX_ATTEMPTS,
  OPEN_AFTER_FAILURES,
  PAUSE,
  retryDelayMs,
  schedulePosition,
} from './retry.ts';
import { unixMs } from './time.ts';

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

const NOW = unixMs(1_800_000_000_000);
const DAY_MS = 86_400_000;
const HEALTHY: EndpointHealth = { failingSince: null, consecutiveFailures: 0, openUntil: null };
const pauseOf = ({ openUntil }: EndpointHealth) => (openUntil === null ? null : openUntil - NOW);

test('four failures in a row leave an endpoint open to attempts, the fifth closes it for a pause', () => {
  let health = HEALTHY;
  for (let failures = 1; failures < OPEN_AFTER_FAILURES; failures++) {
    health = healthAfterFailures(health, { probes: 0, others: 1 }, NOW);
    expect(health).toEqual({ failingSince: NOW, consecutiveFailures: failures, openUntil: NOW });
  }
  expect(pauseOf(healthAfterFailures(health, { probes: 0, others: 1 }, NOW))).toBe(PAUSE.leastMs);
});

test('a pause is a twentieth of the time for which the endpoint has failed, at least 0.75 s and at most 5 minutes', () => {
  const failing = healthAfterFailures(HEALTHY, { probes: 0, others: 5 }, NOW);
  const pauseAfter = (seconds: number) => {
    const at = unixMs(NOW + 1000 * seconds);
    return (healthAfterFailures(failing, { probes: 1, others: 0 }, at).openUntil ?? 0) - at;
  };
  expect([1, 15, 20, 60, 600, 6000, 7200].map(pauseAfter)).toEqual([750, 750, 1000, 3000, 30_000, 300_000, 300_000]);
});

test('an outage of five days costs fewer than 1,600 probes, and one of 20 s is noticed within a second', () => {
  let health = healthAfterFailures(HEALTHY, { probes: 0, others: 5 }, NOW);
  let probes = 0;
  for (let now = NOW; now - NOW < 5 * DAY_MS; probes++) {
    const next = health.openUntil ?? now;
    if (now - NOW <= 20_000) expect(next - now).toBeLessThanOrEqual(1000);
    now = next;
    health = healthAfterFailures(health, { probes: 1, others: 0 }, now);
  }
  expect(probes).toBeLessThan(1600);
});

test('attempts that were under way together when it began to fail make no longer a pause than five of them', () => {
  const opened = healthAfterFailures(HEALTHY, { probes: 0, others: 128 }, NOW);
  expect(pauseOf(opened)).toBe(PAUSE.leastMs);
  const later = unixMs(NOW + 1000);
  expect(healthAfterFailures(opened, { probes: 0, others: 20 }, later)).toEqual(opened);
});

test('an endpoint to which nothing was sent for longer than between two attempts begins to fail anew', () => {
  const failing = healthAfterFailures(HEALTHY, { probes: 0, others: 12 }, NOW);
  const until = failing.openUntil ?? 0;
  const probe = (afterMs: number) => healthAfterFailures(failing, { probes: 1, others: 0 }, unixMs(until + afterMs));
  expect(probe(37 * 3600 * 1000).failingSince).toBe(NOW);
  expect(probe(37 * 3600 * 1000 + 1).failingSince).toBe(until + 37 * 3600 * 1000 + 1);
  expect(probe(6 * DAY_MS).failingSince).toBe(until + 6 * DAY_MS);
  expect(hasFailedTooLong(probe(6 * DAY_MS), unixMs(until + 6 * DAY_MS))).toBe(false);
});

test.each([1, 4])('time without attempts does not count as failing after %i failures either', (count) => {
  const failing = healthAfterFailures(HEALTHY, { probes: 0, others: count }, NOW);
  const later = unixMs(NOW + 5 * DAY_MS);
  const failed = healthAfterFailures(failing, { probes: 0, others: 1 }, later);
  expect(failed.failingSince).toBe(later);
  expect(hasFailedTooLong(failed, later)).toBe(false);
});

test('whatever fails, the pause is at most 5 minutes, failures never become fewer, and the first failure is remembered', () => {
  // Long after the last failure it is always a probe that fails.
  const step = fc.record({
    probes: fc.integer({ min: 1, max: 3 }),
    others: fc.nat(200),
    afterMs: fc.nat(1.5 * DAY_MS),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let health = HEALTHY;
      let now = NOW;
      let first: number | null = null;
      for (const { probes, others, afterMs } of steps) {
        now = unixMs(now + afterMs);
        const after = healthAfterFailures(health, { probes, others }, now);
        first ??= now;
        expect(after.failingSince).toBe(first);
        expect(after.consecutiveFailures).toBeGreaterThanOrEqual(health.consecutiveFailures);
        expect((after.openUntil ?? 0) - now).toBeLessThanOrEqual(300_000);
        if (after.consecutiveFailures < OPEN_AFTER_FAILURES) expect(after.openUntil).toBe(now);
        health = after;
      }
    }),
  );
});

test('five days of failures are too long, and a millisecond less is not', () => {
  const failing = { ...HEALTHY, failingSince: NOW };
  expect(hasFailedTooLong(HEALTHY, unixMs(NOW + 100 * DAY_MS))).toBe(false);
  expect(hasFailedTooLong(failing, unixMs(NOW + 5 * DAY_MS - 1))).toBe(false);
  expect(hasFailedTooLong(failing, unixMs(NOW + 5 * DAY_MS))).toBe(true);
});
