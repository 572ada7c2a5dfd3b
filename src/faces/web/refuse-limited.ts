import { Problem } from './problem.ts';
import type { Verdict } from './token-bucket.ts';

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
