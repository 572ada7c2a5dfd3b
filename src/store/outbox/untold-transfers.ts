import type { MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import { addressColumn } from '../db/address-column.ts';
import { commandOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_TRANSFER } from '../db/sealed-tables.ts';
import { count, hex, isAsSealed, listColumns, micro, type Row, text } from '../db/statement.ts';

/** Transfers (UUIDs) behind `after` that paid nothing and of which no event tells, the oldest first. */
export const findUntold = rowsOf(
  'untold-ids',
  { id: 'uuid' },
  'select transfer_id as id from untold_transfers where network = $1 and transfer_id > $2 order by transfer_id limit $3',
  (network: Network, after: string, limit: number) => [network, after, limit],
);

const untold = {
  id: 'uuid',
  projectId: 'uuid',
  kind: text<'unmatched' | 'duplicate'>(),
  txId: hex(),
  logIndex: 'int4',
  blockNumber: count,
  blockTime: 'timestamptz',
  fromAddress: 'text',
  to: 'address',
  amountMicro: micro<MicroUsdt>(),
  invoiceId: 'uuid?',
  isSound: isAsSealed(SEALED_TRANSFER),
} as const;
export type UntoldTransfer = Row<typeof untold>;

/**
 * Those of the transfers of which no event tells yet, in chain order, also what was taken back meanwhile: an annulment that somebody wrote
 * must hide nothing. The caller's transaction holds the cursor's lock.
 */
export const readUntold = rowsOf(
  'untold-transfers',
  untold,
  `select ${listColumns(untold, 't.', { to: addressColumn('a'), isSound: sealColumn(SEALED_TRANSFER, 't.') })}
   from transfers t join addresses a on a.id = t.address_id
   where t.id = any($1::uuid[]) and t.kind <> 'matched'
     and not exists (
       select from events e where e.transfer_id = t.id and e.type in ('transfer.unmatched', 'transfer.duplicate'))
   order by t.id`,
  (ids: readonly string[]) => [ids],
);

/** Forgets those of the transfers that an event tells of. */
export const forgetTold = commandOf(
  'untold-forget',
  'select from forget_told_transfers($1)',
  (ids: readonly string[]) => [ids],
);
