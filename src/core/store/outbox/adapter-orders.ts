import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { answerOf, commandOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_ADAPTER_ORDER, SEALED_API_KEY, SEALED_ENDPOINT, SEALED_READ_RATE } from '../db/sealed-tables.ts';
import { isAsSealed, listColumns, type Row, text } from '../db/statement.ts';
import { sealReadRate, type WebhookEndpoint } from './webhook-endpoints.ts';

/** The systems that adapters imitate, and `price`: the rate of a currency that the API accepts prices in. */
export const ADAPTER_KINDS = ['epusdt', 'bepusdt', 'epay', 'price'] as const;
export type AdapterKind = (typeof ADAPTER_KINDS)[number];
export type Dialect = Exclude<AdapterKind, 'price'> | 'gmpay';

/** The SQL that says whether an endpoint `w` gets an event `e`. An adapter's endpoint gets only payments for its own orders. */
export const WANTS_EVENT = `(w.event_types is null or e.type = any(w.event_types))
       and (w.adapter is null or exists (
         select from adapter_orders o where o.project_id = e.project_id and o.invoice_id = e.invoice_id and o.endpoint_id = w.id))`;

const adapter = {
  id: 'uuid',
  projectId: 'uuid',
  network: text<Network>(),
  adapter: text<AdapterKind>(),
  currency: 'text',
  rateMicro: 'int8',
  rateSource: 'text?',
  rateMinMicro: 'int8',
  rateMaxMicro: 'int8',
  readMicro: 'int8?',
  readAt: 'timestamptz?',
  /** The time since which the adapter's callbacks have been disabled and it hasn't accepted any orders. */
  disabledAt: 'timestamptz?',
  isSound: isAsSealed(SEALED_ENDPOINT),
  isReadSound: isAsSealed(SEALED_READ_RATE),
} as const;

const SEALS = { isSound: sealColumn(SEALED_ENDPOINT, 'w.'), isReadSound: sealColumn(SEALED_READ_RATE, 'w.') };
const ADAPTER = listColumns(adapter, 'w.', SEALS);

/**
 * An adapter. Its id is also the id of the API key that it creates invoices with. `rateMicro` is the price of one USDT in `currency`, in
 * millionths. If there is a `rateSource`, the price is instead `readMicro`, which the source returned for the time `readAt`. A constraint
 * keeps both prices within `rateMinMicro` and `rateMaxMicro`.
 */
export type Adapter = Omit<Row<typeof adapter>, 'isSound' | 'isReadSound'>;

/** Returns the adapter with this id, if its seals are valid. */
export const findAdapter = answerOf(
  'adapter-find',
  adapter,
  `select ${ADAPTER} from webhook_endpoints w where w.id = $1 and w.adapter is not null`,
  (id: string) => [id],
  (rows) =>
    rows.find(({ isSound, rateSource, isReadSound }) => isSound && (rateSource === null || isReadSound)) ?? null,
);

const order = {
  invoiceId: 'uuid',
  projectId: 'uuid',
  endpointId: 'uuid',
  dialect: text<Dialect>(),
  notifyUrl: 'text',
  returnUrl: 'text?',
  amount: 'text',
  name: 'text?',
  type: 'text?',
  param: 'text?',
  createdAt: 'timestamptz',
  isSound: isAsSealed(SEALED_ADAPTER_ORDER),
} as const;

const ORDER = listColumns(order, 'o.', { isSound: sealColumn(SEALED_ADAPTER_ORDER, 'o.') });

/** The part of an adapter order's data that isn't in its invoice. `amount` is in the adapter's currency, as the shop wrote it. */
export type AdapterOrder = Omit<Row<typeof order>, 'isSound'>;

/** Stores an order. An order that already exists isn't changed. */
export const insertAdapterOrder = commandOf(
  'adapter-order-insert',
  `insert into adapter_orders (invoice_id, project_id, endpoint_id, dialect, notify_url, return_url, amount, name, type, param, created_at, mac)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict do nothing`,
  (row: AdapterOrder) => [
    ...[row.invoiceId, row.projectId, row.endpointId, row.dialect, row.notifyUrl, row.returnUrl, row.amount],
    ...[row.name, row.type, row.param, new Date(row.createdAt)],
    sealOf(SEALED_ADAPTER_ORDER, row),
  ],
);

/** Returns the adapter order of an invoice (UUID), if the order's seal is valid. */
export const findAdapterOrder = answerOf(
  'adapter-order-find',
  order,
  `select ${ORDER} from adapter_orders o where o.project_id = $1 and o.invoice_id = $2 and o.endpoint_id = $3`,
  (projectId: string, invoiceId: string, endpointId: string) => [projectId, invoiceId, endpointId],
  (rows) => rows.find(({ isSound }) => isSound) ?? null,
);

/** An order that its shop is to be notified of. `isPaid`: its invoice is paid now, whatever the event says. */
export type CallbackOrder = AdapterOrder & { isPaid: boolean };

