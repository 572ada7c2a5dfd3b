/**
 * Delays before each webhook attempt, in seconds: 12 attempts over a little more than 75 hours, as in Standard Webhooks. They are dense
 * while a deploy or restart is likely, and sparse for an outage over a long weekend.
 */
const DELAYS_SECONDS = [0, 5, 30, 120, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 108_000] as const;

/** The number of attempts after which a delivery is dead. */
export const MAX_ATTEMPTS = DELAYS_SECONDS.length;

/**
 * The position of attempt number `attempt` in the schedule, from 1. A replay raises `maxAttempts`, which restarts the schedule. A delivery
 * with `maxAttempts` 1 is at the end of its schedule at once.
 */
export function schedulePosition(attempt: number, maxAttempts: number): number {
  return Math.max(1, MAX_ATTEMPTS - (maxAttempts - attempt));
}

/** A receiver's Retry-After is honoured up to one day, so that it can't park a delivery permanently. */
const MAX_RETRY_AFTER_MS = 24 * 3600 * 1000;

/**
 * Ends the error of an attempt whose answer had a Retry-After. Such a delivery is never expedited. The pause request isn't stored anywhere
 * else.
 */
export const PAUSE_ASKED = '; it asks for a pause';

/**
 * The errors of attempts to an adapter's shop that mean that the shop is down: no answer, or an answer of a proxy in front of it. Any other
 * answer concerns only this callback, which is then retried by its schedule. A regular expression for JavaScript and PostgreSQL.
 */
export const OUTAGE =
  '^(timeout|dns|connection_refused|connection_lost|unreachable|tls|network|http_(50[234]|52[0-9]|530)):';

/** The pause that an answer asks for in milliseconds, up to the limit. */
export function askedPauseMs(retryAfterMs: number | null): number {
  return Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
}

/**
 * Milliseconds to wait after the attempt at position `attempts` of the schedule (1-based) failed, or `null` if that was the last one.
 * `random` in 0 … 1 adds up to 20 % of jitter. The delay is never shorter than the schedule or than `retryAfterMs`.
 */
export function retryDelayMs(attempts: number, random: number, retryAfterMs: number | null): number | null {
  const seconds = DELAYS_SECONDS[attempts];
  if (seconds === undefined) return null;
  const scheduledMs = Math.round(seconds * 1000 * (1 + 0.2 * random));
  return Math.max(scheduledMs, askedPauseMs(retryAfterMs));
}
