import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EndpointHealth, hasFailedTooLong, healthAfterFailures, OPEN_AFTER_FAILURES, PAUSE } from './circuit.ts';
import { unixMs } from './time.ts';

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
