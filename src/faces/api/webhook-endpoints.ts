import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { withoutName } from '../../core/domain/disable-reason.ts';
import { AppError } from '../../core/domain/errors.ts';
import { EVENT_TYPES } from '../../core/domain/event.ts';
import { decodeId, encodeId } from '../../core/domain/ids.ts';
import { Message, type Text, type Words } from '../../core/domain/message.ts';
import { KeyRingError } from '../../core/runtime/key-ring.ts';
import { type TSchema, Type } from '../../core/runtime/type.ts';
import { findValidApiKey } from '../../core/store/access/api-keys.ts';
import type { Actor } from '../operator/actor.ts';
import { formatHint } from '../operator/command-words.ts';
import { FieldError } from '../operator/input/problems.ts';
import { type Operation, type OperationDeps, perform } from '../operator/operation.ts';
import { disableEndpoint, enableEndpoint, rotateSecret, testEndpoint } from '../operator/subjects/webhook-sending.ts';
import { addEndpoint, listEndpoints, showEndpoint, updateEndpoint } from '../operator/subjects/webhooks.ts';
import { clientOf } from '../web/client-address.ts';
import { Problem, unavailable } from '../web/problem.ts';
import { createTokenBuckets, refuseLimited } from '../web/rate-limit.ts';
import { readInput } from '../web/read-input.ts';
import { waitWithoutPlace } from '../web/shed-load.ts';
import type { ApiDeps } from './api-deps.ts';
import { callerOf, guarded, refuseKey } from './guard.ts';
import { endpointResponses } from './problem-responses.ts';
import { readQuery } from './read-query.ts';

const PATH = '/v1/webhook-endpoints';
/**
 * These operations get only this share of a key's rate limit, because shops rarely change their endpoints, and each change is recorded
 * permanently.
 */
const SHARE = { perSecond: 1 / 50, burst: 1 / 10 };
/** An operator has to configure the process's master key first, so clients should wait longer. */
const RETRY_SECONDS = 60;

/** The operations that a key can perform on its project's endpoints, by operation id. They are the same ones that operators use. */
const OPERATIONS = {
  listWebhookEndpoints: listEndpoints,
  createWebhookEndpoint: addEndpoint,
  readWebhookEndpoint: showEndpoint,
  updateWebhookEndpoint: updateEndpoint,
  rotateWebhookSecret: rotateSecret,
  testWebhookEndpoint: testEndpoint,
  enableWebhookEndpoint: enableEndpoint,
  disableWebhookEndpoint: disableEndpoint,
} as unknown as Readonly<Record<string, Operation>>;

type Deps = ApiDeps & { operations: OperationDeps };
type Route = { operation: Operation; isCreation: boolean };

/** Registers the operations on webhook endpoints for keys with the scope `webhooks`. Each acts on its key's project. */
export function registerWebhookEndpoints(app: FastifyInstance, deps: Deps): void {
  const limit = createKeyLimit(deps);
  for (const [operationId, { input, ...operation }] of Object.entries(OPERATIONS)) {
    const route = {
      operation: { ...operation, input: inputOfKey(input) },
      isCreation: operation.action === 'addEndpoint',
    };
    app.route({
      method: operation.method,
      url: PATH + operation.path.replace('/webhooks', ''),
      ...guarded(deps, 'webhooks', describe(operationId, route)),
      handler: (request, reply) => answer(deps, limit, route, request, reply),
    });
  }
}

/** Throws `RATE_LIMITED` if a key sends too many requests. */
function createKeyLimit({ rateLimit, now }: Deps): (keyId: string) => void {
  const limit = {
    perSecond: rateLimit.perSecond * SHARE.perSecond,
    burst: Math.max(1, Math.floor(rateLimit.burst * SHARE.burst)),
  };
  const buckets = createTokenBuckets(limit);
  return (keyId) => refuseLimited(buckets.take(keyId, now()), limit);
}

/**
 * Leaves out the project, because it's determined by the key, and the option to declare a master key lost, because only operators may use
 * it.
 */
function inputOfKey({ properties }: TSchema & { properties?: Properties }): TSchema {
  const { projectId: _project, isKeyLost: _isKeyLost, ...others } = properties ?? {};
  return Type.Object(others);
}

type Properties = Record<string, TSchema>;

/**
 * Matches a single line. Not all languages support `\p{Cc}`, `\u0000` or a lookahead in a pattern. Ruby and PHP read `\x80` as a byte of
 * UTF-8, so the control characters from there on are in `not`, which generators leave out.
 */
const oneLine = { maxLength: 200, pattern: '^[^\\x00-\\x1f\\x7f]*$', not: { pattern: '[\\x80-\\x9f]' } };
const base64 = '[A-Za-z0-9+/]';

/** Restrictions that the operations apply in addition to their declarations. */
const STRICT: Readonly<Record<string, object>> = {
  url: { minLength: 1, maxLength: 2048, pattern: '^https?://[^#]+$' },
  description: oneLine,
  events: {
    minItems: 1,
    items: { type: 'string', enum: ['all', ...EVENT_TYPES] },
    not: { contains: { const: 'all' }, minItems: 2 },
  },
  // The canonical base64 of 24 to 64 bytes.
  secret: {
    pattern: `^whsec_((${base64}{4}){8,21}|(${base64}{4}){8,20}${base64}{2}[AEIMQUYcgkosw048]=|(${base64}{4}){8,21}${base64}[AQgw]==)$`,
  },
  // 0, or up to 30 days: 30d, 720h, 43200m.
  overlap: {
    pattern:
      '^(0[mhd]?|([1-9]|[12][0-9]|30)d|([1-9][0-9]?|[1-6][0-9]{2}|7[01][0-9]|720)h|([1-9][0-9]{0,3}|[1-3][0-9]{4}|4[0-2][0-9]{3}|43[01][0-9]{2}|43200)m)$',
  },
  reason: oneLine,
};

