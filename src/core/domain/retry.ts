import { DAY_MS, type UnixMs, unixMs } from './time.ts';

/**
 * The delays before the webhook attempts, in seconds: 12 attempts over a little more than 75 hours, as in Standard Webhooks. They are close
 * together at first, to cover a deployment or restart, and far apart later, to survive an outage over a long weekend.
 */
const DELAYS_SECONDS = [0, 5, 30, 120, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 108_000] as const;

/** After this many attempts a delivery is dead. */
export const MAX_ATTEMPTS = DELAYS_SECONDS.length;

/**
 * Returns an attempt's position in the schedule, starting at 1. A replay raises `maxAttempts`, which restarts the schedule. If
 * `maxAttempts` is 1, the first attempt is already the last one in the schedule.
 */
export function schedulePosition(attempt: number, maxAttempts: number): number {
  return Math.max(1, MAX_ATTEMPTS - (maxAttempts - attempt));
}

/** Quittance respects a receiver's Retry-After up to one day, so that the receiver can't delay a delivery indefinitely. */
const MAX_RETRY_AFTER_MS = 24 * 3600 * 1000;

/**
 * The text that is appended to the error of an attempt whose response had a Retry-After header, because the receiver's wish isn't stored
 * anywhere else. Until the pause is over, Quittance doesn't expedite the delivery. `ASKED_SECONDS` finds the number in PostgreSQL.
 */
export const pauseAsked = (retryAfterMs: number) =>
  `; it requested a pause of ${Math.ceil(askedPauseMs(retryAfterMs) / 1000)} s`;
export const ASKED_SECONDS = '; it requested a pause of ([0-9]{1,5}) s$';

/**
 * Matches the attempt errors that mean that an adapter's shop is down: no response, or a response from a proxy in front of it. Any other
 * response affects only that callback, which is then retried on schedule. The pattern works in both JavaScript and PostgreSQL.
 */
export const OUTAGE =
  '^(timeout|dns|connection_refused|connection_lost|unreachable|tls|network|http_(50[234]|52[0-9]|530)):';

/** Returns the pause that a response asks for, in milliseconds, up to the limit. */
export function askedPauseMs(retryAfterMs: number | null): number {
  return Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
}

/**
 * Returns how many milliseconds to wait after the attempt at position `attempts` of the schedule (starting at 1) failed, or `null` if it
 * was the last one. `random`, from 0 to 1, adds up to 20 % of jitter. The result is never shorter than the scheduled delay or than
 * `retryAfterMs`.
 */
export function retryDelayMs(attempts: number, random: number, retryAfterMs: number | null): number | null {
  const seconds = DELAYS_SECONDS[attempts];
  if (seconds === undefined) return null;
  const scheduledMs = Math.round(seconds * 1000 * (1 + 0.2 * random));
  return Math.max(scheduledMs, askedPauseMs(retryAfterMs));
}

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
