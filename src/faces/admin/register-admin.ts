import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AppError, type ErrorCode } from '../../core/domain/errors.ts';
import { ACTIONS, type Rule } from '../operator/actions.ts';
import type { Actor } from '../operator/actor.ts';
import { authorize } from '../operator/authorize.ts';
import { asWritten, writeText } from '../operator/command-words.ts';
import { printableJson } from '../operator/input/problems.ts';
import { type Operation, type OperationDeps, perform } from '../operator/operation.ts';
import { authenticateAdminKey } from '../operator/subjects/admin-keys.ts';
import { OPERATIONS } from '../operator/wire/operations.ts';
import { OUTCOME_TYPE, writeOutcome } from '../operator/wire/outcome-json.ts';
import { noteCaller } from '../web/bound-connections.ts';
import { clientOf, createAddressList } from '../web/client-address.ts';
import { checkJsonHeaders, singleHeader } from '../web/headers.ts';
import { Problem } from '../web/problem.ts';
import {
  createTokenBuckets,
  limitNetworks,
  type RateLimit,
  refuseLimited,
  type TokenBuckets,
} from '../web/rate-limit.ts';
import { MAX_INPUT_BYTES, readInput, type Schema } from '../web/read-input.ts';

/** The limit for one key: enough for a program that reads long lists, and small compared with the shops' requests. */
const KEY_LIMIT: RateLimit = { perSecond: 20, burst: 100 };
/** The limit for wrong keys from one client network. */
const FAILURE_LIMIT: RateLimit = { perSecond: 5, burst: 20 };
/** The limit for one client network that reads the document, which a program does once. */
const DOCUMENT_LIMIT: RateLimit = { perSecond: 5, burst: 50 };

/** `consoleUrl` is this server's URL. */
export type AdminDeps = OperationDeps & { consoleUrl(): string };

/** Serves every operation below `/admin/v1` to holders of an admin key, and `/openapi.json`, which describes them. */
export function registerAdmin(app: FastifyInstance, deps: AdminDeps): void {
  const buckets = {
    keys: createTokenBuckets(KEY_LIMIT),
    failures: createTokenBuckets(FAILURE_LIMIT),
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

/** Identifies the caller and checks their rights before the body is read. */
async function guard(
  deps: AdminDeps,
  buckets: { keys: TokenBuckets; failures: TokenBuckets },
  { action, method }: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  reply.header('Cache-Control', 'no-store');
  const { network } = clientOf(request);
  // Every request takes a token, which is returned if the key is valid. So the bucket limits the database queries for wrong keys.
  refuseLimited(buckets.failures.take(network, deps.now()), FAILURE_LIMIT);
  const actor = await identify(deps, request);
  buckets.failures.giveBack(network);
  noteCaller(request.raw.socket);
  refuseLimited(buckets.keys.take(actor.id ?? '', deps.now()), KEY_LIMIT);
  authorize(actor, action);
  if (method !== 'GET') checkJsonHeaders(request, MAX_INPUT_BYTES);
}

/** Returns the holder of the request's admin key. Throws `UNAUTHENTICATED`. */
async function identify(deps: AdminDeps, request: FastifyRequest): Promise<Actor> {
  const { ip } = clientOf(request);
  const [, key = ''] = /^Bearer ([!-~]{1,200})$/i.exec(singleHeader(request, 'authorization') ?? '') ?? [];
  const isAllowed = (cidrs: readonly string[]) => createAddressList(cidrs)(ip);
  const actor = await authenticateAdminKey(deps, key, { isAllowed, origin: ip, requestId: request.id });
  if (actor !== null) return actor;
  const detail =
    'The Authorization header does not contain an admin key that this server accepts: send "Bearer qa_…" with the key that "quittance admin-key create" showed. The key may be unknown, wrong, expired or revoked, or its allow list may not contain your IP address.';
  throw new Problem('UNAUTHENTICATED', detail, { headers: { 'WWW-Authenticate': 'Bearer' } });
}

async function answer(deps: AdminDeps, operation: Operation, request: FastifyRequest, reply: FastifyReply) {
  // The key may have been revoked while the body was arriving.
  const actor = await identify(deps, request);
  const wanted = operation.read(readInput(operation, request), deps.now());
  const outcome = await perform(operation, deps, actor, wanted);
  if (request.headers.accept === OUTCOME_TYPE) {
    reply.type(OUTCOME_TYPE);
    return writeOutcome(outcome as object);
  }
  reply.type('application/json; charset=utf-8');
  // The response has the same text as the command's JSON output.
  return `${printableJson(JSON.stringify(operation.view(outcome), asWritten, 2))}\n`;
}

const PROBLEM = { $ref: '#/components/schemas/Problem' };
/** The statuses of refusals that depend only on the request: its key, size, content type or rate. */
const REQUEST_STATUSES = [401, 413, 415, 429, 500];

/** Builds the OpenAPI document (3.1) of the admin API from the same operations as its routes. */
function describeAdminApi(operations: readonly Operation[], url: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of operations) {
    const path = `/admin/v1${operation.path.replace(/:(\w+)/g, '{$1}')}`;
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describeOperation(operation) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Quittance admin API',
      version: '1',
      description:
        'The API for operators. "quittance --server" offers the same operations on the command line, with the same keys.',
    },
    servers: [{ url }],
    paths,
    components: {
      securitySchemes: { adminKey: { type: 'http', scheme: 'bearer', bearerFormat: 'qa_…' } },
      schemas: { Problem: PROBLEM_SCHEMA },
    },
  };
}

