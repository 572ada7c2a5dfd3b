import type { SeenTransfer } from '../../domain/event.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import { addressColumn } from '../db/address-column.ts';
import { answerOf } from '../db/rows-of.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_TRANSFER, SEALED_WITHDRAWN } from '../db/sealed-tables.ts';
import {
  count,
  hex,
  listColumns,
  maybe,
  maybeCount,
  maybeHex,
  micro,
  type Row,
  sealed,
  sealedBefore,
} from '../db/statement.ts';
import { projected } from './invoices.ts';

/** The transfer that pays or will pay an invoice. `blockId` is `null` until its block is irreversible. */
export const payingTransfer = {
  txId: hex(),
  logIndex: 'int4',
  blockNumber: count,
  blockId: maybeHex,
  blockTime: 'timestamptz',
  from: 'text',
  seal: sealedBefore(SEALED_TRANSFER),
} as const;

export type PayingTransfer = Omit<Row<typeof payingTransfer>, 'seal'>;

/**
 * Joins `t`, which has these columns, to `invoices i`. For a PAID invoice, this is the transfer that paid it. For a CONFIRMING invoice,
 * it's the earliest sighting on the chain.
 */
export const JOIN_PAYING_TRANSFER = `left join lateral (
     select t.tx_id, t.log_index, t.block_number, t.block_id, t.block_time, t.from_address as from, ${sealColumn(SEALED_TRANSFER, 't.')} as seal
     from transfers t where t.id = i.paid_transfer_id
     union all
     (select s.tx_id, s.log_index, s.block_number, null, b.block_time, s.from_address, null
      from sightings s join head_blocks b on b.network = s.network and b.number = s.block_number
      where s.project_id = i.project_id and s.invoice_id = i.id and i.status = 'CONFIRMING'
      order by s.block_number, s.position, s.tx_id, s.log_index limit 1)
   ) t on true`;

/** A network's newest examined block. */
export const chainHead = { number: count, time: 'timestamptz' } as const;

export type ChainHead = Row<typeof chainHead>;

/** The SQL for the columns of `chainHead` after `JOIN_HEAD`. */
export const HEAD = { number: 'coalesce(h.number, c.solid_number)', time: 'coalesce(h.block_time, c.solid_time)' };

/** Joins `h`, the newest examined block above the irreversible one, to its network's cursor `c`. */
export const JOIN_HEAD_BLOCK = `left join lateral (
     select number, block_time from head_blocks where network = c.network order by number desc limit 1) h on true`;

/** Joins `c`, the network's cursor, and `h` to `invoices i`. */
export const JOIN_HEAD = `left join chain_cursors c on c.network = i.network
   ${JOIN_HEAD_BLOCK}`;

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
