import { type UnixMs, unixMs } from './time.ts';

/**
 * The results of recent attempts to an endpoint. `openUntil`: from the fifth consecutive failure on, no attempt is made before this time.
 * After fewer failures, it's the time of the last one.
 */
export type EndpointHealth = {
  failingSince: UnixMs | null;
  consecutiveFailures: number;
  openUntil: UnixMs | null;
};

/**
 * After this many consecutive failures the circuit opens, and attempts pause. From then on, one attempt at a time probes whether the
 * endpoint works again.
 */
export const OPEN_AFTER_FAILURES = 5;

/** The database's limit for the counter. */
const MOST_FAILURES = 1_000_000;

const DAY_MS = 24 * 3600 * 1000;
/**
 * After a failure the circuit stays open for a twentieth of the time that the endpoint has been failing, within these limits. So Quittance
 * notices a restarted endpoint within a second, and a dead one costs only twelve attempts an hour.
 */
export const PAUSE = { share: 20, leastMs: 750, mostMs: 300_000 };
/** An endpoint is disabled only after this time, so that an outage over a long weekend doesn't disable it. */
const DISABLED_AFTER_MS = 5 * DAY_MS;
/**
 * This is longer than the longest time between two attempts for one event (30 h plus a fifth). If an endpoint's last failure was longer ago
 * than this, there have been no attempts since.
 */
const IDLE_AFTER_MS = 37 * 3600 * 1000;

/**
 * Returns an endpoint's health after failed attempts, none of which was followed by a success. From the fifth consecutive failure on, the
 * circuit opens for a pause after each failed probe. All other attempts had already started when the failures began, so they count only
 * towards the first five failures. Time without attempts doesn't count as failing: after an idle period, an endpoint starts again from
 * zero.
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
  const paused = isOpened ? unixMs(now + failurePauseMs(failingSince, now)) : health.openUntil;
  return { failingSince, consecutiveFailures: failures, openUntil: failures < OPEN_AFTER_FAILURES ? now : paused };
}

/** Returns how long after a failure the next probe is due. */
export function failurePauseMs(failingSince: UnixMs, now: UnixMs): number {
  return Math.min(Math.max(Math.round((now - failingSince) / PAUSE.share), PAUSE.leastMs), PAUSE.mostMs);
}

/** Whether every attempt has failed for so long that the endpoint has probably been abandoned. */
export function hasFailedTooLong({ failingSince }: EndpointHealth, now: UnixMs): boolean {
  return failingSince !== null && now - failingSince >= DISABLED_AFTER_MS;
}
