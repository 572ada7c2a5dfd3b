import type { Network } from '../../domain/network.ts';
import { answerOf, commandOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_ADAPTER_ORDER, SEALED_ENDPOINT } from '../db/sealed-tables.ts';
import { isAsSealed, listColumns, type Row, text } from '../db/statement.ts';
import type { WebhookEndpoint } from './webhook-endpoints.ts';

/** Which system an adapter speaks for, and the forms that its orders come in. */
export type AdapterKind = 'epusdt' | 'epay';
export type Dialect = 'epusdt' | 'gmpay' | 'epay';

/** Whether an endpoint `w` is told of an event `e`: an adapter's, of payments of its own orders. */
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
  isSound: isAsSealed(SEALED_ENDPOINT),
} as const;

const ADAPTER = listColumns(adapter, 'w.', { isSound: sealColumn(SEALED_ENDPOINT, 'w.') });

/** `rateMicro`: the price of one USDT in `currency`, in millionths. Its id is that of the API key by which it creates invoices. */
export type Adapter = Omit<Row<typeof adapter>, 'isSound'>;

/** The adapter with this id, if it is as it was written. */
export const findAdapter = answerOf(
  'adapter-find',
  adapter,
  `select ${ADAPTER} from webhook_endpoints w where w.id = $1 and w.adapter is not null`,
  (id: string) => [id],
  (rows) => rows.find(({ isSound }) => isSound) ?? null,
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

/** What an order through an adapter needs beside its invoice. `amount`: in the adapter's currency, as the shop wrote it. */
export type AdapterOrder = Omit<Row<typeof order>, 'isSound'>;

/** Stores what an order needs; one that is there stays as it is. */
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

/** The order of an adapter behind an invoice (UUID), if it is as it was written. */
export const findAdapterOrder = answerOf(
  'adapter-order-find',
  order,
  `select ${ORDER} from adapter_orders o where o.project_id = $1 and o.invoice_id = $2 and o.endpoint_id = $3`,
  (projectId: string, invoiceId: string, endpointId: string) => [projectId, invoiceId, endpointId],
  (rows) => rows.find(({ isSound }) => isSound) ?? null,
);

/** The orders that these events (UUIDs) are of, if they are as they were written. An event has one at most, for its invoice has. */
export const findCallbackOrders = answerOf(
  'adapter-orders-of-events',
  { eventId: 'uuid', ...order },
  `select e.id as event_id, ${ORDER}
   from events e join adapter_orders o on o.project_id = e.project_id and o.invoice_id = e.invoice_id
   where e.id = any($1::uuid[])`,
  (eventIds: readonly string[]) => [eventIds],
  (rows) => new Map<string, AdapterOrder>(rows.filter(({ isSound }) => isSound).map((row) => [row.eventId, row])),
);

/** The oldest 1,000 adapters of a project, and since when those that take no more orders do not. */
export const listAdapters = rowsOf(
  'adapter-list',
  { ...adapter, createdAt: 'timestamptz', revokedAt: 'timestamptz?' },
  `select ${ADAPTER}, w.created_at, k.revoked_at
   from webhook_endpoints w join api_keys k on k.id = w.id
   where w.project_id = $1 and w.adapter is not null order by w.created_at, w.id limit 1000`,
  (projectId: string) => [projectId],
);

/** Gives an adapter another rate for the orders to come. */
export const changeAdapterRate = commandOf(
  'adapter-rate-change',
  'update webhook_endpoints set rate_micro = $2, mac = $3 where id = $1',
  (endpoint: WebhookEndpoint, rateMicro: bigint) => [
    ...[endpoint.id, rateMicro],
    sealOf(SEALED_ENDPOINT, { ...endpoint, rateMicro }),
  ],
);
