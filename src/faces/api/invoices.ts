import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { assertNever } from '../../core/domain/assert-never.ts';
import { describePayment, type ProjectedInvoice, projectInvoice } from '../../core/domain/event.ts';
import { decodeId, encodeId, firstIdOf, NIL_UUID } from '../../core/domain/ids.ts';
import { INVOICE_STATUSES } from '../../core/domain/invoice.ts';
import { formatOptions, readOptions } from '../../core/domain/invoice-options.ts';
import { formatAmount, type MicroUsdt, microUsdt, parseAmount } from '../../core/domain/money.ts';
import { nodesVariable } from '../../core/domain/network.ts';
import { convertPrice, rateInForce } from '../../core/domain/price.ts';
import { toIso } from '../../core/domain/time.ts';
import {
  createOrder,
  createSharing,
  findEarlier,
  type Ordered,
  type Sharing,
} from '../../core/payments/create-invoice.ts';
import { Type } from '../../core/runtime/type.ts';
import {
  createInvoiceReader,
  type FoundInvoice,
  findInvoiceByExternalId,
  findInvoicePage,
  withdrawInvoice,
} from '../../core/store/ledger/invoices.ts';
import { findInvoicePayment, type InvoicePayment } from '../../core/store/ledger/payments.ts';
import { findPriceRates } from '../../core/store/outbox/adapter-orders.ts';
import type { Caller } from '../web/authenticate.ts';
import { headerValues } from '../web/headers.ts';
import { clocksApart, type FieldError, Problem, problemOf, retryLater } from '../web/problem.ts';
import { notesOf } from '../web/request-notes.ts';
import type { ApiDeps } from './api-deps.ts';
import { callerOf, guarded, refuseKey } from './guard.ts';
import { creationResponses, problemResponses } from './problem-responses.ts';
import { type CreateFields, invalid, optionErrors, readCreateInput } from './read-create-input.ts';
import {
  DEFAULT_LIMIT,
  inspectQuery,
  invalidQuery,
  MAX_LIMIT,
  pageAfter,
  readAfter,
  readLimit,
  readQuery,
  wrongValue,
} from './read-query.ts';
import {
  CreateInvoiceSchema,
  InvoiceDetailsSchema,
  InvoiceListSchema,
  InvoicePath,
  InvoiceSchema,
  WithdrawnInvoiceSchema,
} from './schemas.ts';

const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/;

/** Registers `POST /v1/invoices`, the routes for one invoice, and `GET /v1/invoices`. */
export function registerInvoices(app: FastifyInstance, deps: ApiDeps): void {
  const readInvoice = createReader(deps);
  const creating = { ...deps, sharing: createSharing(deps) };
  app.post('/v1/invoices', guarded(deps, 'create', createSchema), (request, reply) => create(creating, request, reply));
  app.get('/v1/invoices/:invoiceId', guarded(deps, 'read', readSchema), (request) => read(deps, readInvoice, request));
  app.post('/v1/invoices/:invoiceId/withdraw', guarded(deps, 'create', withdrawSchema), (request) =>
    withdraw(deps, readInvoice, request),
  );
  app.get('/v1/invoices', guarded(deps, 'read', listSchema), (request) => findOrList(deps, request));
}

async function create(deps: ApiDeps & { sharing: Sharing }, request: FastifyRequest, reply: FastifyReply) {
  const caller = callerOf(request);
  const idempotencyKey = readIdempotencyKey(request);
  refuseExpand(request);
  readQuery(request, []);
  const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
  const fields = readCreateInput(body);
  notesOf(request).externalId = fields.externalId;
  const asked = await convert(deps, caller, fields);
  const { requestedMicro } = asked;
  const input = { ...caller, ...fields, requestedMicro, options: formatOptions(asked.options), idempotencyKey };
  const errors = [...asked.errors, ...optionErrors(fields.options, caller)];
  const refusal = errors.length === 0 ? asked.refusal : invalid(errors);
  const created = refusal === null ? await createOrder(deps, input) : await findEarlier(deps, input);
  if (created === null) throw refusal;
  if (created.kind === 'amount-unavailable') await deps.onAmountRefused({ ...caller, requestedMicro });
  if (created.kind === 'limited') await deps.onUnpaidRefused({ ...caller, ...created });
  if (created.kind !== 'created' && created.kind !== 'replayed') {
    throw refusalOf(created, requestedMicro, deps, caller.keyId);
  }
  reply.code(201);
  const location = `/v1/invoices/${encodeId('inv', created.invoice.id)}`;
  reply.header('Location', location);
  if (created.kind === 'replayed') reply.header('Idempotent-Replayed', 'true');
  return projectInvoice(created.invoice, deps.publicUrl());
}

/**
 * A placeholder for an amount that couldn't be calculated. No invoice is created with it. It isn't compared with an earlier invoice for the
 * same price either, because that invoice has the amount from its own rate.
 */
