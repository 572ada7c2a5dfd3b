/**
 * Delays before each webhook attempt, in seconds: 12 attempts over a little more than 75 hours, as in
 * Standard Webhooks: dense while a deploy or restart is likely, sparse for an outage over a long weekend.
 */
const DELAYS_SECONDS = [0, 5, 30, 120, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 108_000] as const;

/** The number of attempts after which a delivery is dead. */
export const MAX_ATTEMPTS = DELAYS_SECONDS.length;

/**
 * Where attempt number `attempt` of a delivery stands in the schedule, from 1. A replay raises `maxAttempts`, and so begins the
 * schedule anew; a delivery with `maxAttempts` 1 is at its end at once.
 */
export function schedulePosition(attempt: number, maxAttempts: number): number {
  return Math.max(1, MAX_ATTEMPTS - (maxAttempts - attempt));
}

/** A receiver's Retry-After is honoured up to one day, so that it cannot park a delivery for ever. */
const MAX_RETRY_AFTER_MS = 24 * 3600 * 1000;

/** Ends the error of an attempt whose answer had a Retry-After. Such a delivery is never hastened; nothing else keeps that it was asked. */
export const PAUSE_ASKED = '; it asks for a pause';

/**
 * The errors of attempts at a shop of an adapter that say that it is away: no answer, or one of a proxy before it. Whatever else it answers is
 * an answer to this one callback, which then comes by its schedule alone. A regular expression, also of PostgreSQL.
 */
export const OUTAGE =
  '^(timeout|dns|connection_refused|connection_lost|unreachable|tls|network|http_(50[234]|52[0-9]|530)):';

/** Milliseconds for which an answer asks to be left alone, as far as that is honoured. */
export function askedPauseMs(retryAfterMs: number | null): number {
  return Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
}

/**
 * Milliseconds to wait after the attempt at position `attempts` of the schedule (1-based) failed, or `null` when that was the last
 * one.
 * `random` in 0 … 1 adds up to 20 % of jitter; the delay is never shorter than the schedule or than `retryAfterMs`.
 */
export function retryDelayMs(attempts: number, random: number, retryAfterMs: number | null): number | null {
  const seconds = DELAYS_SECONDS[attempts];
  if (seconds === undefined) return null;
  const scheduledMs = Math.round(seconds * 1000 * (1 + 0.2 * random));
  return Math.max(scheduledMs, askedPauseMs(retryAfterMs));
}
