import { isIP } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { findValidApiKey } from '../store/api-keys.ts';
import type { Caller } from '../web/authenticate.ts';
import { Problem, problemOf } from '../web/problem.ts';
import { headerValues, MAX_BODY_BYTES } from '../web/server.ts';
import type { Verdict } from '../web/token-bucket.ts';
import type { ApiDeps } from './api-deps.ts';

const JSON_TYPE = /^application\/json[ \t]*(;[ \t]*charset=("utf-8"|utf-8)[ \t]*)?$/i;

const CALLER = Symbol('caller');
type GuardedRequest = FastifyRequest & { [CALLER]?: Caller };

/** Who sent a request that passed the guard. */
export function callerOf(request: GuardedRequest): Caller {
  const caller = request[CALLER];
  if (caller === undefined) throw new Error('the route has no guard');
  return caller;
}

/**
 * The checks before a body is read, in the order of the contract: authentication, rate limit, content type and size.
 * Route and method were checked by the router; the idempotency header and the body follow in the route.
 */
export function createGuard(deps: ApiDeps) {
  return {
    onRequest: async (request: GuardedRequest, reply: FastifyReply): Promise<void> => {
      reply.header('Cache-Control', 'no-store');
      const caller = await deps.authenticator.authenticate(singleHeader(request, 'x-api-key'), request.ip);
      if (caller === null) {
        refuseLimited(deps.failureBuckets.take(clientNetwork(request.ip), deps.now()), FAILURE_LIMIT);
        throw problemOf('unauthenticated');
      }
      refuseLimited(deps.keyBuckets.take(caller.keyId, deps.now()), deps.rateLimit);
      request[CALLER] = caller;
      if (request.method === 'POST') checkBodyHeaders(request);
    },
    errorHandler: async (error: unknown, request: GuardedRequest): Promise<never> => {
      const caller = request[CALLER];
      if (caller !== undefined && isAboutInput(error)) await confirmKey(deps, caller.keyId);
      throw error;
    },
  };
}

/** Whether an answer tells only what is wrong with a request, so that no statement has looked at its key. */
function isAboutInput(error: unknown): boolean {
  const { status, statusCode } = error as { status?: unknown; statusCode?: unknown };
  return [400, 413, 415, 422].includes(Number(status ?? statusCode));
}

/** A remembered key may have been revoked since: then the request gets the one answer of all such keys. */
async function confirmKey({ db, authenticator, now }: ApiDeps, keyId: string): Promise<void> {
  if ((await findValidApiKey(db, keyId, now())) !== null) return;
  authenticator.forget(keyId);
  throw problemOf('unauthenticated');
}

/** Failed authentications that one client address may make: enough for a mistake in a loop, useless for guessing. */
export const FAILURE_LIMIT = { perSecond: 5, burst: 20 };

function checkBodyHeaders(request: FastifyRequest): void {
  const type = singleHeader(request, 'content-type');
  if (type === undefined || !JSON_TYPE.test(type)) {
    const seen = request.headers['content-type'];
    throw new Problem(
      'UNSUPPORTED_MEDIA_TYPE',
      seen === undefined
        ? 'The Content-Type header is missing; send application/json.'
        : `The content type is ${seen.slice(0, 100)}; send application/json.`,
    );
  }
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    throw new Problem('UNSUPPORTED_MEDIA_TYPE', `The body is encoded as ${encoding.slice(0, 100)}; send it plain.`);
  }
  const bytes = Number(request.headers['content-length'] ?? 0);
  if (bytes > MAX_BODY_BYTES) {
    throw new Problem('PAYLOAD_TOO_LARGE', `The body has ${bytes} bytes; send at most ${MAX_BODY_BYTES}.`);
  }
}

/** A header that must come once; sent twice it counts as absent. */
function singleHeader(request: FastifyRequest, name: string): string | undefined {
  const values = headerValues(request.raw, name);
  return values.length === 1 ? values[0] : undefined;
}

function refuseLimited(verdict: Verdict, limit: { perSecond: number; burst: number }): void {
  if (verdict.kind === 'pass') return;
  const seconds = String(verdict.retryAfterSeconds);
  const windowSeconds = Math.max(1, Math.ceil(limit.burst / limit.perSecond));
  throw new Problem(
    'RATE_LIMITED',
    `More than ${limit.perSecond} requests/s (burst ${limit.burst}) came; retry in ${seconds} s.`,
    {
      headers: {
        'Retry-After': seconds,
        RateLimit: `"default";r=0;t=${seconds}`,
        'RateLimit-Policy': `"default";q=${limit.burst};w=${windowSeconds}`,
      },
    },
  );
}

/** The address for counting failures: an IPv6 client owns a whole /64, however its address is written. */
function clientNetwork(ip: string): string {
  if (isIP(ip) !== 6 || ip.includes('.')) return ip;
  const [head = '', tail] = ip.split('::');
  const [left, right] = [groupsOf(head), groupsOf(tail ?? '')];
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  return [...left, ...Array<number>(zeros).fill(0), ...right].slice(0, 4).join(':');
}

function groupsOf(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}