function describeOperation({ action, summary, method, path, input, output }: Operation): object {
  const { properties = {}, required = [] } = input as unknown as Schema;
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
  const others = Object.keys(properties).filter((name) => !inPath.includes(name));
  const { role, wide }: Rule = ACTIONS[action];
  const scope = wide === true ? ' for all projects' : '';
  const content = {
    ...{ type: 'object', required: required.filter((name) => others.includes(name)) },
    properties: Object.fromEntries(others.map((name) => [name, properties[name]])),
    additionalProperties: false,
  };
  return {
    ...{ operationId: action, summary, description: `Requires the role ${role}${scope}.` },
    security: [{ adminKey: [] }],
    parameters: [
      ...inPath.map((name) => ({
        ...{ name, in: 'path', required: true, schema: properties[name] },
        ...(required.includes(name) ? {} : { description: '"-" if omitted' }),
      })),
      ...(method === 'GET'
        ? others.map((name) => ({ name, in: 'query', required: required.includes(name), schema: properties[name] }))
        : []),
    ],
    ...(method === 'GET'
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: content } } } }),
    responses: {
      200: { description: 'Done', content: { 'application/json': { schema: output } } },
      ...Object.fromEntries(
        [...REFUSAL_STATUSES, ...REQUEST_STATUSES].map((status) => [
          status,
          { description: DESCRIPTIONS[status], content: { 'application/problem+json': { schema: PROBLEM } } },
        ]),
      ),
    },
  };
}

const DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'The input is not valid',
  401: 'The key is not accepted',
  403: "The key's role, or its list of projects, does not allow this request",
  404: 'Not found, or not visible to this key',
  409: 'The current state does not allow this request',
  413: 'The body is too large',
  415: 'The body is not JSON',
  429: 'Too many requests',
  500: 'Internal error',
  503: 'The database or the nodes do not respond, or the server is overloaded',
};

const PROBLEM_SCHEMA = {
  type: 'object',
  required: ['type', 'title', 'status', 'code', 'detail', 'requestId'],
  properties: {
    ...{ type: { type: 'string' }, title: { type: 'string' }, status: { type: 'integer' }, code: { type: 'string' } },
    ...{ detail: { type: 'string' }, requestId: { type: 'string' } },
    errors: { type: 'array', items: { type: 'object' } },
  },
};

/** The HTTP status for a refused operation. All other codes are 409: the current state doesn't allow it. */
const STATUSES: Readonly<Partial<Record<ErrorCode, number>>> = {
  ...{ USAGE: 400, INVALID_ARGUMENT: 400, FORBIDDEN: 403, NOT_FOUND: 404 },
  ...{ NO_NODE: 503, NODE_REFUSED: 503, NODES_DISAGREE: 503, SANDBOX_NOT_RUNNING: 503 },
};
const OTHER_STATUS = 409;
const REFUSAL_STATUSES: readonly number[] = [...new Set([...Object.values(STATUSES), OTHER_STATUS])];

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  409: 'Conflict',
  503: 'Service Unavailable',
};

/** Refusals that every part of the server answers in the same way. */
const OF_THE_SERVER: readonly string[] = [
  'DATABASE_UNAVAILABLE',
  'ADDRESS_DAMAGED',
  'ADDRESS_NOT_VOUCHED',
  'ROW_CHANGED',
];

/**
 * Returns the RFC 9457 response to a refused operation. It's worded for the command line, because a command can run the same operation.
 * Returns `null` for errors that don't come from an operation.
 */
function refusalOf(error: unknown, requestId: string): { status: number; body: string } | null {
  const isOfKeys = error instanceof Error && error.name === 'KeyRingError' && 'code' in error;
  if (!isOfKeys && (!(error instanceof AppError) || OF_THE_SERVER.includes(error.code))) return null;
  const code = String(error.code);
  const status = STATUSES[code as ErrorCode] ?? OTHER_STATUS;
  const { text, problems } = error instanceof AppError ? error : { text: error.message, problems: [] };
  const errors = problems.map(({ subject, message }) => ({ subject: writeText(subject), message: writeText(message) }));
  const body = {
    ...{ type: 'about:blank', title: TITLES[status] ?? '', status, code, detail: writeText(text), requestId },
    ...(errors.length === 0 ? {} : { errors }),
  };
  return { status, body: JSON.stringify(body) };
}
