import type { FastifyRequest } from 'fastify';
import type { UnixMs } from '../../core/domain/time.ts';
import { keepNewest } from '../../core/runtime/keep-newest.ts';
import { clientOf } from './client-address.ts';
import { Problem } from './problem.ts';

/** Whether a request may pass and, if not, after how many seconds another one may. */
export type Verdict = { kind: 'pass' } | { kind: 'limited'; retryAfterSeconds: number };

export type TokenBuckets = {
  take(name: string, nowMs: number): Verdict;
  /** Undoes a `take` that passed. */
  giveBack(name: string): void;
};

/** Limits the memory, because strangers can choose any number of names. */
const MAX_BUCKETS = 10_000;

/**
 * Creates token buckets by name. Each allows `burst` requests in a burst and is refilled at `perSecond`. At most `maxBuckets` names are
 * kept, and the least recently used is dropped first. A bucket that was dropped starts full, which is in the caller's favour.
 */
export function createTokenBuckets({ perSecond, burst }: RateLimit, maxBuckets = MAX_BUCKETS): TokenBuckets {
  const buckets = new Map<string, { name: string; tokens: number; filledMs: number }>();
  return {
    take: (name, nowMs) => {
      const bucket = buckets.get(name) ?? { name: copyOf(name), tokens: burst, filledMs: nowMs };
      // The bucket becomes the newest, so the oldest is the least recently used one.
      keepNewest(buckets, bucket.name, bucket, maxBuckets);
      const elapsedSeconds = Math.max(0, nowMs - bucket.filledMs) / 1000;
      bucket.tokens = Math.min(burst, bucket.tokens + elapsedSeconds * perSecond);
      bucket.filledMs = nowMs;
      if (bucket.tokens >= 1) {
        bucket.tokens -= 1;
        return { kind: 'pass' };
      }
      return { kind: 'limited', retryAfterSeconds: Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond)) };
    },
    giveBack: (name) => {
      const bucket = buckets.get(name);
      if (bucket !== undefined) bucket.tokens = Math.min(burst, bucket.tokens + 1);
    },
  };
}

/** In V8, a substring keeps the whole string in memory, which here is a URL or header of up to 16 KiB. */
function copyOf(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}

export type RateLimit = { perSecond: number; burst: number };

/** Throws `RATE_LIMITED` with `Retry-After`, `RateLimit` and `RateLimit-Policy` if the request exceeds the limit. */
export function refuseLimited(verdict: Verdict, limit: RateLimit): void {
  if (verdict.kind === 'pass') return;
  const seconds = String(verdict.retryAfterSeconds);
  const windowSeconds = Math.max(1, Math.ceil(limit.burst / limit.perSecond));
  throw new Problem(
    'RATE_LIMITED',
    `More than ${limit.perSecond} requests/s (burst ${limit.burst}) arrived; retry in ${seconds} s.`,
    {
      headers: {
        'Retry-After': seconds,
        RateLimit: `"default";r=0;t=${seconds}`,
        'RateLimit-Policy': `"default";q=${limit.burst};w=${windowSeconds}`,
      },
    },
  );
}

/** Returns a function that throws `RATE_LIMITED` for a request whose client network exceeded the limit. */
export function limitNetworks(limit: RateLimit, now: () => UnixMs): (request: FastifyRequest) => void {
  const buckets = createTokenBuckets(limit);
  return (request) => refuseLimited(buckets.take(clientOf(request).network, now()), limit);
}
