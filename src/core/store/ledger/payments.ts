import type { SeenTransfer } from '../../domain/event.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import { addressColumn } from '../db/address-column.ts';
import { answerOf } from '../db/rows-of.ts';
import { SEALED_WITHDRAWN } from '../db/sealed-tables.ts';
import { listColumns, maybe, maybeCount, micro, type Row, sealed } from '../db/statement.ts';
import { projected } from './invoices.ts';
import { HEAD, JOIN_HEAD, JOIN_PAYING_TRANSFER, payingTransfer } from './paying-transfer.ts';

const invoice = {
  ...projected,
  requestedMicro: micro<MicroUsdt>('int8'),
  payableMicro: micro<MicroUsdt>('int8'),
  address: 'address',
  options: 'text?',
  /** When the invoice was withdrawn; after that, its page no longer shows how to pay. */
  withdrawnAt: 'timestamptz?',
  withdrawnSeal: sealed(SEALED_WITHDRAWN),
} as const;

/** An invoice as the API shows it, with its amounts and the transfer that pays or will pay it. */
export type InvoicePayment = Row<typeof invoice> & {
  transaction: (SeenTransfer & { late: boolean; headNumber: number }) | null;
};

const columns = { ...invoice, transfer: maybe(payingTransfer), late: 'bool?', headNumber: maybeCount } as const;

/** Returns a project's invoice with its payment. */
export const findInvoicePayment = answerOf(
  'invoice-payment-select',
  columns,
  `select ${listColumns(columns, 'i.', {
    address: addressColumn('a'),
    transfer: 't.',
    late: 't.block_time > i.expires_at',
    headNumber: HEAD.number,
  })}
   from invoices i
   join addresses a on a.id = i.address_id
   ${JOIN_HEAD}
   ${JOIN_PAYING_TRANSFER}
   where i.project_id = $1 and i.id = $2`,
  (projectId: string, id: string) => [projectId, id],
  ([row]) => (row === undefined ? null : toPayment(row)),
);

function toPayment(row: Row<typeof columns>): InvoicePayment {
  const { transfer, late, headNumber, ...found } = row;
  const transaction = transfer && {
    ...transfer,
    // Only a transfer of exactly the payable amount can pay an invoice.
    amountMicro: found.payableMicro,
    late: late === true,
    headNumber: headNumber ?? transfer.blockNumber,
  };
  return { ...found, transaction };
}
