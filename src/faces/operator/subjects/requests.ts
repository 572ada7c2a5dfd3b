import { AppError, invalidArgument, notFound } from '../../../core/domain/errors.ts';
import { decodeId, encodeId, firstIdOf, NIL_UUID, timeOfId } from '../../../core/domain/ids.ts';
import { say } from '../../../core/domain/message.ts';
import { unixMs } from '../../../core/domain/time.ts';
import { Type } from '../../../core/runtime/type.ts';
import { secondOf, slotOf, UNPACKED } from '../../../core/store/access/requests.ts';
import type { Database } from '../../../core/store/db/database.ts';
import { answerOf, rowOf } from '../../../core/store/db/rows-of.ts';
import { count, listColumns, maybe as mayLack, type Row } from '../../../core/store/db/statement.ts';
import { type Actor, maySee } from '../actor.ts';
import { type Column, columnsText, fieldsText } from '../command-words.ts';
import { id, list, listOf, maybe, of, part, type Shown, schemaOf, show, text, time, whole } from '../fields.ts';
import { clip, FieldError, shorten } from '../input/problems.ts';
import { readChoice, readLengthLimit, readPeriod } from '../input/readers.ts';
import { limitTime } from '../limit-time.ts';
import { operation } from '../operation.ts';
import { argument, flag, limit, line, period, projectId } from '../option.ts';
import { findNamedInvoice, selectProject } from '../select.ts';

/** A request in the log. `projectId` is the nil UUID if it had no valid key. */
const row = {
  id: 'text',
  projectId: 'uuid',
  key: mayLack({ id: 'uuid', name: 'text' }),
  method: 'text',
  route: 'text?',
  status: 'int4',
  code: 'text?',
  externalId: 'text?',
  tookMs: 'int4',
  errors: 'text?',
  body: 'text?',
} as const;

/**
 * `projectId` and `key` are `null` if the request had no valid key, and `route` is `null` if its URL is unknown. `errors` are the refused
 * fields; an empty name stands for the whole body. `body` is a refused body's shape, without its values.
 */
const shown = {
  requestId: of('id', text),
  time: { ...time, of: 'id', show: (requestId: string) => time.show(timeOfId(requestId)) },
  projectId: { schema: maybe(text).schema, show: (uuid: string) => (uuid === NIL_UUID ? null : encodeId('prj', uuid)) },
  key: maybe(part({ keyId: of('id', id('key')), name: text })),
  ...{ method: text, route: maybe(text), status: whole, code: maybe(text), externalId: maybe(text), tookMs: whole },
  ...{ errors: list(part({ field: text, code: text })), body: maybe(text) },
};
export type RequestView = Shown<typeof shown>;
const view = (found: Row<typeof row>): RequestView =>
  show(shown, { ...found, errors: JSON.parse(found.errors ?? '[]') });
export const describeErrors = ({ errors }: Pick<RequestView, 'errors'>) =>
  errors.map(({ field, code }) => `${field || 'the body'} ${code}`).join(', ');
/** `invoiceId` is the invoice that has the externalId now, if any. */
type ShownRequestView = RequestView & { invoiceId: string | null };
/** `looked` is the number of requests that were searched. The next page begins before `nextBefore`; `null` on the last page. */
type RequestListView = { data: RequestView[]; looked: number; nextBefore: string | null };

/** `req_…` ids contain the second when the request arrived. */
const findRequest = rowOf(
  'request-desk-select',
  row,
  `select ${listColumns(row, 'r.', { projectId: 'b.project_id', key: 'k.' })}
   from requests b cross join lateral ${UNPACKED} left join api_keys k on k.id = b.key_id
   where b.slot = $1::int4 and b.at = $2 and b.first_id <= $3 and b.last_id >= $3 and r.id = $3`,
  (requestId: string) => {
    const at = timeOfId(requestId);
    return [slotOf(at), new Date(secondOf(at)), requestId];
  },
);

/**
 * `projectId` is the nil UUID for requests without a valid key. `notBefore` and `before` are ids in the order of their times. `statusClass`
 * is the status's first digit.
 */
type Filter = { projectId: string; notBefore: string; before: string } & Fits;
type Fits = { statusClass: number | null; keyId: string | null; externalId: string | null };

/**
 * Returns the newest requests that match, among about `window` requests. `looked` is the number of searched requests, and `searchedTo` is
 * the last searched second if there are older requests. Searches whole seconds, because batches within one second may overlap. So every
 * request from `searchedTo` onwards was searched.
 */
