import type { FastifyRequest } from 'fastify';
import type { UnixMs } from '../../core/domain/time.ts';
import { clientOf } from './client-address.ts';
import { type RateLimit, refuseLimited } from './refuse-limited.ts';
import { createTokenBuckets } from './token-bucket.ts';

const MAX_BUCKETS = 10_000;

/** Returns a function that throws `RATE_LIMITED` for a request whose client network exceeded the limit. */
export function limitNetworks(limit: RateLimit, now: () => UnixMs): (request: FastifyRequest) => void {
  const buckets = createTokenBuckets(limit.perSecond, limit.burst, MAX_BUCKETS);
  return (request) => refuseLimited(buckets.take(clientOf(request).network, now()), limit);
}
