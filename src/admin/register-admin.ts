import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Actor } from '../operator/actor.ts';
import { authorize } from '../operator/authorize.ts';
import { asWritten } from '../operator/command-words.ts';
import { printableJson } from '../operator/input/printable.ts';
import { type Operation, type OperationDeps, perform } from '../operator/operation.ts';
import { authenticateAdminKey } from '../operator/subjects/admin-keys.ts';
import { OPERATIONS } from '../operator/wire/operations.ts';
import { OUTCOME_TYPE, writeOutcome } from '../operator/wire/outcome-json.ts';
import { createAddressList } from '../web/address-list.ts';
import { noteCaller } from '../web/bound-connections.ts';
import { clientOf } from '../web/client-address.ts';
import { checkJsonHeaders, singleHeader } from '../web/json-headers.ts';
import { limitNetworks } from '../web/limit-networks.ts';
import { Problem } from '../web/problem.ts';
import { MAX_INPUT_BYTES, readInput } from '../web/read-input.ts';
import { type RateLimit, refuseLimited } from '../web/refuse-limited.ts';
import { createTokenBuckets, type TokenBuckets } from '../web/token-bucket.ts';
import { describeAdminApi } from './describe-admin-api.ts';
import { refusalOf } from './refusals.ts';

/** Of one key: enough for a program that walks through lists, and little beside what shops ask. */
const KEY_LIMIT: RateLimit = { perSecond: 20, burst: 100 };
/** Of the wrong keys of one client network. */
const FAILURE_LIMIT: RateLimit = { perSecond: 5, burst: 20 };
/** Of one client network that reads the document, which a program does once. */
const DOCUMENT_LIMIT: RateLimit = { perSecond: 5, burst: 50 };
const MAX_BUCKETS = 10_000;

/** `consoleUrl`: where this server is reached. */
export type AdminDeps = OperationDeps & { consoleUrl(): string };

const ACTOR = Symbol('actor');
type AdminRequest = FastifyRequest & { [ACTOR]?: Actor };

/** Serves every operation below `/admin/v1` to who has a key of the admin API, and `/openapi.json`, which describes them. */
export function registerAdmin(app: FastifyInstance, deps: AdminDeps): void {
  const buckets = {
    keys: bucketsOf(KEY_LIMIT),
    failures: bucketsOf(FAILURE_LIMIT),
  };
  const limitReaders = limitNetworks(DOCUMENT_LIMIT, deps.now);
  app.register(async (admin) => {
    admin.setErrorHandler(async (error, request, reply) => {
      const refusal = refusalOf(error, request.id);
      if (refusal === null) throw error;
      return reply.code(refusal.status).type('application/problem+json; charset=utf-8').send(refusal.body);
    });
    for (const operation of OPERATIONS) {
      admin.route({
        method: operation.method,
        url: `/admin/v1${operation.path}`,
        bodyLimit: MAX_INPUT_BYTES,
        onRequest: (request, reply) => guard(deps, buckets, operation, request, reply),
        handler: (request, reply) => answer(deps, operation, request, reply),
      });
    }
  });
  app.get('/openapi.json', async (request, reply) => {
    limitReaders(request);
    reply.header('Cache-Control', 'no-cache').type('application/json; charset=utf-8');
    return JSON.stringify(describeAdminApi(OPERATIONS, deps.consoleUrl()));
  });
}

function bucketsOf({ perSecond, burst }: RateLimit): TokenBuckets {
  return createTokenBuckets(perSecond, burst, MAX_BUCKETS);
}

/** Finds out who asks and whether they may, before a body is read. */
async function guard(
  deps: AdminDeps,
  buckets: { keys: TokenBuckets; failures: TokenBuckets },
  { action, method }: Operation,
  request: AdminRequest,
  reply: FastifyReply,
): Promise<void> {
  reply.header('Cache-Control', 'no-store');
  const { ip, network } = clientOf(request);
  // A right key gives its token back, so that wrong ones cost the database no more than the bucket allows.
  refuseLimited(buckets.failures.take(network, deps.now()), FAILURE_LIMIT);
  const [, key = ''] = /^Bearer ([!-~]{1,200})$/i.exec(singleHeader(request, 'authorization') ?? '') ?? [];
  const isAllowed = (cidrs: readonly string[]) => createAddressList(cidrs)(ip);
  const actor = await authenticateAdminKey(deps, key, { isAllowed, origin: ip, requestId: request.id });
  if (actor === null) throw unauthenticated();
  buckets.failures.giveBack(network);
  noteCaller(request.raw.socket);
  refuseLimited(buckets.keys.take(actor.id ?? '', deps.now()), KEY_LIMIT);
  authorize(actor, action);
  request[ACTOR] = actor;
  if (method !== 'GET') checkJsonHeaders(request, MAX_INPUT_BYTES);
}

function unauthenticated(): Problem {
  const detail =
    'The Authorization header holds no admin key that is accepted here: send "Bearer qa_…" as "quittance admin-key create" showed it. An unknown, wrong, expired or revoked key, and one used from an address that is not on its list, all get this answer.';
  return new Problem('UNAUTHENTICATED', detail, { headers: { 'WWW-Authenticate': 'Bearer' } });
}

async function answer(
  deps: AdminDeps,
  operation: Operation,
  request: AdminRequest,
  reply: FastifyReply,
): Promise<string> {
  const actor = request[ACTOR];
  if (actor === undefined) throw new Error('the route has no guard');
  const wanted = operation.read(readInput(operation, request), deps.now());
  const outcome = await perform(operation, deps, actor, wanted);
  if (request.headers.accept === OUTCOME_TYPE) {
    reply.type(OUTCOME_TYPE);
    return writeOutcome(outcome as object);
  }
  reply.type('application/json; charset=utf-8');
  // As a command prints it.
  return `${printableJson(JSON.stringify(operation.view(outcome), asWritten, 2))}\n`;
}
