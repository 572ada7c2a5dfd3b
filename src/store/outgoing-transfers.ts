import type { ChainTransfer, Verified } from '../domain/chain-block.ts';
import type { Network } from '../domain/network.ts';
import { toIso, type UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { outgoingAnnulment } from './standing.ts';
import { statement } from './statement.ts';

/** A transfer from one of our addresses. `index` is its position in the list that was asked about. */
export type Outgoing = { index: number; projectId: string; addressId: string; addressCreatedAt: UnixMs };

const select = statement(
  'outgoing-select',
  { index: 'int8', project_id: 'uuid', address_id: 'uuid', created_at: 'timestamptz' },
  `select t.index, a.project_id, a.id as address_id, a.created_at
   from unnest($2::text[]) with ordinality as t(account, index)
   join addresses a on a.network = $1 and a.account = decode(t.account, 'hex')
   order by t.index`,
);

/** Finds which transfers leave our addresses, active or retired, in the order given. */
export async function findOutgoing(
  tx: Sql,
  network: Network,
  transfers: Pick<ChainTransfer, 'from'>[],
): Promise<Outgoing[]> {
  if (transfers.length === 0) return [];
  const rows = await tx.run(select, [network, transfers.map(({ from }) => from)]);
  return rows.map((row) => ({
    index: Number(row.index) - 1,
    projectId: row.project_id,
    addressId: row.address_id,
    addressCreatedAt: row.created_at,
  }));
}

/** An irreversible transfer from one of our addresses as the ledger keeps it. `txId` and `blockId` are 64 hex characters. */
export type NewOutgoing = {
  projectId: string;
  addressId: string;
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockId: string;
  blockTime: UnixMs;
  toAddress: string;
  amountMicro: bigint;
  verified: Verified;
  nodes: readonly string[];
};

const insert = statement(
  'outgoing-insert',
  { tx_id: 'text' },
  `insert into outgoing_transfers (network, tx_id, log_index, project_id, address_id, block_number, block_id, block_time,
     to_address, amount_micro, verified, nodes)
   select $1, decode(t->>'txId', 'hex'), (t->>'logIndex')::int4, (t->>'projectId')::uuid, (t->>'addressId')::uuid,
     (t->>'blockNumber')::int8, decode(t->>'blockId', 'hex'), (t->>'blockTime')::timestamptz, t->>'toAddress',
     (t->>'amountMicro')::numeric, t->>'verified', array(select jsonb_array_elements_text(t->'nodes'))
   from jsonb_array_elements($2::text::jsonb) t
   on conflict (network, tx_id, log_index) do nothing
   returning encode(tx_id, 'hex') as tx_id`,
);

// Another record of a log whose former ones were all taken back. What was denied is believed again only where $3 says so.
const correct = statement(
  'outgoing-correct',
  { tx_id: 'text' },
  `insert into outgoing_corrections (network, tx_id, log_index, project_id, address_id, block_number, block_id, block_time,
     to_address, amount_micro, verified, nodes, correction)
   select $1, decode(t->>'txId', 'hex'), (t->>'logIndex')::int4, (t->>'projectId')::uuid, (t->>'addressId')::uuid,
     (t->>'blockNumber')::int8, decode(t->>'blockId', 'hex'), (t->>'blockTime')::timestamptz, t->>'toAddress',
     (t->>'amountMicro')::numeric, t->>'verified', array(select jsonb_array_elements_text(t->'nodes')), before.count
   from jsonb_array_elements($2::text::jsonb) t
   cross join lateral (
     select count(*)::int4 as count, coalesce(bool_and(n.tx_id is not null), false) as are_annulled,
       coalesce(bool_or(o.address_id = (t->>'addressId')::uuid and o.amount_micro = (t->>'amountMicro')::numeric
         and o.block_id = decode(t->>'blockId', 'hex')), false) as was_denied
     from outgoing_transfers o left join outgoing_annulments n on ${outgoingAnnulment('o')}
     where o.network = $1 and o.tx_id = decode(t->>'txId', 'hex') and o.log_index = (t->>'logIndex')::int4) before
   where before.are_annulled and ($3::bool or not before.was_denied)
   returning encode(tx_id, 'hex') as tx_id`,
);

/**
 * Records outgoing transfers, leaving alone those that the ledger has, and those that were taken back unless `isAgain`. Returns how
 * many were new.
 */
export async function insertOutgoing(
  tx: Sql,
  network: Network,
  transfers: NewOutgoing[],
  isAgain = false,
): Promise<number> {
  if (transfers.length === 0) return 0;
  const rows = transfers.map((transfer) => ({
    ...transfer,
    amountMicro: transfer.amountMicro.toString(),
    blockTime: toIso(transfer.blockTime),
  }));
  const added = (await tx.run(insert, [network, JSON.stringify(rows)])).length;
  if (added === rows.length) return added;
  return added + (await tx.run(correct, [network, JSON.stringify(rows), isAgain])).length;
}