const NO_AMOUNT = microUsdt(0n);
/** Rate sources are queried every minute. */
const RATE_RETRY_SECONDS = 60;

type Converted = Pick<CreateFields, 'options'> & {
  requestedMicro: MicroUsdt;
  errors: FieldError[];
  refusal: Problem | null;
};

/** Converts a request's price, if it has one, at the current rate. A repeated request succeeds despite `errors` and `refusal`. */
async function convert({ db, now }: ApiDeps, { projectId }: Caller, fields: CreateFields): Promise<Converted> {
  const { options, requestedMicro } = fields;
  const { price } = options;
  if (price === undefined || requestedMicro !== null) {
    return { options, requestedMicro: requestedMicro ?? NO_AMOUNT, errors: [], refusal: null };
  }
  const { amount, currency } = price;
  const unconverted = { options, requestedMicro: NO_AMOUNT, errors: [], refusal: null };
  const wrong = (field: string, code: string, message: string): Converted => ({
    ...unconverted,
    errors: [{ field, code, message }],
  });
  const rates = await findPriceRates(db, projectId);
  const found = rates.find((each) => each.currency === currency);
  if (found === undefined) {
    const known = rates.map((each) => each.currency).join(', ') || 'none';
    const fix = `the operator can set a rate with: quittance adapter enable --kind price --currency ${currency} --rate …`;
    return wrong('price.currency', 'NO_RATE', `is ${currency}, but the project has rates for: ${known}; ${fix}`);
  }
  // If someone tampered with the stored rate, the next reading from the source replaces it within a minute.
  const isReadable = found.rateSource === null || found.isReadSound;
  const inForce = isReadable ? rateInForce(found, now()) : null;
  if (inForce === null) {
    return {
      ...unconverted,
      refusal: retryLater(
        'RATE_UNAVAILABLE',
        `There is no current rate for ${currency}, so no invoice was created. Retry in ${RATE_RETRY_SECONDS} s with the same Idempotency-Key, or send an amount in USDT.`,
        RATE_RETRY_SECONDS,
      ),
    };
  }
  const { rateMicro, ...rate } = inForce;
  const parsed = parseAmount(amount);
  const converted = parsed.kind === 'ok' ? convertPrice(parsed.amountMicro, rateMicro) : null;
  if (converted === null) {
    const bound = `is worth more than 999999999999.999999 USDT at the rate ${rate.rate}: send a smaller price, such as 19.99`;
    return wrong('price.amount', 'TOO_LARGE', bound);
  }
  const priced = { ...options, price: { amount, currency, ...rate } };
  return { options: priced, requestedMicro: converted, errors: [], refusal: null };
}

/** A create request always returns the five fields, so `expand` would have no effect. */
function refuseExpand(request: FastifyRequest): void {
  if ((request.query as { expand?: unknown }).expand === undefined) return;
  const message =
    'is not supported here: create the invoice, then read it with GET /v1/invoices/{invoiceId}?expand=payment';
  throw invalidQuery([{ field: 'expand', code: 'UNKNOWN_FIELD', message }]);
}

function readIdempotencyKey(request: FastifyRequest): string {
  const values = headerValues(request.raw, 'idempotency-key');
  const [value] = values;
  if (value === undefined) {
    throw new Problem(
      'IDEMPOTENCY_KEY_REQUIRED',
      'The Idempotency-Key header is missing; send a key that you chose and stored for this order attempt.',
    );
  }
  if (values.length > 1) {
    throw new Problem(
      'IDEMPOTENCY_KEY_INVALID',
      `The Idempotency-Key header was sent ${values.length} times; send it once.`,
    );
  }
  if (!IDEMPOTENCY_KEY.test(value)) {
    throw new Problem(
      'IDEMPOTENCY_KEY_INVALID',
      `The Idempotency-Key header has ${value.length} characters; send 1 to 255 visible ASCII characters, without spaces.`,
    );
  }
  return value;
}

function refusalOf(
  created: Exclude<Ordered, { kind: 'created' } | { kind: 'replayed' }>,
  requestedMicro: MicroUsdt,
  deps: ApiDeps,
  keyId: string,
): Problem {
  switch (created.kind) {
    case 'conflict': {
      const invoiceId = encodeId('inv', created.existing.id);
      const detail =
        created.rule === 'idempotencyKey'
          ? `The Idempotency-Key was already used with different input (fields that differ: ${created.fields.join(', ')}), which created ${invoiceId}. Use a new key for a new order attempt.`
          : `The externalId is already reserved by ${invoiceId}. Read that invoice, or use a new externalId for a new order attempt.`;
      return new Problem('IDEMPOTENCY_CONFLICT', detail, {
        extensions: { conflict: created.rule, fields: created.fields, invoiceId },
      });
    }
    case 'amount-unavailable':
      return new Problem('AMOUNT_UNAVAILABLE', explainUnavailable(created, requestedMicro));
    case 'limited':
      return tooManyUnpaid(created);
    case 'unwatched':
      return unwatched(created);
    case 'clocks-apart':
      return clocksApart(created.problem);
    case 'rule-not-signed':
      return problemOf('rule-not-signed');
    case 'project-archived':
      return new Problem(
        'PROJECT_ARCHIVED',
        "This key's project is archived, so it accepts no new invoices. Existing invoices can still be read and paid. The operator can reactivate the project with: quittance project unarchive.",
      );
    case 'key-not-valid':
      return refuseKey(deps, keyId);
    default:
      return assertNever(created);
  }
}