const findRequests = answerOf(
  'request-desk-list',
  { looked: count, searchedTo: 'timestamptz?', request: mayLack(row) },
  `with newest as materialized (
     select b.project_id, b.key_id, b.at, b.count, b.requests from requests b
     where b.project_id = $1 and b.at >= $2 and b.at <= $3 and b.first_id < $5
     order by b.at desc fetch first ($6::int8) rows with ties),
   seen as materialized (
     select n.* from (
       select *, sum(count) over (order by at desc) - sum(count) over (partition by at) as newer from newest) n
     where n.newer < $6::int8),
   unpacked as materialized (
     select r.*, b.project_id, b.key_id from seen b cross join lateral ${UNPACKED} where r.id >= $4 and r.id < $5),
   reached as (
     select min(s.at) as at from seen s)
   select (select count(*) from unpacked) as looked,
     (select e.at from reached e where exists (
        select from requests o where o.project_id = $1 and o.at >= $2 and o.at < e.at)) as searched_to,
     ${listColumns({ request: mayLack(row) }, 'f.', { request: { key: 'f.key_' } })}
   from (select) as one
   left join lateral (
     select ${listColumns(row, 'r.', { key: 'k.' })} from unpacked r left join api_keys k on k.id = r.key_id
     where ($7::int4 is null or r.status / 100 = $7) and ($8::uuid is null or r.key_id = $8) and ($9::text is null or r.external_id = $9)
     order by r.id desc limit $10::int8) f on true
   order by f.id desc`,
  ({ projectId, notBefore, before, ...fits }: Filter, page: { limit: number; window: number }) => [
    ...[projectId, new Date(secondOf(timeOfId(notBefore))), new Date(secondOf(timeOfId(before))), notBefore, before],
    ...[page.window, fits.statusClass, fits.keyId, fits.externalId, page.limit],
  ],
  (rows) => ({
    requests: rows.flatMap(({ request }) => request ?? []),
    ...{ looked: rows[0]?.looked ?? 0, searchedTo: rows[0]?.searchedTo ?? null },
  }),
);

/** Failed requests have the status classes 4 and 5. The API never returns 1xx or 3xx. */
const STATUS_CLASSES = ['2xx', '4xx', '5xx'] as const;
/** The maximum number of requests to search for a page, plus the rest of a second. This takes a tenth of a second. */
const WINDOW = 10_000;
/** The window if every request matches. This is still more than a page needs. */
const SHORT_WINDOW = 1000;
const TIMEOUT_MS = 5000;
/** A time after every possible request. */
const NEVER = unixMs(Date.UTC(9999, 0));
/** The maximum length of an external id. */
const MAX_EXTERNAL_ID = 400;

/** Returns the lowest request id for a moment. */
const requestIdAt = (at: number) => encodeId('req', firstIdOf(at));

/** Normalises a `req_…`; returns `null` for any other text. */
export function findRequestId(given: string): string | null {
  const requestId = given.trim().toLowerCase();
  return decodeId('req', requestId) === null ? null : requestId;
}

function readRequestId(given: string): string {
  const requestId = findRequestId(given);
  if (requestId !== null) return requestId;
  throw invalidArgument`${clip(given)} is not a request id: an id is "req_" followed by 26 characters, as in the header X-Request-Id`;
}

function readKeyId(given: string): string {
  const keyId = decodeId('key', given);
  if (keyId !== null) return keyId;
  const shape = say`a key id is "key_" followed by 26 characters, as shown by "${{ command: 'key list' }}"`;
  throw new FieldError('key', say`is ${clip(given)}: ${shape}`);
}

const asked = ({ method, route }: RequestView) => `${method} ${route ?? '(unknown path)'}`;
const COLUMNS: readonly Column<RequestView>[] = [
  ['REQUEST', 'requestId'],
  ['TIME (UTC)', 'time'],
  ['ASKED', asked],
  ['STATUS', 'status'],
  ['CODE', 'code'],
  ['REFUSED', (request) => shorten(describeErrors(request), 40)],
  ['MS', 'tookMs'],
  ['EXTERNAL ID', ({ externalId }) => shorten(externalId ?? '', 40)],
];

