import type { ChainTransfer } from '../../domain/chain-block.ts';
import type { Network } from '../../domain/network.ts';
import type { Sql } from '../db/database.ts';
import { hexSeal } from '../db/seal.ts';
import { SEALED_OUTGOING } from '../db/sealed-tables.ts';
import { count, jsonRows, maybeHex, type Row, statement } from '../db/statement.ts';
import { outgoingAnnulment } from './standing.ts';
import { recorded } from './transfers.ts';

const select = statement(
  'outgoing-select',
  { index: count, projectId: 'uuid', addressId: 'uuid', addressCreatedAt: 'timestamptz' },
  `select t.index - 1 as index, a.project_id, a.id as address_id, a.created_at as address_created_at
   from unnest($2::text[]) with ordinality as t(account, index)
   join addresses a on a.network = $1 and a.account = decode(t.account, 'hex')
   order by t.index`,
);

/** A transfer from one of our addresses. `index` is its position in the given list. */
export type Outgoing = Row<typeof select.shape>;

/** Finds the transfers from our addresses, whether active or retired, in the given order. */
export async function findOutgoing(
  tx: Sql,
  network: Network,
  transfers: Pick<ChainTransfer, 'from'>[],
): Promise<Outgoing[]> {
  if (transfers.length === 0) return [];
  return tx.run(select, [network, transfers.map(({ from }) => from)]);
}

const outgoing = { ...recorded, toAddress: 'text' } as const;
const rows = jsonRows({ ...outgoing, mac: maybeHex });

const insert = statement(
  'outgoing-insert',
  { logIndex: 'int4' },
  `insert into outgoing_transfers (network, ${rows.columns})
   select $1, ${rows.columns} from ${rows.table('$2')}
   on conflict (network, tx_id, log_index) do nothing
   returning log_index`,
);

// Adds another record of a transfer log if all its earlier records were annulled. A transfer that is the same as an annulled one is
// recorded again only if $3 allows that.
const correct = statement(
  'outgoing-correct',
  { logIndex: 'int4' },
  `insert into outgoing_corrections (network, correction, ${rows.columns})
   select $1, before.count, ${rows.columns}
   from ${rows.table('$2')}
   cross join lateral (
     select count(*)::int4 as count, coalesce(bool_and(n.tx_id is not null), false) as are_annulled,
       coalesce(bool_or(o.address_id = t.address_id and o.amount_micro = t.amount_micro and o.block_id = t.block_id), false) as was_denied
     from outgoing_transfers o left join outgoing_annulments n on ${outgoingAnnulment('o')}
     where o.network = $1 and o.tx_id = t.tx_id and o.log_index = t.log_index) before
   where before.are_annulled and ($3::bool or not before.was_denied)
   returning log_index`,
);

/**
 * Records outgoing transfers. Skips transfers that are already in the ledger and, unless `isAgain`, annulled transfers. Returns how many
 * were new.
 */
export async function insertOutgoing(
  tx: Sql,
  network: Network,
  transfers: Row<typeof outgoing>[],
  isAgain = false,
): Promise<number> {
  if (transfers.length === 0) return 0;
  const sealer = await tx.sealer();
  const sealed = rows.bind(
    transfers.map((row) => ({ ...row, mac: hexSeal(sealer, SEALED_OUTGOING, { ...row, network }) })),
  );
  const added = (await tx.run(insert, [network, sealed])).length;
  if (added === transfers.length) return added;
  return added + (await tx.run(correct, [network, sealed, isAgain])).length;
}
