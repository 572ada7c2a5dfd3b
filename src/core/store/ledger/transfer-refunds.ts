import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { addressColumn } from '../db/address-column.ts';
import { attemptOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_OUTGOING, SEALED_REFUND } from '../db/sealed-tables.ts';
import { count, hex, isAsSealed, maybe, type Row } from '../db/statement.ts';
import { outgoingNotAnnulled } from './annulments.ts';

/** A transfer's refund on the chain: a transfer of exactly the same amount to the sender. */
export const refundShape = {
  refund: maybe({
    txId: hex(),
    logIndex: 'int4',
    blockNumber: count,
    blockTime: 'timestamptz',
    from: 'address',
    isSound: isAsSealed(SEALED_REFUND),
    isSentSound: isAsSealed(SEALED_OUTGOING, { isOfOther: true }),
  }),
} as const;
type Found = Row<typeof refundShape>['refund'];
export type Refund = Omit<NonNullable<Found>, 'isSound' | 'isSentSound'>;

/** The `refundShape` columns for `listColumns`, from `r` in `joinRefund`. */
export const REFUND_COLUMNS = { refund: 'r.' } as const;

/** The SQL that says whether an outgoing transfer can be a transfer's refund. */
function sendsBack(outgoing: string, transfer: string): string {
  return `${outgoing}.project_id = ${transfer}.project_id and ${outgoing}.to_address = ${transfer}.from_address
     and ${outgoing}.amount_micro = ${transfer}.amount_micro`;
}

/** Joins a `transfers` row's refund as `r`. A refund is ignored if its outgoing transfer turned out not to be on the chain. */
export function joinRefund(transfer: string): string {
  return `left join lateral (
     select f.tx_id, f.log_index, o.block_number, o.block_time, ${addressColumn('b')} as "from",
       ${sealColumn(SEALED_REFUND, 'f.')} as is_sound, ${sealColumn(SEALED_OUTGOING, 'o.')} as is_sent_sound
     from transfer_refunds f
     join outgoing_transfers o on o.network = f.network and o.tx_id = f.tx_id and o.log_index = f.log_index
       and ${sendsBack('o', transfer)} and ${outgoingNotAnnulled('o')}
     join addresses b on b.id = o.address_id
     where f.transfer_id = ${transfer}.id limit 1) r on true`;
}

/** Ignores a refund if someone inserted it, or its outgoing transfer, directly into the database. */
export function soundRefund(found: Found): Refund | null {
  if (found === null || !found.isSound || !found.isSentSound) return null;
  const { isSound: _, isSentSound: __, ...refund } = found;
  return refund;
}

/** The transfer that an outgoing transfer refunds. */
export const refundOfShape = { refundOf: maybe({ transferId: 'uuid', isSound: isAsSealed(SEALED_REFUND) }) } as const;

/** Joins the refunded transfer to an `outgoing_transfers` row as `r`. */
export function joinRefundOf(outgoing: string): string {
  return `left join lateral (
     select f.transfer_id, ${sealColumn(SEALED_REFUND, 'f.')} as is_sound
     from transfer_refunds f join transfers t on t.id = f.transfer_id
     where f.network = ${outgoing}.network and f.tx_id = ${outgoing}.tx_id and f.log_index = ${outgoing}.log_index
       and ${sendsBack(outgoing, 't')} limit 1) r on true`;
}

type NewRefund = {
  transferId: string;
  projectId: string;
  network: Network;
  txId: string;
  logIndex: number;
  refundedAt: UnixMs;
};

/** Links a transfer to its refund. Returns `false` if either is already linked. */
export const insertRefund = attemptOf(
  'refund-insert',
  `insert into transfer_refunds (transfer_id, project_id, network, tx_id, log_index, refunded_at, mac)
   values ($1, $2, $3, decode($4, 'hex'), $5, $6, $7) on conflict do nothing`,
  (refund: NewRefund) => [
    ...[refund.transferId, refund.projectId, refund.network, refund.txId, refund.logIndex],
    ...[new Date(refund.refundedAt), sealOf(SEALED_REFUND, refund)],
  ],
);
