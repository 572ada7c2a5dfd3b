import { setTimeout as delay } from 'node:timers/promises';
import type { UnixMs } from '../../domain/time.ts';

type Turn = 'taken' | 'exhausted' | 'too-many-waiting';

/** How many requests a node may get: so many a second with a burst of one second's worth, and so many per UTC day. */
export type NodeBudget = {
  /** Resolves when it is the caller's turn, in the order of the calls. Rejects when `signal` aborts. */
  take(signal: AbortSignal): Promise<Turn>;
  isExhausted(): boolean;
  requestsToday(): number;
  /** `null` without a limit. */
  requestsLeft(): number | null;
  /** The used share of the day's requests, 0 to 1; `null` without a limit. */
  usedShare(): number | null;
};

const DAY_MS = 24 * 60 * 60_000;
/** Beyond this a waiting request is stale, and another node is the better choice. */
const MAX_WAITING = 200;
const MAX_WAIT_SECONDS = 10;

export type NodeBudgetOptions = {
  requestsPerSecond: number | null;
  requestsPerDay: number | null;
  now(): UnixMs;
  /** A monotonic clock in milliseconds. */
  clockMs(): number;
};

/** Counts from 0 when the process starts: a restart forgets what was used of the day. */
export function createNodeBudget({ requestsPerSecond, requestsPerDay, now, clockMs }: NodeBudgetOptions): NodeBudget {
  const perDay = requestsPerDay ?? Number.POSITIVE_INFINITY;
  const bucket = requestsPerSecond === null ? null : createBucket(requestsPerSecond, clockMs);
  let day = -1;
  let count = 0;
  const requestsToday = () => {
    const today = Math.floor(now() / DAY_MS);
    if (today !== day) count = 0;
    day = today;
    return count;
  };
  const isExhausted = () => requestsToday() >= perDay;
  return {
    isExhausted,
    requestsToday,
    requestsLeft: () => (requestsPerDay === null ? null : Math.max(0, requestsPerDay - requestsToday())),
    usedShare: () => (requestsPerDay === null ? null : requestsToday() / requestsPerDay),
    take: async (signal) => {
      if (isExhausted()) return 'exhausted';
      const waitMs = bucket === null ? 0 : bucket.reserve();
      if (waitMs === null) return 'too-many-waiting';
      count += 1;
      if (waitMs > 0) await delay(waitMs, undefined, { signal });
      return 'taken';
    },
  };
}

/** Tokens may go below zero: the debt sets how long the taker waits, so turns come in the order of taking. */
function createBucket(perSecond: number, clockMs: () => number) {
  const burst = Math.max(1, perSecond);
  const maxDebt = Math.min(MAX_WAITING, Math.max(1, perSecond * MAX_WAIT_SECONDS));
  let tokens = burst;
  let filledMs = clockMs();
  return {
    /** The wait in milliseconds; `null` when too many wait already. */
    reserve: (): number | null => {
      const nowMs = clockMs();
      tokens = Math.min(burst, tokens + ((nowMs - filledMs) / 1000) * perSecond);
      filledMs = nowMs;
      if (tokens - 1 < -maxDebt) return null;
      tokens -= 1;
      return tokens >= 0 ? 0 : (-tokens / perSecond) * 1000;
    },
  };
}
