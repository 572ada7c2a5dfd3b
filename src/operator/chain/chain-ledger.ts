import type { Network } from '../../domain/network.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { count, type Row, text } from '../../store/db/statement.ts';
import { outgoingStands, stands } from '../../store/ledger/standing.ts';
import type { AccountHex } from '../../tron/address.ts';

/** Identifies one side of a transfer. */
export const TRANSFER_KEY = { side: text<'in' | 'out'>(), txId: 'text', logIndex: 'int4' } as const;
const LEDGER_TRANSFER = {
  ...TRANSFER_KEY,
  blockNumber: count,
  blockId: 'text',
  address: 'address',
  amountMicro: 'numeric',
} as const;

/** A side of a transfer as the ledger has it. `txId` and `blockId` are 64 hex characters. */
export type LedgerTransfer = Row<typeof LEDGER_TRANSFER>;
export type TransferKey = Row<typeof TRANSFER_KEY>;

export function keyOf({ side, txId, logIndex }: TransferKey): string {
  return `${side} ${txId} ${logIndex}`;
}

// By address, because the ledger is indexed that way.
/** The transfers that stand in the ledger in the blocks from `from` to `to`, both included: ask for few blocks at once. */
export const findLedgerRange = rowsOf(
  'ledger-range',
  LEDGER_TRANSFER,
  `select t.side, encode(t.tx_id, 'hex') as tx_id, t.log_index, t.block_number, encode(t.block_id, 'hex') as block_id,
     ${addressColumn('a')} as address, t.amount_micro
   from addresses a
   cross join lateral (
     select 'in' as side, tx_id, log_index, block_number, block_id, amount_micro from transfers t
     where address_id = a.id and block_number between $2 and $3 and ${stands('t')}
     union all
     select 'out', tx_id, log_index, block_number, block_id, amount_micro from outgoing_transfers o
     where address_id = a.id and block_number between $2 and $3 and ${outgoingStands('o')}) t
   where a.network = $1
   order by t.block_number, tx_id, t.log_index, t.side`,
  (network: Network, from: number, to: number) => [network, from, to],
);

/** Those of the accounts that are our addresses, active or retired, with the time since when. */
export const findOurAddresses = answerOf(
  'ledger-addresses',
  { account: text<AccountHex>(), address: 'address', createdAt: 'timestamptz' },
  `select encode(a.account, 'hex') as account, ${addressColumn('a')} as address, a.created_at from addresses a
   where a.network = $1 and a.account in (select decode(account, 'hex') from unnest($2::text[]) as t(account))`,
  (network: Network, accounts: AccountHex[]) => [network, accounts],
  (rows) => new Map(rows.map((row) => [row.account, row])),
);
