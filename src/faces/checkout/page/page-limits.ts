import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { UnixMs } from '../../../core/domain/time.ts';
import { clientOf } from '../../web/client-address.ts';
import { Problem } from '../../web/problem.ts';
import { createTokenBuckets, type RateLimit, refuseLimited } from '../../web/rate-limit.ts';
import { answerUnavailable, DATA_HEADERS } from './answer-page.ts';

/**
 * The limit per client network. Offices, mobile carriers and clients behind an untrusted reverse proxy share an address, and a page that
 * polls sends a request every three seconds. So the limit only stops clients that flood the server. It doesn't have to prevent guessing,
 * because there are 2^128 links.
 */
const LIMIT: RateLimit = { perSecond: 50, burst: 500 };
/** Responses from these routes are pages for people; all others are JSON. */
const PAGES = new Set(['/c/:token', '/c/:token/ask', '/c/:token/receipt', '/c/*']);

/** Other public paths that cost a query. */
const OTHERS = new Set(['/logos/:id', '/.well-known/quittance-receipt-keys.json']);

/**
 * Limits how often a client may request paths below `/c/`, for known and unknown links, and their assets. Look-ups by programs have their
 * own limit, which is much lower.
 */
export function limitPages(app: FastifyInstance, { now }: { now(): UnixMs }): void {
  const buckets = createTokenBuckets(LIMIT);
  app.addHook('onRoute', (route) => {
    if (PAGES.has(route.url)) route.errorHandler ??= apologize;
  });
  app.addHook('onRequest', (request, reply, done) => {
    const { url = '' } = request.routeOptions;
    if (!(url.startsWith('/c/') || OTHERS.has(url)) || url === '/c/:token/lookup') return done();
    const verdict = buckets.take(clientOf(request).network, now());
    if (verdict.kind === 'pass') return done();
    if (PAGES.has(url)) {
      answerUnavailable(request, reply.code(429), verdict.retryAfterSeconds).catch(done);
      return;
    }
    reply.headers(DATA_HEADERS);
    refuseLimited(verdict, LIMIT);
  });
}

/** Responds with a page for people if their request is refused because the process is overloaded. */
function apologize(error: Error, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  if (!(error instanceof Problem && error.code === 'OVERLOADED')) throw error;
  return answerUnavailable(request, reply.code(503), Number(error.headers['Retry-After']));
}