function explainUnavailable(
  { policy, addressesInUse, frozenAddresses }: Extract<Ordered, { kind: 'amount-unavailable' }>,
  requestedMicro: MicroUsdt,
): string {
  const amount = `${formatAmount(requestedMicro)} USDT`;
  const reason =
    addressesInUse === 0
      ? `The project has no active address for its policy "${policy}"`
      : policy === 'exact'
        ? `The amount ${amount} is reserved on each of the project's active addresses (${addressesInUse}), or was received there in the last 24 hours without an invoice. With the policy "exact", an address can serve each amount only once`
        : `All payable amounts for ${amount} are reserved on each of the project's active addresses (${addressesInUse})`;
  const frozen =
    frozenAddresses === 0
      ? ''
      : ` Tether froze ${frozenAddresses} of the project's addresses, so ${frozenAddresses === 1 ? 'it gets' : 'they get'} no new invoices.`;
  return `${reason}.${frozen} The operator can add an address with: quittance address add. Then retry with the same Idempotency-Key.`;
}

function tooManyUnpaid({ rule, limit, retryAfterSeconds }: Extract<Ordered, { kind: 'limited' }>): Problem {
  const span = rule === 'unpaid' ? { words: '30 minutes', seconds: 1800 } : { words: 'minute', seconds: 60 };
  return new Problem(
    'TOO_MANY_UNPAID',
    `The project has reached its limit of ${limit} unpaid invoices from the last ${span.words}. The request had no effect: retry in ${retryAfterSeconds} s with the same Idempotency-Key.`,
    {
      headers: {
        'Retry-After': String(retryAfterSeconds),
        RateLimit: `"${rule}";r=0;t=${retryAfterSeconds}`,
        'RateLimit-Policy': `"${rule}";q=${limit};w=${span.seconds}`,
      },
    },
  );
}

/** The client can't fix this, and an operator needs longer than a few seconds. */
const UNWATCHED_RETRY_SECONDS = 60;

function unwatched({ network, why }: Extract<Ordered, { kind: 'unwatched' }>): Problem {
  const variable = nodesVariable(network);
  const [reason, fix] =
    why === 'not-set-up'
      ? ['is not set up on this server', `The operator must set ${variable}`]
      : [
          'has not been read by this server yet, because no node has returned a block',
          `The operator must check ${variable} with "quittance doctor"`,
        ];
  const detail = `No invoice was created: this project's network, ${network}, ${reason}, so Quittance would not see a payment. ${fix}. Then retry with the same Idempotency-Key.`;
  return retryLater('UNAVAILABLE', detail, UNWATCHED_RETRY_SECONDS);
}

async function read(deps: ApiDeps, readInvoice: ReadInvoice, request: FastifyRequest) {
  const caller = callerOf(request);
  const { expand } = readQuery(request, ['expand']);
  const wanted = expand?.split(',') ?? [];
  if (wanted.some((part) => part !== 'payment' && part !== 'metadata')) {
    const message = 'must be "payment", "metadata", or "payment,metadata"';
    throw invalidQuery([{ field: 'expand', code: 'UNKNOWN_VALUE', message }]);
  }
  const invoice = await readInvoice(request);
  if (expand === undefined) return projectInvoice(invoice, deps.publicUrl());
  const payment = await findInvoicePayment(deps.db, caller.projectId, invoice.id);
  if (payment === null) throw new Error(`invoice ${invoice.id} disappeared, although invoices are never deleted`);
  return {
    ...projectInvoice(payment, deps.publicUrl()),
    ...(wanted.includes('metadata') && describeOptions(payment.options)),
    ...(wanted.includes('payment') && describeExpanded(deps, caller, payment)),
  };
}

function describeExpanded(deps: ApiDeps, { network }: Caller, payment: InvoicePayment): object {
  const addressProof = deps.proofOf(network, payment.address);
  const { price } = readOptions(payment.options);
  return {
    payment: {
      ...describePayment(payment, payment.transaction),
      ...(addressProof && { addressProof }),
      ...(price !== undefined && { price }),
    },
    ...(payment.withdrawnAt !== null && { withdrawnAt: toIso(payment.withdrawnAt) }),
  };
}

