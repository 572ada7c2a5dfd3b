import type { FastifyInstance, FastifyRequest } from 'fastify';
import { projectInvoice } from '../../core/domain/event.ts';
import { encodeId, firstIdOf, NIL_UUID } from '../../core/domain/ids.ts';
import { INVOICE_STATUSES } from '../../core/domain/invoice.ts';
import { Type } from '../../core/runtime/type.ts';
import { findInvoiceByExternalId, findInvoicePage } from '../../core/store/ledger/invoices.ts';
import type { FieldError } from '../web/problem.ts';
import { notesOf } from '../web/request-notes.ts';
import type { ApiDeps } from './api-deps.ts';
import { callerOf, guarded, refuseKey } from './guard.ts';
import { problemResponses } from './problem-responses.ts';
import {
  DEFAULT_LIMIT,
  inspectQuery,
  invalidQuery,
  MAX_LIMIT,
  pageAfter,
  readAfter,
  readLimit,
  wrongValue,
} from './read-query.ts';
import { readable } from './readable.ts';
import { InvoiceListSchema } from './schemas.ts';

/** At most this many rows are scanned for a page of invoices with one status, which takes a few hundredths of a second. */
const WINDOW = 10_000;

/** Registers `GET /v1/invoices`: the invoice with an `externalId`, or pages of all invoices. */
export function registerInvoiceList(app: FastifyInstance, deps: ApiDeps): void {
  app.get('/v1/invoices', guarded(deps, 'read', schema), async (request) => {
    const { query, errors } = inspectQuery(request, ['externalId', ...FILTERS]);
    const { externalId } = query;
    if (externalId === undefined) return list(deps, request, query, errors);
    // A limit is accepted here as well, because tools that fill in defaults send one.
    readLimit(query['limit'], errors);
    const others = FILTERS.filter((field) => field !== 'limit' && query[field] !== undefined);
    errors.push(
      ...others.map((field) => wrongValue(field, 'cannot be combined with externalId: remove one of these parameters')),
    );
    if (externalId === '')
      errors.push({ field: 'externalId', code: 'REQUIRED', message: 'is empty: send your own id, such as order-1001' });
    if (errors.length > 0) throw invalidQuery(errors);
    return find(deps, request, externalId);
  });
}

const FILTERS = ['status', 'createdAfter', 'after', 'limit'];

async function find(deps: ApiDeps, request: FastifyRequest, externalId: string) {
  const caller = callerOf(request);
  const isStorable = !externalId.includes('\0') && externalId.isWellFormed();
  const found = await findInvoiceByExternalId(deps.db, caller.keyId, isStorable ? externalId : '', deps.now());
  const invoice = readable(found, deps, caller.keyId);
  if (invoice === null) return { data: [] };
  // The external id is logged only if an invoice has it; otherwise it could be any text.
  notesOf(request).externalId = invoice.externalId;
  return { data: [projectInvoice(invoice, deps.publicUrl())] };
}

type Query = Record<string, string | undefined>;

async function list(deps: ApiDeps, request: FastifyRequest, query: Query, errors: FieldError[]) {
  const { keyId } = callerOf(request);
  const { after, limit, status } = readFilter(query, errors);
  if (errors.length > 0) throw invalidQuery(errors);
  // One extra row shows whether there is another page.
  const window = status === null ? limit + 1 : WINDOW;
  const page = await findInvoicePage(deps.db, { keyId, after, status, limit: limit + 1, window }, deps.now());
  if (page === null) return refuseKey(deps, keyId);
  const shown = page.invoices.slice(0, limit);
  // The next page starts after the last invoice shown or, if too few rows matched, after the last row scanned.
  const last = page.invoices.length > limit ? shown.at(-1)?.id : page.looked === window ? page.last : null;
  return {
    data: shown.map((invoice) => projectInvoice(invoice, deps.publicUrl())),
    next: last == null ? null : encodeId('inv', last),
  };
}

/** Adds problems to `errors`. */
function readFilter({ status, createdAfter, after, limit }: Query, errors: FieldError[]) {
  const known = INVOICE_STATUSES.find((each) => each === status) ?? null;
  if (status !== undefined && known === null)
    errors.push(wrongValue('status', `must be one of ${INVOICE_STATUSES.join(', ')}`));
  const cursor = readAfter(after, 'inv', errors);
  const createdMs =
    createdAfter === undefined ? 0 : DATE_TIME.test(createdAfter) ? Date.parse(createdAfter) : Number.NaN;
  if (Number.isNaN(createdMs)) {
    // In a query, an unescaped plus sign means a space.
    const hint = createdAfter?.includes(' ') === true ? '; write + as %2B' : '';
    errors.push(wrongValue('createdAfter', `must be a time such as 2026-09-01T00:00:00Z${hint}`));
  }
  const begin = Number.isNaN(createdMs) || createdAfter === undefined ? NIL_UUID : firstIdOf(createdMs);
  return { status: known, after: cursor > begin ? cursor : begin, limit: readLimit(limit, errors) };
}

/** RFC 3339, with up to nine fractional digits as Go writes them. Fractions of a millisecond are cut off. */
const DATE_TIME =
  /^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-][0-2][0-9]:[0-5][0-9])$/;

const schema = {
  operationId: 'findInvoices',
  tags: ['invoices'],
  summary: 'Find an invoice by your externalId, or list invoices',
  description:
    "Without externalId: your project's invoices, oldest first. For the next page, send `next` as `after`, until `next` is null. A page may have fewer than `limit` items, or none, and still have a `next`.",
  querystring: Type.Object({
    externalId: Type.Optional(
      Type.String({ description: 'Cannot be combined with other parameters except `limit`', examples: ['order-1001'] }),
    ),
    status: Type.Optional(Type.Union(INVOICE_STATUSES.map((value) => Type.Literal(value)))),
    createdAfter: Type.Optional(
      Type.String({ format: 'date-time', description: 'Return only invoices created at this time or later' }),
    ),
    after: pageAfter('inv'),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT })),
  }),
  response: { 200: InvoiceListSchema, ...problemResponses(400, 401, 403, 429, 500, 503) },
};