/** Searches about 10,000 requests at most for a page. */
export const listRequests = operation({
  action: 'listRequests',
  summary: 'List API requests from the last 30 days, newest first',
  route: 'GET /requests',
  command: 'request list',
  output: listOf(shown, { looked: whole.schema, nextBefore: maybe(text).schema }),
  input: Type.Object({
    projectId: projectId(),
    isKeyless: flag('only requests without a valid key, which belong to no project', { conflicts: 'projectId' }),
    status: line('<class>', '2xx, 4xx or 5xx'),
    key: line('<key_…>', 'only requests made with this key'),
    externalId: line('<id>', 'only requests about the invoice with this externalId'),
    ...period(),
    before: line('<req_…>', 'show requests older than this one'),
    limit: limit(500, '50'),
  }),
  read: ({ projectId, isKeyless = false, status, key, externalId, before, limit: most = '50', ...times }) => {
    if (isKeyless && projectId !== undefined)
      throw new FieldError(
        'isKeyless',
        'lists requests that belong to no project: use this option or a project, not both',
      );
    const { from, until } = readPeriod(times);
    const statusClass = readChoice('status', status, STATUS_CLASSES);
    const end = requestIdAt(until ?? NEVER);
    const given = before === undefined ? end : readRequestId(before);
    const keyId = key === undefined ? null : readKeyId(key);
    if (externalId !== undefined && (externalId.length > MAX_EXTERNAL_ID || externalId.includes('\0')))
      throw new FieldError('externalId', `must have at most ${MAX_EXTERNAL_ID} characters`);
    return {
      ...{ projectId, isKeyless, keyId, externalId: externalId ?? null },
      statusClass: statusClass === null ? null : Number(statusClass[0]),
      ...{ notBefore: requestIdAt(from ?? unixMs(0)), before: given < end ? given : end },
      limit: readLengthLimit(most, { least: 1, most: 500 }),
    };
  },
  run: async ({ db }, actor, { projectId, isKeyless, limit, ...filter }): Promise<RequestListView> => {
    const owner = isKeyless ? nobodyFor(actor) : (await selectProject(db, actor, projectId)).id;
    const fitsAll = filter.statusClass === null && filter.keyId === null && filter.externalId === null;
    const page = { limit: limit + 1, window: fitsAll ? SHORT_WINDOW : WINDOW };
    const { requests, looked, searchedTo } = await db.snapshot(async (tx) => {
      await limitTime(tx, TIMEOUT_MS);
      return findRequests(tx, { ...filter, projectId: owner }, page);
    });
    const data = requests.slice(0, limit);
    // The next page continues after the last request shown or, if too few match, after the last second searched.
    const next = requests.length > limit ? data.at(-1)?.id : searchedTo === null ? undefined : requestIdAt(searchedTo);
    return { data: data.map(view), looked, nextBefore: next ?? null };
  },
  print: ({ data, looked, nextBefore }) => {
    const more = say`searched ${looked} requests: to continue, repeat the command with ${{ field: 'before' }} ${nextBefore ?? ''}`;
    return {
      text: columnsText(data, COLUMNS),
      next: nextBefore !== null ? more : data.length === 0 && 'no matching requests',
    };
  },
});

/** Requests without a valid key belong to no project, so only actors with access to all projects may see them. */
function nobodyFor({ projects, name }: Actor): string {
  if (projects === null) return NIL_UUID;
  throw new AppError(
    'FORBIDDEN',
    `requests without a valid key belong to no project, and ${name} may see only some projects: ask an owner`,
  );
}

export const showRequest = operation({
  action: 'showRequest',
  summary: 'Show an API request from the last 30 days and its result',
  route: 'GET /requests/:requestId',
  command: 'request show',
  does: 'show an API request and its result',
  output: schemaOf({ ...shown, invoiceId: maybe(text) }),
  input: Type.Object({
    requestId: argument('<request>', "req_…, from the X-Request-Id header or an error's requestId"),
  }),
  read: ({ requestId }) => ({ requestId: readRequestId(requestId) }),
  run: async ({ db }: { db: Database }, actor, { requestId }): Promise<ShownRequestView> => {
    const found = await findRequest(db, requestId);
    if (found === null || !maySee(actor, found.projectId))
      throw notFound`request ${requestId} was not found. Quittance records a request a second or two after the response, and keeps it for 30 days. If it rejects many requests at once, it does not record all of them. List the requests with "${{ command: 'request list' }}"`;
    const { projectId, externalId } = found;
    const invoice = externalId === null ? null : await findNamedInvoice(db, projectId, { id: NIL_UUID, externalId });
    return { ...view(found), invoiceId: invoice && encodeId('inv', invoice.id) };
  },
  print: (request) => ({
    text: fieldsText(request, [
      ['request', 'requestId'],
      ['time', 'time'],
      ['project', 'projectId', 'none: the request had no valid key'],
      ['key', ({ key }) => key && `${key.keyId} (${key.name})`],
      ['asked', asked],
      ['status', ({ status, code }) => (code === null ? String(status) : `${status} ${code}`)],
      ['refused', (request) => describeErrors(request) || null],
      ['body', 'body'],
      ['took', ({ tookMs }) => `${tookMs} ms`],
      ['external id', 'externalId'],
      ['invoice', 'invoiceId'],
    ]),
    next: request.invoiceId && say`the invoice's history: ${{ command: 'explain', args: [request.invoiceId] }}`,
  }),
});

export const operations = [listRequests, showRequest];
