/** Timeouts, "too early", rate limits, and the statuses of servers and proxies that are restarting. */
const TRANSIENT = [408, 425, 429, 500, 502, 503, 504];
const FIRST_WAIT_MS = 500;
const LONGEST_BACKOFF_MS = 8_000;
/** If a server asks for a longer wait, the SDK doesn't retry, because the caller's user wouldn't wait that long. */
const LONGEST_WAIT_MS = 30_000;

/** Whether the same request may succeed a little later. */
export function isTransient(status: number): boolean {
  return TRANSIENT.includes(status);
}

/**
 * Whether a server asks for a longer wait than the SDK allows, so that the caller gets the error immediately. This happens if a shop has
 * reached its limit on unpaid invoices.
 */
export function isTooLong(retryAfterMs: number | undefined): boolean {
  return (retryAfterMs ?? 0) > LONGEST_WAIT_MS;
}

/**
 * Returns how long to wait after attempt number `attempt` (from 0) failed: twice as long each time, half of it random, and at least as long
 * as the server asks for.
 */
export function retryWaitMs(attempt: number, retryAfterMs: number | undefined, random: number): number {
  const backoffMs = Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_BACKOFF_MS);
  return Math.max((backoffMs * (1 + random)) / 2, retryAfterMs ?? 0);
}

/** Parses `Retry-After: 120` or `Retry-After: Wed, 21 Oct 2026 07:28:00 GMT` to milliseconds. Returns undefined for anything else. */
export function readRetryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  // `Date.parse` accepts much more than HTTP dates: "-5" is a day in May.
  const until = value.endsWith(' GMT') ? Date.parse(value) : Number.NaN;
  return Number.isNaN(until) ? undefined : Math.max(0, until - now);
}
