import { strange } from './error.ts';
import { type QuittanceOptions, readSettings } from './settings.ts';
import { createTransport, type Transport } from './transport.ts';
import type { Invoice, InvoiceStatus, Transfer, WebhookEvent } from './types.ts';

/** `after`: the last id that you already know. `limit`: how many items to request at a time, 1 to 100. */
type Walk = { after?: string | undefined; limit?: number | undefined; signal?: AbortSignal | undefined };
/** `createdAfter`: a time, for example `2026-09-01T00:00:00Z`. */
export type InvoiceFilter = Walk & { status?: InvoiceStatus | undefined; createdAfter?: string | undefined };
/** Without `kind`, you get only transfers that paid nothing. */
export type TransferFilter = Walk & { kind?: Transfer['kind'] | undefined };
/** `types`: only events of these types, for example `invoice.paid`. */
export type EventFilter = Walk & { types?: readonly WebhookEvent['type'][] | undefined };

/** Iterates over everything in a project, page by page. The iterators reject with a QuittanceError, or with the reason of your signal. */
export type Lists = {
  /** Yields the matching invoices, oldest first, and ends after the newest. */
  invoices(filter?: InvoiceFilter): AsyncGenerator<Invoice, void, undefined>;
  /** Yields the transfers to the project's addresses, with the reason if they paid nothing, and ends after the newest. */
  transfers(filter?: TransferFilter): AsyncGenerator<Transfer, void, undefined>;
  /**
   * Yields events without end, each a moment after it happens. Store the `id` of the last event that you handled, and start after it. Stop
   * with `signal` or `break`.
   */
  follow(filter?: EventFilter): AsyncGenerator<WebhookEvent, void, undefined>;
};

/** The longest time for which the API delays an empty page. */
const MAX_WAIT_S = 30;
/** The pause after an empty page that arrived immediately. The API doesn't delay a page if too many requests are waiting already. */
const PAUSE_MS = 2000;

/** Accepts the same options as `Quittance`. Throws a TypeError for invalid options. */
export function createLists(options: QuittanceOptions): Lists {
  const settings = readSettings(options);
  const transport = createTransport(settings);
  // The wait must be shorter than the timeout of an attempt, because the page itself needs some time as well.
  const waitS = Math.max(1, Math.min(MAX_WAIT_S, Math.floor(settings.timeoutMs / 2000)));
  return {
    invoices: (filter) => walk<Invoice>(transport, '/v1/invoices', filter),
    transfers: (filter) => walk<Transfer>(transport, '/v1/transfers', filter),
    follow: (filter) => follow(transport, waitS, filter),
  };
}

async function* walk<Item>(
  transport: Transport,
  path: string,
  { after, signal, ...filter }: Walk & Filter = {},
): AsyncGenerator<Item, void, undefined> {
  for (let cursor = after; ; ) {
    const { data, next } = await readPage<Item>(transport, path, { ...filter, after: cursor }, signal);
    yield* data;
    if (next === null) return;
    cursor = further(next, cursor);
  }
}

async function* follow(
  transport: Transport,
  waitS: number,
  { after, limit, types, signal }: EventFilter = {},
): AsyncGenerator<WebhookEvent, void, undefined> {
  const filter = { limit, types: types?.join(','), wait: waitS };
  for (let cursor = after; ; ) {
    const askedAtMs = Date.now();
    const page = await readPage<WebhookEvent>(transport, '/v1/events', { ...filter, after: cursor }, signal);
    yield* page.data;
    const last = page.next ?? page.data.at(-1)?.id;
    if (page.hasMore) cursor = further(last, cursor);
    else {
      cursor = last ?? cursor;
      const isEarly = page.data.length === 0 && Date.now() - askedAtMs < PAUSE_MS / 4;
      if (isEarly) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

type Filter = Record<string, unknown>;
type Page<Item> = { data: Item[]; next: string | null | undefined; hasMore: boolean };

async function readPage<Item>(
  transport: Transport,
  path: string,
  filter: Filter,
  signal: AbortSignal | undefined,
): Promise<Page<Item>> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
  const { data, next, hasMore } = await transport({ method: 'GET', path: `${path}?${query}`, signal });
  const isNext = next === undefined || next === null || typeof next === 'string';
  if (!Array.isArray(data) || !isNext) throw strange('no page');
  return { data: data as Item[], next, hasMore: hasMore === true };
}

/** Throws instead of requesting the same page again and again. */
function further(next: string | undefined, cursor: string | undefined): string {
  if (next === undefined || next === cursor) throw strange('an invalid cursor');
  return next;
}
