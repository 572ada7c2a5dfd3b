import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Scope } from '../../core/domain/api-key.ts';
import { encodeId } from '../../core/domain/ids.ts';
import { findValidApiKey } from '../../core/store/access/api-keys.ts';
import type { Caller } from '../web/authenticate.ts';
import { noteCaller } from '../web/bound-connections.ts';
import { clientOf } from '../web/client-address.ts';
import { checkJsonHeaders, singleHeader } from '../web/headers.ts';
import { Problem, problemOf } from '../web/problem.ts';
import { refuseLimited } from '../web/rate-limit.ts';
import { notesOf } from '../web/request-notes.ts';
import { MAX_BODY_BYTES } from '../web/server.ts';
import type { ApiDeps } from './api-deps.ts';

const WITH_BODY = ['POST', 'PATCH'];
const CALLER = Symbol('caller');
type GuardedRequest = FastifyRequest & { [CALLER]?: Caller };

/** Returns the caller of a request that has passed the guard. */
export function callerOf(request: GuardedRequest): Caller {
  const caller = request[CALLER];
  if (caller === undefined) throw new Error('the route has no guard');
  return caller;
}

/**
 * Returns the route options for keys with a scope: the schema, which contains the scope, and the checks that run before the body is read.
 * They run in the documented order: authentication, rate limit, scope, content type and size. The router has already checked route and
 * method; the route itself checks the idempotency header and the body.
 */
export function guarded<Schema extends object>(deps: ApiDeps, scope: Scope, schema: Schema) {
  return {
    schema: { ...schema, security: [{ apiKey: [scope] }] },
    onRequest: async (request: GuardedRequest, reply: FastifyReply): Promise<void> => {
      reply.header('Cache-Control', 'no-store');
      const found = await deps.authenticator.authenticate(singleHeader(request, 'x-api-key'), clientOf(request));
      if (found.kind === 'limited') refuseLimited(found, FAILURE_LIMIT);
      if (found.kind !== 'caller') throw problemOf('unauthenticated');
      const { caller } = found;
      noteCaller(request.raw.socket);
      const notes = notesOf(request);
      notes.key = { id: caller.keyId, projectId: caller.projectId };
      refuseLimited(deps.keyBuckets.take(caller.keyId, deps.now()), deps.rateLimit);
      notes.isAdmitted = true;
      request[CALLER] = caller;
      if (!caller.scopes.includes(scope)) throw lacking(scope, caller);
      if (WITH_BODY.includes(request.method) && takesBody(request)) checkJsonHeaders(request, MAX_BODY_BYTES);
    },
    errorHandler: async (error: unknown, request: GuardedRequest): Promise<never> => {
      const caller = request[CALLER];
      if (caller !== undefined && isAboutInput(error)) await confirmKey(deps, caller.keyId);
      throw error;
    },
  };
}

function lacking(scope: Scope, { keyId, scopes }: Caller): Problem {
  return new Problem(
    'INSUFFICIENT_SCOPE',
    `This operation requires a key with the scope "${scope}", but ${encodeId('key', keyId)} has only ${scopes.join(', ')}. The operator can create a key with this scope: quittance key create --scopes ${[...scopes, scope].join(',')}.`,
    { extensions: { scope } },
  );
}

/**
 * A route that doesn't need a body still accepts one, because some clients always send one. A body without required fields may be absent.
 */
function takesBody({ headers, routeOptions }: FastifyRequest): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
  const { required } = (routeOptions.schema?.body ?? {}) as { required?: readonly string[] };
  return hasBody || required !== undefined;
}

/** Whether the error is only about the input. In that case, no statement has checked the key yet. */
function isAboutInput(error: unknown): boolean {
  const { status, statusCode } = error as { status?: unknown; statusCode?: unknown };
  return [400, 403, 413, 415, 422].includes(Number(status ?? statusCode));
}

/** A cached key may have been revoked since it was read. In that case, the response is the same as for any invalid key. */
async function confirmKey({ db, authenticator, now }: ApiDeps, keyId: string): Promise<void> {
  if ((await findValidApiKey(db, keyId, now())) === null) refuseKey({ authenticator }, keyId);
}

/** Forgets a cached key that a statement found to be no longer valid. Throws `UNAUTHENTICATED`. */
export function refuseKey({ authenticator }: Pick<ApiDeps, 'authenticator'>, keyId: string): never {
  authenticator.forget(keyId);
  throw problemOf('unauthenticated');
}

/** The limit on failed authentications per client network: enough for a mistake in a loop, but useless for guessing. */
export const FAILURE_LIMIT = { perSecond: 5, burst: 20 };
