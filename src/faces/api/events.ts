import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { assertNever } from '../../core/domain/assert-never.ts';
import { EVENT_TYPES } from '../../core/domain/event.ts';
import { decodeId, encodeId, NIL_UUID } from '../../core/domain/ids.ts';
import { Type } from '../../core/runtime/type.ts';
import { type FeedPage, type FeedQuestion, findFeedPage } from '../../core/store/outbox/events.ts';
import type { FieldError } from '../web/problem.ts';
import { waitWithoutPlace } from '../web/shed-load.ts';
import type { ApiDeps } from './api-deps.ts';
import { EventPageSchema } from './event-schemas.ts';
import type { EventWait, Waiter } from './event-waits.ts';
import { callerOf, guarded, refuseKey } from './guard.ts';
import { problemResponses } from './problem-responses.ts';
import { inspectQuery, invalidQuery, pageAfter, pageLimit, readLimit, wrongValue } from './read-query.ts';

/** Proxies usually allow 60 s without any data. */
const MAX_WAIT_S = 30;
const WAIT = /^([1-9]|[12][0-9]|30)$/;
/** How long the server allows a connection to be silent after the wait ends. */
const SILENCE_MS = 30_000;

/** `GET /v1/events`: the feed of the key's project. */
export function registerEvents(app: FastifyInstance, deps: ApiDeps): void {
  app.get('/v1/events', guarded(deps, 'events', schema), (request, reply) => list(deps, request, reply));
}

async function list(deps: ApiDeps, request: FastifyRequest, reply: FastifyReply): Promise<string> {
  const { keyId, projectId } = callerOf(request);
  const { query, errors } = inspectQuery(request, ['after', 'limit', 'types', 'wait']);
  const { types, waitMs, ...asked } = readFilter(query, errors);
  // The wait is opened before the first read, so that no event is missed between the two.
  const wait = waitMs === 0 ? null : openWait(deps, reply, { keyId, projectId, types }, waitMs);
  try {
    let page = await read(deps, { keyId, types, ...asked }, errors);
    while (wait !== null && page.bodies.length === 0 && !page.hasMore && !wait.isOver()) {
      await waitWithoutPlace(request, wait.look);
      // The read also checks the key, which may have been revoked in the meantime.
      page = await read(deps, { keyId, types, ...asked, after: page.nextId }, errors);
    }
    reply.type('application/json; charset=utf-8');
    return writePage(page, types !== null);
  } finally {
    wait?.close();
  }
}

/** Returns `null` if the response must be sent immediately. */
function openWait({ waits }: ApiDeps, { raw }: FastifyReply, waiter: Waiter, waitMs: number): EventWait | null {
  // A pipelined request doesn't have its own connection yet, so nothing would show that the client has disconnected.
  if (raw.socket === null || raw.destroyed) return null;
  const wait = waits.open(waiter, waitMs);
  if (wait === null) return null;
  raw.socket.setTimeout(waitMs + SILENCE_MS);
  raw.once('close', wait.end);
  return wait;
}

async function read(deps: ApiDeps, question: FeedQuestion, errors: FieldError[]): Promise<FeedPage> {
  // Reads the feed even if the request has errors, so that one response reports all of them, and so that a malformed cursor takes as long
  // as an unknown one.
  const found = await findFeedPage(deps.db, question, deps.now());
  switch (found.kind) {
    case 'key-not-valid':
      return refuseKey(deps, question.keyId);
    case 'unknown-cursor':
      throw invalidQuery([CURSOR_ERROR, ...errors]);
    case 'page':
      if (errors.length > 0) throw invalidQuery(errors);
      return found;
    default:
      return assertNever(found);
  }
}

/** Adds problems to `errors`. A request with errors doesn't wait. */
function readFilter(query: Record<string, string | undefined>, errors: FieldError[]) {
  const { after, types, wait = '0' } = query;
  const limit = readLimit(query['limit'], errors);
  const named = types?.split(',') ?? [];
  const known = EVENT_TYPES.filter((type) => named.includes(type));
  const unknown = named.find((name) => !known.some((type) => type === name));
  if (unknown !== undefined) {
    const message = `contains the unknown type ${JSON.stringify(unknown.slice(0, 40))}; the valid types are ${EVENT_TYPES.join(', ')}`;
    errors.push(wrongValue('types', message));
  } else if (named.length > known.length) {
    errors.push(wrongValue('types', 'contains the same type twice; send each type once, as in types=invoice.paid'));
  }
  if (query['wait'] !== undefined && !WAIT.test(wait))
    errors.push(wrongValue('wait', `must be a whole number of seconds from 1 to ${MAX_WAIT_S}, such as ${MAX_WAIT_S}`));
  return {
    after: after === undefined ? null : (decodeId('evt', after) ?? NIL_UUID),
    limit: errors.length === 0 ? limit : 1,
    types: types === undefined ? null : known,
    waitMs: errors.length === 0 ? Number(wait) * 1000 : 0,
  };
}

const CURSOR_ERROR = {
  field: 'after',
  code: 'UNKNOWN_EVENT',
  message: 'is not the id of an event in this project; send the id of the last event that you handled',
};

/** The response contains the bodies byte for byte as they are stored, as webhooks do. */
function writePage({ bodies, hasMore, latestId, nextId }: FeedPage, isFiltered: boolean): string {
  const next = isFiltered ? `,"next":${writeId(nextId)}` : '';
  return `{"data":[${bodies.join(',')}],"hasMore":${hasMore},"latest":${writeId(latestId)}${next}}`;
}

function writeId(id: string | null): string {
  return JSON.stringify(id === null ? null : encodeId('evt', id));
}

const schema = {
  operationId: 'listEvents',
  tags: ['events'],
  summary: "Read your project's events, oldest first",
  description:
    'Each event is byte for byte identical to the body of its webhook. Store the id of the last event that you handled, and send it as `after`. New events never appear before an event that you have read.',
  querystring: Type.Object({
    after: pageAfter('evt', 'Return only events after this one (default: from the first).'),
    limit: pageLimit,
    types: Type.Optional(
      Type.Array(Type.Union(EVENT_TYPES.map((type) => Type.Literal(type))), {
        ...{ minItems: 1, uniqueItems: true },
        description:
          'Only events of these types, such as `invoice.paid,transfer.unmatched`. The response then contains `next`: send it as `after`.',
      }),
    ),
    wait: Type.Optional(
      Type.Integer({
        ...{ minimum: 1, maximum: MAX_WAIT_S },
        description: 'Seconds to wait for an event before returning an empty page.',
      }),
    ),
  }),
  response: { 200: EventPageSchema, ...problemResponses(400, 401, 403, 429, 500, 503) },
};