/**
 * Returns the orders of these events (UUIDs), if the orders' seals are valid. An event has at most one order, because its invoice has at
 * most one.
 */
export const findCallbackOrders = answerOf(
  'adapter-orders-of-events',
  { eventId: 'uuid', isPaid: 'bool', ...order },
  `select e.id as event_id, i.status = 'PAID' as is_paid, ${ORDER}
   from events e join adapter_orders o on o.project_id = e.project_id and o.invoice_id = e.invoice_id
   join invoices i on i.project_id = o.project_id and i.id = o.invoice_id
   where e.id = any($1::uuid[])`,
  (eventIds: readonly string[]) => [eventIds],
  (rows) => new Map<string, CallbackOrder>(rows.filter(({ isSound }) => isSound).map((row) => [row.eventId, row])),
);

/** Returns a project's oldest 1,000 adapters, with the time when they stopped accepting orders. */
export const findAdapters = rowsOf(
  'adapter-list',
  { ...adapter, createdAt: 'timestamptz', revokedAt: 'timestamptz?' },
  `select ${ADAPTER}, w.created_at, k.revoked_at
   from webhook_endpoints w join api_keys k on k.id = w.id
   where w.project_id = $1 and w.adapter is not null order by w.created_at, w.id limit 1000`,
  (projectId: string) => [projectId],
);

const priceRate = { ...adapter, isKeySound: isAsSealed(SEALED_API_KEY, { isOfOther: true }) };

/**
 * Returns the rates that the API converts a project's prices at, oldest first, if their seals are valid. Disabling a rate removes its key's
 * seal, so the rate stays disabled even if someone enables it again in the database. The caller checks `isReadSound`.
 */
export const findPriceRates = answerOf(
  'price-rates',
  priceRate,
  `select ${listColumns(priceRate, 'w.', { ...SEALS, isKeySound: sealColumn(SEALED_API_KEY, 'k.') })}
   from webhook_endpoints w join api_keys k on k.id = w.id and k.project_id = w.project_id
   where w.project_id = $1 and w.adapter = 'price' and k.revoked_at is null
   order by w.created_at, w.id limit 100`,
  (projectId: string) => [projectId],
  (rows) => rows.filter(({ isSound, isKeySound }) => isSound && isKeySound),
);

/** A fixed rate, or a source with the rate that it returned, and the bounds for either one. */
export type StoredRate = Pick<
  Adapter,
  'rateMicro' | 'rateSource' | 'rateMinMicro' | 'rateMaxMicro' | 'readMicro' | 'readAt'
>;

/** Changes an adapter's rate for future orders. */
export const changeAdapterRate = commandOf(
  'adapter-rate-change',
  `update webhook_endpoints set rate_micro = $2, rate_source = $3, read_micro = $4, read_at = $5, read_mac = $6, mac = $7,
     rate_min_micro = $8, rate_max_micro = $9 where id = $1`,
  (endpoint: WebhookEndpoint, { rateMicro, rateSource, readMicro, readAt, ...bounds }: StoredRate) => [
    ...[endpoint.id, rateMicro, rateSource, readMicro, readAt && new Date(readAt)],
    sealReadRate({ ...endpoint, readMicro, readAt }),
    sealOf(SEALED_ENDPOINT, { ...endpoint, rateMicro, rateSource }),
    bounds.rateMinMicro,
    bounds.rateMaxMicro,
  ],
);

const sourced = {
  ...adapter,
  rateSource: 'text',
  readMicro: 'int8',
  readAt: 'timestamptz',
} as const;

/** An adapter whose rate comes from a source. */
export type SourcedAdapter = Row<typeof sourced>;

/** Returns the adapters that accept orders and have a rate source: the oldest 10,000 across all projects. */
export const listSourcedAdapters = rowsOf(
  'adapter-rates-list',
  sourced,
  `select ${listColumns(sourced, 'w.', SEALS)}
   from webhook_endpoints w join api_keys k on k.id = w.id join projects p on p.id = w.project_id
   where w.rate_source is not null and k.revoked_at is null and p.archived_at is null
   order by w.created_at, w.id limit 10000`,
);

/**
 * Stores a rate from an adapter's source, if the source is unchanged and the rate is newer than the stored one. It also replaces a stored
 * rate from the future, and one that was changed directly in the database. Of these, only the source must have a valid seal.
 */
export const storeReadRate = commandOf(
  'adapter-rate-store',
  `update webhook_endpoints set read_micro = $2, read_at = $3, read_mac = $4
   where id = $1 and rate_source = $5 and (read_at < $3 or read_at > $6 or (read_at = $3 and read_micro <> $2) or not $7)`,
  (
    { id, projectId, rateSource, isReadSound }: SourcedAdapter,
    { readMicro, readAt }: Pick<SourcedAdapter, 'readMicro' | 'readAt'>,
    now: UnixMs,
  ) => [
    ...[id, readMicro, new Date(readAt), sealReadRate({ id, projectId, readMicro, readAt }), rateSource],
    new Date(now),
    isReadSound,
  ],
);
