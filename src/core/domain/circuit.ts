import { type UnixMs, unixMs } from './time.ts';

/** The recent results of attempts to an endpoint. `openUntil`: no attempt is made before. */
export type EndpointHealth = {
  failingSince: UnixMs | null;
  consecutiveFailures: number;
  openUntil: UnixMs | null;
};

/**
 * After this many consecutive failures the circuit opens and attempts pause. Then one attempt at a time probes whether the endpoint is
 * back.
 */
export const OPEN_AFTER_FAILURES = 5;

/** The limit of the count in the database. */
const MOST_FAILURES = 1_000_000;

const DAY_MS = 24 * 3600 * 1000;
/**
 * After a failure the circuit stays open for a twentieth of the time since the endpoint began to fail, within these limits. A restarting
 * endpoint is noticed within a second, and a dead one costs twelve attempts an hour.
 */
export const PAUSE = { share: 20, leastMs: 750, mostMs: 300_000 };
/** Longer than a long weekend. */
const DISABLED_AFTER_MS = 5 * DAY_MS;
/**
 * More than the time between two attempts of one event (30 h and a fifth). An endpoint that failed longer ago has had no attempts since.
 */
const IDLE_AFTER_MS = 37 * 3600 * 1000;

/**
 * The health of an endpoint after failed attempts, with no success among or after them. From the fifth consecutive failure on, the circuit
 * opens for a pause after each failed probe. Attempts that aren't probes were already running when the failures began, and count only up to
 * the first five. Time without attempts isn't time of failing: after an idle period an endpoint starts to fail again from zero.
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

/** How long after a failure the next probe is due. */
export function failurePauseMs(failingSince: UnixMs, now: UnixMs): number {
  return Math.min(Math.max(Math.round((now - failingSince) / PAUSE.share), PAUSE.leastMs), PAUSE.mostMs);
}

/** Whether every attempt has failed for so long that the endpoint seems abandoned. */
export function hasFailedTooLong({ failingSince }: EndpointHealth, now: UnixMs): boolean {
  return failingSince !== null && now - failingSince >= DISABLED_AFTER_MS;
}
