import type { ProjectedInvoice, SeenTransfer } from '../domain/event.ts';
import type { InvoiceStatus } from '../domain/invoice.ts';
import { type MicroUsdt, microUsdt } from '../domain/money.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { type Row, statement } from './statement.ts';

/** An invoice with what was asked for and the transfer that pays or will pay it, as the API and the page show it. */
export type InvoicePayment = ProjectedInvoice & {
  requestedMicro: MicroUsdt;
  payableMicro: MicroUsdt;
  address: string;
  projectName: string;
  createdAt: UnixMs;
  /** Time of the newest block that was examined; `null` before the first. */
  examinedAt: UnixMs | null;
  transaction: (SeenTransfer & { late: boolean; headNumber: number }) | null;
};

const columns = {
  id: 'uuid',
  external_id: 'text',
  status: 'text',
  checkout_token: 'text',
  created_at: 'timestamptz',
  expires_at: 'timestamptz',
  requested_micro: 'int8',
  payable_micro: 'int8',
  address: 'text',
  tx_id: 'text?',
  log_index: 'int4?',
  block_number: 'int8?',
  block_time: 'timestamptz?',
  from_address: 'text?',
  late: 'bool?',
  head_number: 'int8?',
  examined_at: 'timestamptz?',
  project_name: 'text',
} as const;

// A PAID invoice has its transfer; a CONFIRMING one has sightings, of which the earliest in chain order counts.
const SELECT = `select i.id, i.external_id, i.status, i.checkout_token, i.created_at, i.expires_at, i.requested_micro,
     i.payable_micro, a.address, t.tx_id, t.log_index, t.block_number, t.block_time, t.from_address,
     t.block_time > i.expires_at as late, coalesce(h.number, c.solid_number) as head_number,
     coalesce(h.block_time, c.solid_time) as examined_at, p.name as project_name
   from invoices i
   join addresses a on a.id = i.address_id
   join projects p on p.id = i.project_id
   left join chain_cursors c on c.network = i.network
   left join lateral (
     select number, block_time from head_blocks where network = i.network order by number desc limit 1) h on true
   left join lateral (
     select encode(t.tx_id, 'hex') as tx_id, t.log_index, t.block_number, t.block_time, t.from_address
     from transfers t where t.id = i.paid_transfer_id
     union all
     (select encode(s.tx_id, 'hex'), s.log_index, s.block_number, h.block_time, s.from_address
      from sightings s join head_blocks h on h.network = s.network and h.number = s.block_number
      where s.project_id = i.project_id and s.invoice_id = i.id and i.status = 'CONFIRMING'
      order by s.block_number, s.tx_id, s.log_index limit 1)
   ) t on true`;

const selectByIds = statement('invoice-payment-select', columns, `${SELECT} where i.project_id = $1 and i.id = $2`);

/** One invoice of a project with its payment. */
export async function findInvoicePayment(db: Sql, projectId: string, id: string): Promise<InvoicePayment | null> {
  const [row] = await db.run(selectByIds, [projectId, id]);
  return row === undefined ? null : toPayment(row);
}

const selectByToken = statement('invoice-payment-select-by-token', columns, `${SELECT} where i.checkout_token = $1`);

/** The invoice behind a checkout link. */
export async function findCheckoutInvoice(db: Sql, checkoutToken: string): Promise<InvoicePayment | null> {
  const [row] = await db.run(selectByToken, [checkoutToken]);
  return row === undefined ? null : toPayment(row);
}

function toPayment(row: Row<typeof columns>): InvoicePayment {
  return {
    id: row.id,
    externalId: row.external_id,
    status: row.status as InvoiceStatus,
    checkoutToken: row.checkout_token,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    requestedMicro: microUsdt(row.requested_micro),
    payableMicro: microUsdt(row.payable_micro),
    address: row.address,
    projectName: row.project_name,
    examinedAt: row.examined_at,
    transaction: toTransaction(row),
  };
}

function toTransaction(row: Row<typeof columns>): InvoicePayment['transaction'] {
  const { tx_id, log_index, block_number, block_time, from_address, late, head_number } = row;
  if (tx_id === null || log_index === null || block_number === null) return null;
  if (block_time === null || from_address === null) return null;
  return {
    txId: tx_id,
    logIndex: log_index,
    blockNumber: Number(block_number),
    blockTime: block_time,
    from: from_address,
    // The only transfers that can pay an invoice are of exactly its payable amount.
    amountMicro: microUsdt(row.payable_micro),
    late: late === true,
    headNumber: Number(head_number ?? block_number),
  };
}
