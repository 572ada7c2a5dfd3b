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