/** Returns the options from the create request. The lifetime isn't included, because `expiresAt` shows it. */
function describeOptions(text: string | null): object {
  const { metadata = {}, description, returnUrl } = readOptions(text);
  return { metadata, ...(description !== undefined && { description }), ...(returnUrl !== undefined && { returnUrl }) };
}

const createSchema = {
  operationId: 'createInvoice',
  tags: ['invoices'],
  summary: 'Create an invoice',
  headers: Type.Object({
    'Idempotency-Key': Type.String({
      pattern: '^[!-~]{1,255}$',
      description:
        'A key that you choose and store for this order attempt; a retry with the same key and body returns the same invoice',
      examples: ['order-1001'],
    }),
  }),
  body: CreateInvoiceSchema,
  response: { 201: InvoiceSchema, ...creationResponses(400, 401, 403, 409, 413, 415, 422, 429, 500, 503) },
};

const readSchema = {
  operationId: 'readInvoice',
  tags: ['invoices'],
  summary: 'Read an invoice',
  params: InvoicePath,
  querystring: Type.Object({
    expand: Type.Optional(
      Type.String({
        pattern: '^(payment|metadata)(,(payment|metadata))*$',
        description:
          '`payment` adds `payment`, and `withdrawnAt` if you withdrew the invoice; `metadata` adds `metadata`, `description` and `returnUrl`',
        examples: ['payment'],
      }),
    ),
  }),
  response: {
    200: InvoiceDetailsSchema,
    ...problemResponses(400, 401, 403, 404, 429, 500, 503),
  },
};

/** Ignores the body. */
async function withdraw(deps: ApiDeps, readInvoice: ReadInvoice, request: FastifyRequest) {
  const { projectId, network } = callerOf(request);
  readQuery(request, []);
  const { id } = await readInvoice(request);
  await withdrawInvoice(deps.db, { id, projectId, network, at: deps.now() });
  const invoice = await findInvoicePayment(deps.db, projectId, id);
  if (invoice === null)
    throw new Error(`invoice ${encodeId('inv', id)} disappeared, although invoices are never deleted`);
  if (invoice.withdrawnAt === null)
    throw new Problem(
      'INVOICE_PAID',
      'The invoice is PAID, so it cannot be withdrawn. Deliver the order, or send the money back yourself.',
    );
  return { ...projectInvoice(invoice, deps.publicUrl()), withdrawnAt: toIso(invoice.withdrawnAt) };
}

const withdrawSchema = {
  operationId: 'withdrawInvoice',
  tags: ['invoices'],
  summary: 'Withdraw an invoice',
  description:
    'The payment page no longer shows how to pay, and says that payment is cancelled. The status does not change: a payment that is under way, or arrives anyway, still pays the invoice. Withdrawing an invoice again changes nothing.',
  params: InvoicePath,
  response: { 200: WithdrawnInvoiceSchema, ...problemResponses(400, 401, 403, 404, 409, 413, 415, 429, 500, 503) },
};

/** Maximum number of rows to scan for a page of invoices with one status. Scanning them takes a few hundredths of a second. */
const WINDOW = 10_000;

/** Returns the invoice with an `externalId`, or a page of all invoices. */
async function findOrList(deps: ApiDeps, request: FastifyRequest) {
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

const listSchema = {
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

/** Returns the invoice, or `null` if there's none. Throws `UNAUTHENTICATED` if the key is no longer valid. */
function readable(found: FoundInvoice, deps: ApiDeps, keyId: string) {
  switch (found.kind) {
    case 'found':
      return found.invoice;
    case 'none':
      return null;
    case 'key-not-valid':
      return refuseKey(deps, keyId);
    default:
      return assertNever(found);
  }
}

/** Returns the invoice whose id is in the path, if it belongs to the caller's project. Throws `UNAUTHENTICATED` or `INVOICE_NOT_FOUND`. */
type ReadInvoice = (request: FastifyRequest) => Promise<ProjectedInvoice>;

function createReader(deps: ApiDeps): ReadInvoice {
  const findInvoice = createInvoiceReader(deps.db, deps.now);
  return async (request) => {
    const { keyId } = callerOf(request);
    const { invoiceId } = request.params as { invoiceId: string };
    // Looks up an id even if it's malformed, so that the response takes as long as for an unknown one.
    const invoice = readable(await findInvoice({ keyId, id: decodeId('inv', invoiceId) ?? NIL_UUID }), deps, keyId);
    if (invoice === null) {
      throw new Problem('INVOICE_NOT_FOUND', "There is no invoice with this id in this key's project.");
    }
    notesOf(request).externalId = invoice.externalId;
    return invoice;
  };
}
