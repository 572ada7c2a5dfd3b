import type { ProjectedInvoice, SeenTransfer } from '../domain/event.ts';
import type { InvoiceStatus } from '../domain/invoice.ts';
import { type MicroUsdt, microUsdt } from '../domain/money.ts';
import { addressColumn } from './address-column.ts';
import type { Sql } from './database.ts';
import {
  JOIN_HEAD,
  JOIN_PAYING_TRANSFER,
  PAYING_TRANSFER_COLUMNS,
  payingTransferColumns,
  toPayingTransfer,
} from './paying-transfer.ts';
import { type Row, statement } from './statement.ts';

/** An invoice with what was asked for and the transfer that pays or will pay it, as the API shows it. */
export type InvoicePayment = ProjectedInvoice & {
  requestedMicro: MicroUsdt;
  payableMicro: MicroUsdt;
  address: string;
  transaction: (SeenTransfer & { late: boolean; headNumber: number }) | null;
};

const columns = {
  id: 'uuid',
  external_id: 'text',
  status: 'text',
  checkout_token: 'text',
  expires_at: 'timestamptz',
  requested_micro: 'int8',
  payable_micro: 'int8',
  address: 'address',
  ...payingTransferColumns,
  late: 'bool?',
  head_number: 'int8?',
} as const;

const SELECT = `select i.id, i.external_id, i.status, i.checkout_token, i.expires_at, i.requested_micro,
     i.payable_micro, ${addressColumn('a')} as address, ${PAYING_TRANSFER_COLUMNS}, t.block_time > i.expires_at as late,
     coalesce(h.number, c.solid_number) as head_number
   from invoices i
   join addresses a on a.id = i.address_id
   ${JOIN_HEAD}
   ${JOIN_PAYING_TRANSFER}`;

const selectByIds = statement('invoice-payment-select', columns, `${SELECT} where i.project_id = $1 and i.id = $2`);

/** One invoice of a project with its payment. */
export async function findInvoicePayment(db: Sql, projectId: string, id: string): Promise<InvoicePayment | null> {
  const [row] = await db.run(selectByIds, [projectId, id]);
  return row === undefined ? null : toPayment(row);
}

function toPayment(row: Row<typeof columns>): InvoicePayment {
  return {
    id: row.id,
    externalId: row.external_id,
    status: row.status as InvoiceStatus,
    checkoutToken: row.checkout_token,
    expiresAt: row.expires_at,
    requestedMicro: microUsdt(row.requested_micro),
    payableMicro: microUsdt(row.payable_micro),
    address: row.address,
    transaction: toTransaction(row),
  };
}

function toTransaction(row: Row<typeof columns>): InvoicePayment['transaction'] {
  const transfer = toPayingTransfer(row);
  if (transfer === null) return null;
  return {
    ...transfer,
    // The only transfers that can pay an invoice are of exactly its payable amount.
    amountMicro: microUsdt(row.payable_micro),
    late: row.late === true,
    headNumber: Number(row.head_number ?? transfer.blockNumber),
  };
}
