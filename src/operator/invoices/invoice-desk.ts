import { NIL_UUID } from '../../domain/ids.ts';
import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { Policy } from '../../domain/policy.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import { answerOf, rowOf } from '../../store/db/rows-of.ts';
import { count, hex, listColumns, maybe, micro, type Row, text } from '../../store/db/statement.ts';

const listed = {
  id: 'uuid',
  projectId: 'uuid',
  externalId: 'text',
  status: text<InvoiceStatus>(),
  requestedMicro: micro<MicroUsdt>('int8'),
  payableMicro: micro<MicroUsdt>('int8'),
  address: 'address',
  policy: text<Policy>(),
  checkoutToken: 'text',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz',
  paid: maybe({ txId: hex(), blockTime: 'timestamptz' }),
} as const;
/** An invoice as a list shows it, with the transfer that paid it. Ids are UUIDs. */
export type DeskInvoice = Row<typeof listed>;

const SOURCES = {
  address: addressColumn('a'),
  policy: 'a.policy',
  paid: { txId: "encode(t.tx_id, 'hex')", blockTime: 't.block_time' },
} as const;
const JOINS = 'join addresses a on a.id = i.address_id left join transfers t on t.id = i.paid_transfer_id';

/** `notBefore` and `before`: UUIDs, which are in the order of creation. `amountMicro`: requested or payable. */
export type InvoiceFilter = {
  status: InvoiceStatus | null;
  policy: Policy | null;
  amountMicro: MicroUsdt | null;
  notBefore: string | null;
  before: string | null;
};

/** `looked` invoices were looked through, down to `last`. */
type Found = { invoices: DeskInvoice[]; looked: number; last: string | null };

const NO_UUID_IS_ABOVE = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

// No index serves every filter, and each would cost every creation. So the next invoices are looked through up to a bound, and the answer
// says how far that was. A payable amount is found by its reservation, however old it is.
/** The newest invoices of a project that fit, of the next `window`. `isFirst`: those that reserve exactly the amount are found beyond it too. */
export const findDeskInvoices = answerOf(
  'invoice-desk-list',
  { looked: count, last: 'uuid?', invoice: maybe(listed) },
  `with seen as materialized (
     select i.id, i.address_id, i.status, i.requested_micro, i.payable_micro from invoices i
     where i.project_id = $1 and i.id >= $2 and i.id < $3 order by i.id desc limit $4::int8),
   last as (select id from seen order by id limit 1),
   fitting as (
     select * from seen where $5::int8 is null or payable_micro = $5 or requested_micro = $5
     union all
     select i.id, i.address_id, i.status, i.requested_micro, i.payable_micro
     from addresses a join invoices i on i.address_id = a.id and i.payable_micro = $5
     where a.project_id = $1 and $9::bool and i.id >= $2 and i.id < (select id from last)),
   chosen as (
     select f.id from fitting f join addresses a on a.id = f.address_id
     where ($6::text is null or f.status = $6) and ($7::text is null or a.policy = $7)
     order by f.id desc limit $8::int8)
   select (select count(*) from seen) as looked, (select id from last) as last, f.*
   from (select) as one
   left join lateral (
     select ${listColumns({ invoice: maybe(listed) }, 'i.', { invoice: SOURCES })}
     from chosen c join invoices i on i.id = c.id ${JOINS}) f on true
   order by f.invoice_id desc`,
  (projectId: string, filter: InvoiceFilter, page: { limit: number; window: number; isFirst: boolean }) => [
    ...[projectId, filter.notBefore ?? NIL_UUID, filter.before ?? NO_UUID_IS_ABOVE, page.window, filter.amountMicro],
    ...[filter.status, filter.policy, page.limit, page.isFirst],
  ],
  (rows): Found => ({
    invoices: rows.flatMap(({ invoice }) => invoice ?? []),
    looked: rows[0]?.looked ?? 0,
    last: rows[0]?.last ?? null,
  }),
);

/** One invoice of a project. */
export const findDeskInvoice = rowOf(
  'invoice-desk-select',
  listed,
  `select ${listColumns(listed, 'i.', SOURCES)} from invoices i ${JOINS} where i.project_id = $1 and i.id = $2`,
  (projectId: string, id: string) => [projectId, id],
);
