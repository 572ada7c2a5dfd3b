import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { AccountHex, TronAddress } from '../tron/address.ts';
import { addressColumn } from './address-column.ts';
import type { Sql } from './database.ts';
import { outgoingStands, stands } from './standing.ts';
import { statement } from './statement.ts';

/** One side of a transfer as the ledger has it. `txId` and `blockId` are 64 hex characters. */
export type LedgerTransfer = {
  side: 'in' | 'out';
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockId: string;
  address: TronAddress;
  amountMicro: bigint;
};

// By address, because the ledger is indexed that way.
const inRange = statement(
  'ledger-range',
  {
    side: 'text',
    tx_id: 'text',
    log_index: 'int4',
    block_number: 'int8',
    block_id: 'text',
    address: 'address',
    amount_micro: 'numeric',
  },
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
);

/** The transfers that stand in the ledger in the blocks from `from` to `to`, both included: ask for few blocks at once. */
export async function findLedgerRange(db: Sql, network: Network, from: number, to: number): Promise<LedgerTransfer[]> {
  return (await db.run(inRange, [network, from, to])).map((row) => ({
    side: row.side as LedgerTransfer['side'],
    txId: row.tx_id,
    logIndex: row.log_index,
    blockNumber: Number(row.block_number),
    blockId: row.block_id,
    address: row.address,
    amountMicro: row.amount_micro,
  }));
}

const ours = statement(
  'ledger-addresses',
  { account: 'text', address: 'address', created_at: 'timestamptz' },
  `select encode(a.account, 'hex') as account, ${addressColumn('a')} as address, a.created_at from addresses a
   where a.network = $1 and a.account in (select decode(account, 'hex') from unnest($2::text[]) as t(account))`,
);

/** Those of the accounts that are our addresses, active or retired, with the time since when. */
export async function findOurAddresses(
  db: Sql,
  network: Network,
  accounts: AccountHex[],
): Promise<Map<AccountHex, { address: TronAddress; createdAt: UnixMs }>> {
  const rows = await db.run(ours, [network, accounts]);
  return new Map(rows.map((row) => [row.account as AccountHex, { address: row.address, createdAt: row.created_at }]));
}
