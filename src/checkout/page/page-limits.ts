import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { UnixMs } from '../../domain/time.ts';
import { clientOf } from '../../web/client-address.ts';
import { Problem } from '../../web/problem.ts';
import { type RateLimit, refuseLimited } from '../../web/refuse-limited.ts';
import { createTokenBuckets } from '../../web/token-bucket.ts';
import { answerUnavailable } from './answer-page.ts';
import { DATA_HEADERS } from './headers.ts';

/**
 * The limit of one client network. Offices and mobile carriers share one address, as does everybody behind a reverse proxy that is not
 * trusted, and a page that polls takes a third of a request a second. So the limit is for clients that hammer; no client guesses one of
 * 2^128 links.
 */
const LIMIT: RateLimit = { perSecond: 50, burst: 500 };
const MAX_BUCKETS = 10_000;
/** People see these; programs are told in JSON. */
const PAGES = new Set(['/c/:token', '/c/:token/ask', '/c/:token/receipt', '/c/*']);

/** Other paths that are open to everybody and cost a query. */
const OTHERS = new Set(['/logos/:id', '/.well-known/quittance-receipt-keys.json']);

/**
 * Limits how often a client may ask for paths below `/c/`, whether the link is known or not, and for what belongs to them. The look-ups of
 * programs have their own, much lower limit.
 */
export function limitPages(app: FastifyInstance, { now }: { now(): UnixMs }): void {
  const buckets = createTokenBuckets(LIMIT.perSecond, LIMIT.burst, MAX_BUCKETS);
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

/** A page that is refused because the process is overloaded says so to people. */
function apologize(error: Error, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  if (!(error instanceof Problem && error.code === 'OVERLOADED')) throw error;
  return answerUnavailable(request, reply.code(503), Number(error.headers['Retry-After']));
}
