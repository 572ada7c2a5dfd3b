import type { UnixMs } from '../domain/time.ts';

/**
 * The transfer that pays or will pay an invoice. `txId`, `blockId`: 64 hex characters; `blockId` is `null` until its block is
 * irreversible.
 */
export type PayingTransfer = {
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockId: string | null;
  blockTime: UnixMs;
  from: string;
};

/** What is selected of `t`. All are null where there is none. */
export const payingTransferColumns = {
  tx_id: 'text?',
  log_index: 'int4?',
  block_number: 'int8?',
  block_id: 'text?',
  block_time: 'timestamptz?',
  from_address: 'text?',
} as const;

/** The columns of `t`, in the order of `payingTransferColumns`. */
export const PAYING_TRANSFER_COLUMNS = Object.keys(payingTransferColumns)
  .map((name) => `t.${name}`)
  .join(', ');

/**
 * Joins `t` to `invoices i`. A PAID invoice has its transfer; a CONFIRMING one has sightings, of which the earliest in chain order
 * counts.
 */
export const JOIN_PAYING_TRANSFER = `left join lateral (
     select encode(t.tx_id, 'hex') as tx_id, t.log_index, t.block_number, encode(t.block_id, 'hex') as block_id, t.block_time,
       t.from_address
     from transfers t where t.id = i.paid_transfer_id
     union all
     (select encode(s.tx_id, 'hex'), s.log_index, s.block_number, null, b.block_time, s.from_address
      from sightings s join head_blocks b on b.network = s.network and b.number = s.block_number
      where s.project_id = i.project_id and s.invoice_id = i.id and i.status = 'CONFIRMING'
      order by s.block_number, s.position, s.tx_id, s.log_index limit 1)
   ) t on true`;

/** Joins to `invoices i` where its network stands: `c`, the cursor, and `h`, the newest examined block above the irreversible one. */
export const JOIN_HEAD = `left join chain_cursors c on c.network = i.network
   left join lateral (
     select number, block_time from head_blocks where network = i.network order by number desc limit 1) h on true`;

type PayingTransferRow = {
  tx_id: string | null;
  log_index: number | null;
  block_number: bigint | null;
  block_id: string | null;
  block_time: UnixMs | null;
  from_address: string | null;
};

export function toPayingTransfer(row: PayingTransferRow): PayingTransfer | null {
  const { tx_id, log_index, block_number, block_id, block_time, from_address } = row;
  if (tx_id === null || log_index === null || block_number === null) return null;
  if (block_time === null || from_address === null) return null;
  return {
    txId: tx_id,
    logIndex: log_index,
    blockNumber: Number(block_number),
    blockId: block_id,
    blockTime: block_time,
    from: from_address,
  };
}
