import type { Verified } from '../domain/chain-block.ts';
import type { Network } from '../domain/network.ts';
import { toIso, type UnixMs } from '../domain/time.ts';
import type { AccountHex } from '../tron/address.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** An irreversible transfer as the ledger keeps it. `id` and `invoiceId` are UUIDs, `txId` and `blockId` 64 hex characters. */
export type NewTransfer = {
  id: string;
  projectId: string;
  addressId: string;
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockId: string;
  blockTime: UnixMs;
  fromAddress: string;
  amountMicro: bigint;
  kind: 'matched' | 'duplicate' | 'unmatched';
  invoiceId: string | null;
  /** Who made the block, how the transfer was verified, and the origins of the nodes that showed it. */
  producer: AccountHex;
  verified: Verified;
  nodes: readonly string[];
};

const insert = statement(
  'transfer-insert',
  {},
  `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
     from_address, amount_micro, kind, invoice_id, reserved_micro, producer, verified, nodes, correction)
   select (t->>'id')::uuid, (t->>'projectId')::uuid, $1, (t->>'addressId')::uuid, decode(t->>'txId', 'hex'),
     (t->>'logIndex')::int4, (t->>'blockNumber')::int8, decode(t->>'blockId', 'hex'), (t->>'blockTime')::timestamptz,
     t->>'fromAddress', (t->>'amountMicro')::numeric, t->>'kind', (t->>'invoiceId')::uuid,
     case when t->>'kind' <> 'unmatched' then (t->>'amountMicro')::int8 end,
     decode(t->>'producer', 'hex'), t->>'verified', array(select jsonb_array_elements_text(t->'nodes')),
     (select count(*) from transfers r join transfer_annulments n on n.transfer_id = r.id
      where r.network = $1 and r.tx_id = decode(t->>'txId', 'hex') and r.log_index = (t->>'logIndex')::int4)
   from jsonb_array_elements($2::text::jsonb) t`,
);

/**
 * Records transfers. The caller has left out those that the ledger has; a second record of one is refused by constraint, unless
 * those of before were taken back.
 */
export async function insertTransfers(tx: Sql, network: Network, transfers: NewTransfer[]): Promise<void> {
  const rows = transfers.map((transfer) => ({
    ...transfer,
    amountMicro: transfer.amountMicro.toString(),
    blockTime: toIso(transfer.blockTime),
  }));
  await tx.run(insert, [network, JSON.stringify(rows)]);
}