function describe(operationId: string, { operation, isCreation }: Route) {
  const { summary, path, input, output, method } = operation;
  const title = titleOf(operationId);
  const { properties, required = [] } = input as TSchema & { properties: Properties; required?: string[] };
  const { endpointId, ...given } = properties;
  const others = Object.fromEntries(
    Object.entries(given).map(([name, schema]) => {
      const strict = { ...schema, ...STRICT[name] };
      return [name, required.includes(name) ? strict : Type.Optional(strict)];
    }),
  );
  return {
    ...{ operationId, tags: ['webhook-endpoints'], summary },
    ...(endpointId === undefined ? {} : { params: Type.Object({ endpointId }) }),
    ...(Object.keys(others).length === 0
      ? {}
      : {
          body: Type.Object(others, {
            additionalProperties: false,
            title,
            ...(method === 'PATCH' && { minProperties: 1 }),
          }),
        }),
    response: {
      [isCreation ? 201 : 200]: { ...output, title: `${title}Answer` },
      ...endpointResponses(...(path.includes(':') ? [404] : []), ...(method === 'GET' ? [] : [409, 413, 415])),
    },
  };
}

/** `createWebhookEndpoint` accepts a `CreateWebhookEndpoint` and returns a `CreateWebhookEndpointAnswer`. */
function titleOf(operationId: string): string {
  return operationId.charAt(0).toUpperCase() + operationId.slice(1);
}

async function answer(
  deps: Deps,
  limit: (keyId: string) => void,
  { operation, isCreation }: Route,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<string> {
  const { keyId, projectId } = callerOf(request);
  limit(keyId);
  if (operation.method !== 'GET') readQuery(request, []);
  const { endpointId } = request.params as { endpointId?: string };
  // A body without required fields may be left out.
  const hasBody = Buffer.isBuffer(request.body) && request.body.length > 0;
  const { params, query } = request;
  const input = readInput(operation, { params, query, body: hasBody ? request.body : Buffer.from('{}') });
  const actor = await actorOf(deps, request);
  if (endpointId !== undefined && decodeId('whe', endpointId) === null) throw notFound();
  try {
    const wanted = operation.read({ ...input, projectId: encodeId('prj', projectId) }, deps.now());
    const act = () => perform(operation, deps.operations, actor, wanted);
    // This operation waits for the receiver.
    const outcome = await (operation.action === 'testEndpoint' ? waitWithoutPlace(request, act) : act());
    const view = operation.view(outcome);
    reply.type('application/json; charset=utf-8').code(isCreation ? 201 : 200);
    if (isCreation) reply.header('Location', `${PATH}/${(view as { endpointId: string }).endpointId}`);
    return JSON.stringify(view, forKeys);
  } catch (error) {
    throw refusalOf(error);
  }
}

/** Converts a member of an operator's view to the form that callers with an API key may read. */
function forKeys(name: string, value: unknown): unknown {
  if (value instanceof Message) return value.write(WORDS);
  return name === 'disabledReason' && typeof value === 'string' ? withoutName(value) : value;
}

/** Returns the key as the actor. The key is read again from the database, because its changes can't be undone. */
async function actorOf({ db, authenticator, now }: Deps, request: FastifyRequest): Promise<Actor> {
  const { keyId } = callerOf(request);
  const key = await findValidApiKey(db, keyId, now());
  if (key === null) return refuseKey({ authenticator }, keyId);
  return {
    ...{ kind: 'key', name: key.name, role: 'owner', id: keyId, projects: [key.projectId] },
    ...{ origin: clientOf(request).ip, requestId: request.id },
  };
}

function refusalOf(error: unknown): unknown {
  if (error instanceof KeyRingError) return unavailable(error.message, RETRY_SECONDS);
  if (!(error instanceof AppError)) return error;
  const detail = writeText(error.text);
  switch (error.code) {
    case 'USAGE':
    case 'INVALID_ARGUMENT':
      return new Problem('INVALID_REQUEST', `The request is not valid: ${detail}.`, {
        extensions:
          error instanceof FieldError
            ? { errors: [{ field: error.field, code: 'INVALID_VALUE', message: writeText(error.reason) }] }
            : {},
      });
    case 'NOT_FOUND':
      return notFound();
    case 'CONFLICT':
      return new Problem('ENDPOINT_CONFLICT', `${titleOf(detail)}.`);
    case 'CONFIG_INVALID':
      return unavailable(detail, RETRY_SECONDS);
    default:
      return error;
  }
}

/** The response is the same for a malformed id, an unknown id, and an id from another project. */
function notFound(): Problem {
  return new Problem('ENDPOINT_NOT_FOUND', "There is no webhook endpoint with this id in this key's project.");
}

function writeText(text: Text): string {
  return text instanceof Message ? text.write(WORDS) : text;
}

/** A step is worded as the API request for it if there is one, and otherwise as the command. */
const WORDS: Words = {
  field: (name) => name,
  step: (hint) => {
    const { command, args = [] } = hint;
    if (command === 'webhook list') return `GET ${PATH}`;
    return command === 'webhook update' ? `PATCH ${PATH}/${args.join('/')}` : formatHint(hint);
  },
  secret: (kind) => `this looks like ${kind}, which does not belong in this field: if it is real, replace it`,
};
