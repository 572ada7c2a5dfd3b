import { readCreate, readExpand, readExternalId, readId, readKey, readLimit } from './arguments.ts';
import { strange } from './error.ts';
import { type QuittanceOptions, readSettings } from './settings.ts';
import { createTransport, type Transport } from './transport.ts';
import type {
  CreateInvoice,
  EventPage,
  Invoice,
  InvoiceWithMetadata,
  InvoiceWithPayment,
  WebhookEvent,
  WithdrawnInvoice,
} from './types.ts';

export type RequestOptions = { signal?: AbortSignal | undefined };
/** `idempotencyKey`: you choose it and store it before the first attempt. It has 1 to 255 visible ASCII characters. */
export type CreateOptions = RequestOptions & { idempotencyKey: string };
export type GetOptions = RequestOptions & { expand?: undefined };
type MetadataOptions = RequestOptions & { expand: 'metadata' | readonly ['metadata'] };
type ExpandOptions = RequestOptions & { expand: 'payment' | readonly ('payment' | 'metadata')[] };
/** `after`: the id of the last event that you know. `limit`: events per page, 1 to 100. */
export type EventQuery = RequestOptions & { after?: string | undefined; limit?: number | undefined };

/** A client for one project. All methods reject with a QuittanceError, or with the reason of your signal. */
export class Quittance {
  readonly invoices: Invoices;
  readonly events: Events;

  /** Throws a TypeError for invalid options. */
  constructor(options: QuittanceOptions) {
    // The client keeps the key only in closures, so that printing or serialising the client never shows it.
    const transport = createTransport(readSettings(options));
    this.invoices = createInvoices(transport);
    this.events = createEvents(transport);
  }
}

type Invoices = {
  /** Creates the invoice for an order attempt, or returns the one that an earlier request with the same key created. */
  create(input: CreateInvoice, options: CreateOptions): Promise<Invoice>;
  /** Returns one invoice. With `expand`, it includes the payment, or your own data about the invoice. */
  get(invoiceId: string, options: MetadataOptions): Promise<InvoiceWithMetadata>;
  get(invoiceId: string, options: ExpandOptions): Promise<InvoiceWithPayment>;
  get(invoiceId: string, options?: GetOptions): Promise<Invoice>;
  /** Returns the invoice with your own id, or null if there's none. */
  findByExternalId(externalId: string, options?: RequestOptions): Promise<Invoice | null>;
  /**
   * Makes the payment page stop offering a way to pay. A payment that arrives anyway still pays the invoice. `INVOICE_PAID` means that it's
   * too late.
   */
  withdraw(invoiceId: string, options?: RequestOptions): Promise<WithdrawnInvoice>;
};

type Events = {
  /** Returns one page of the feed, oldest first. */
  page(query?: EventQuery): Promise<EventPage>;
  /** Yields every event after `after` up to the newest, oldest first. `limit` is the number of events in each request. */
  list(query?: EventQuery): AsyncGenerator<WebhookEvent, void, undefined>;
};

function createInvoices(transport: Transport): Invoices {
  const ofOne = async (method: 'GET' | 'POST', id: string, below: string, signal: AbortSignal | undefined) => {
    const path = `/v1/invoices/${readId(id, 'inv')}${below}`;
    return confirm(await transport({ method, path, signal }), 'invoiceId', id);
  };
  return {
    create: async (input, options) => {
      const headers = { 'content-type': 'application/json', 'idempotency-key': readKey(options) };
      const { signal } = options;
      const order = readCreate(input);
      const body = JSON.stringify(order);
      const answer = await transport({ method: 'POST', path: '/v1/invoices', headers, body, signal });
      return confirm(answer, 'externalId', order.externalId);
    },
    get: async (invoiceId: string, { expand, signal }: GetOptions | MetadataOptions | ExpandOptions = {}) =>
      (await ofOne('GET', invoiceId, readExpand(expand), signal)) as InvoiceWithPayment & InvoiceWithMetadata,
    withdraw: async (invoiceId, { signal } = {}) =>
      (await ofOne('POST', invoiceId, '/withdraw', signal)) as WithdrawnInvoice,
    findByExternalId: async (externalId, { signal } = {}) => {
      const path = `/v1/invoices?externalId=${encodeURIComponent(readExternalId(externalId))}`;
      const { data } = await transport({ method: 'GET', path, signal });
      if (Array.isArray(data) && data.length === 0) return null;
      return confirm(Array.isArray(data) ? data[0] : undefined, 'externalId', externalId);
    },
  };
}

function createEvents(transport: Transport): Events {
  const page: Events['page'] = async ({ after, limit, signal } = {}) => {
    const query = new URLSearchParams();
    if (after !== undefined) query.set('after', readId(after, 'evt'));
    if (limit !== undefined) query.set('limit', readLimit(limit));
    const answer = await transport({ method: 'GET', path: `/v1/events?${query}`, signal });
    if (!Array.isArray(answer['data']) || typeof answer['hasMore'] !== 'boolean')
      throw strange('a response that is not a page of events');
    return answer as EventPage;
  };
  return {
    page,
    list: async function* ({ after, limit, signal }: EventQuery = {}) {
      for (let cursor = after, hasMore = true; hasMore; ) {
        const { data, ...rest } = await page({ after: cursor, limit, signal });
        yield* data;
        const last = data.at(-1)?.id;
        hasMore = rest.hasMore;
        // Throws instead of requesting the same page again and again.
        if (hasMore && (last === undefined || last === cursor)) throw strange('an invalid cursor');
        cursor = last;
      }
    },
  };
}

/** Throws if a response is about an invoice other than the requested one, because a proxy in between may mix up responses. */
function confirm(answer: unknown, field: 'invoiceId' | 'externalId', expected: string): Invoice {
  const invoice = answer as Invoice | null | undefined;
  if (invoice?.[field] !== expected || typeof invoice.status !== 'string') throw strange('another invoice');
  return invoice;
}
