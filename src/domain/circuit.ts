import { type UnixMs, unixMs } from './time.ts';

/** How attempts to an endpoint have fared. `openUntil`: none is made before. */
export type EndpointHealth = {
  failingSince: UnixMs | null;
  consecutiveFailures: number;
  openUntil: UnixMs | null;
};

/** Failures in a row after which an endpoint is left alone for a while; then one attempt at a time finds out whether it is back. */
export const OPEN_AFTER_FAILURES = 5;

/** The bound of the count in the database. */
const MOST_FAILURES = 1_000_000;

const DAY_MS = 24 * 3600 * 1000;
/**
 * After a failure an endpoint is left alone for a twentieth of the time for which it has failed, within these bounds: one that restarts
 * is noticed within a second, and one that is gone for good costs twelve attempts an hour.
 */
export const PAUSE = { share: 20, leastMs: 750, mostMs: 300_000 };
/** Longer than a long weekend. */
const DISABLED_AFTER_MS = 5 * DAY_MS;
/** More than lies between two attempts at one event (30 h and a fifth). An endpoint that failed longer ago had nothing to fail at since. */
const IDLE_AFTER_MS = 37 * 3600 * 1000;

/**
 * The health of an endpoint after attempts that failed, with none that succeeded among or after them. From the fifth failure in a row
 * on the endpoint is left alone for a pause after each probe that fails. Attempts that are no probes were under way when it began to
 * fail, and say no more than the first five of them. Time in which nothing was attempted is no time of failing: an endpoint that was
 * idle since begins to fail anew.
 */
export function healthAfterFailures(
  health: EndpointHealth,
  { probes, others }: { probes: number; others: number },
  now: UnixMs,
): EndpointHealth {
  const before = health.consecutiveFailures;
  const counted = Math.max(before, Math.min(before + others, OPEN_AFTER_FAILURES)) + probes;
  const failures = Math.min(counted, MOST_FAILURES);
  const isOpened = failures >= OPEN_AFTER_FAILURES && failures > before;
  const wasIdle = health.openUntil !== null && now - health.openUntil > IDLE_AFTER_MS;
  const failingSince = wasIdle ? now : (health.failingSince ?? now);
  const openUntil = isOpened ? unixMs(now + failurePauseMs(failingSince, now)) : health.openUntil;
  return { failingSince, consecutiveFailures: failures, openUntil };
}

/** How long after a failure the next attempt may find out whether the endpoint is back. */
export function failurePauseMs(failingSince: UnixMs, now: UnixMs): number {
  return Math.min(Math.max(Math.round((now - failingSince) / PAUSE.share), PAUSE.leastMs), PAUSE.mostMs);
}

/** Whether every attempt has failed for so long that nobody seems to run the endpoint any more. */
export function hasFailedTooLong({ failingSince }: EndpointHealth, now: UnixMs): boolean {
  return failingSince !== null && now - failingSince >= DISABLED_AFTER_MS;
}
