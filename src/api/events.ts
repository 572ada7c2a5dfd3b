import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { assertNever } from '../domain/assert-never.ts';
import { decodeId, encodeId, NIL_UUID } from '../domain/ids.ts';
import { Type } from '../runtime/type.ts';
import { type FeedPage, findFeedPage } from '../store/outbox/event-feed.ts';
import { problemOf } from '../web/problem.ts';
import type { ApiDeps } from './api-deps.ts';
import { EventPageSchema } from './event-schemas.ts';
import { callerOf, createGuard } from './guard.ts';
import { problemResponses } from './problem-responses.ts';
import { inspectQuery, invalidQuery } from './read-query.ts';

const DEFAULT_LIMIT = 50;
/** An event has less than 20 KB, so an answer has less than 2 MB. */
const MAX_LIMIT = 100;
const LIMIT = /^([1-9][0-9]?|100)$/;

/** `GET /v1/events`: the feed of the key's project. */
export function registerEvents(app: FastifyInstance, deps: ApiDeps): void {
  app.get('/v1/events', { ...createGuard(deps), schema }, (request, reply) => list(deps, request, reply));
}

async function list(deps: ApiDeps, request: FastifyRequest, reply: FastifyReply): Promise<string> {
  const { keyId } = callerOf(request);
  const { query, errors } = inspectQuery(request, ['after', 'limit']);
  const { after, limit = String(DEFAULT_LIMIT) } = query;
  const isLimitValid = LIMIT.test(limit);
  if (!isLimitValid) errors.push(LIMIT_ERROR);
  // The feed is read even if the request has errors, so that the answer tells all of them at once, and a malformed cursor takes as long as
  // an unknown one.
  const found = await findFeedPage(
    deps.db,
    {
      keyId,
      after: after === undefined ? null : (decodeId('evt', after) ?? NIL_UUID),
      limit: isLimitValid ? Number(limit) : 1,
    },
    deps.now(),
  );
  switch (found.kind) {
    case 'key-not-valid':
      deps.authenticator.forget(keyId);
      throw problemOf('unauthenticated');
    case 'unknown-cursor':
      throw invalidQuery([CURSOR_ERROR, ...errors]);
    case 'page':
      if (errors.length > 0) throw invalidQuery(errors);
      reply.type('application/json; charset=utf-8');
      return writePage(found);
    default:
      return assertNever(found);
  }
}

const LIMIT_ERROR = { field: 'limit', code: 'INVALID_VALUE', message: `must be a whole number, 1 to ${MAX_LIMIT}` };
const CURSOR_ERROR = {
  field: 'after',
  code: 'UNKNOWN_EVENT',
  message: 'is not the id of an event of this project; send the id of the last event that you handled',
};

/** The bodies stand in the answer exactly as they are stored, and as webhooks carry them. */
function writePage({ bodies, hasMore, latestId }: FeedPage): string {
  const latest = JSON.stringify(latestId === null ? null : encodeId('evt', latestId));
  return `{"data":[${bodies.join(',')}],"hasMore":${hasMore},"latest":${latest}}`;
}

const schema = {
  operationId: 'listEvents',
  tags: ['events'],
  summary: 'Read the events of your project, oldest first',
  description:
    'Byte for byte the bodies that were or would be delivered as webhooks. Store the id of the last event that you handled, and send it as `after`. No event ever appears before one that you have read.',
  security: [{ apiKey: [] }],
  querystring: Type.Object({
    after: Type.Optional(
      Type.String({
        pattern: '^evt_[0-7][0-9a-hjkmnp-tv-z]{25}$',
        description: 'Only events after this one. Without it, from the first.',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT, examples: [MAX_LIMIT] }),
    ),
  }),
  response: { 200: EventPageSchema, ...problemResponses(400, 401, 429, 500, 503) },
};
