import type { AccountHex } from '@quittance/tron/address';
import type { Verified } from '../../domain/chain-block.ts';
import type { Match } from '../../domain/invoice.ts';
import type { Network } from '../../domain/network.ts';
import type { Sql } from '../db/database.ts';
import { answerOf } from '../db/rows-of.ts';
import { hexSeal } from '../db/seal.ts';
import { SEALED_TRANSFER } from '../db/sealed-tables.ts';
import { count, hex, jsonRows, maybeHex, micro, type Row, statement, text } from '../db/statement.ts';

/** An irreversible transfer to or from one of our addresses. */
export const recorded = {
  projectId: 'uuid',
  addressId: 'uuid',
  txId: hex(),
  logIndex: 'int4',
  blockNumber: count,
  blockId: hex(),
  blockTime: 'timestamptz',
  amountMicro: micro(),
  /** How the transfer was verified, and the origins of the nodes that showed it. */
  verified: text<Verified>(),
  nodes: 'text[]',
} as const;

const incoming = {
  ...recorded,
  id: 'uuid',
  fromAddress: 'text',
  kind: text<Match>(),
  invoiceId: 'uuid?',
  /** The account that produced the block. */
  producer: hex<AccountHex>(),
} as const;

/** A transfer to one of our addresses, in its stored form. */
export type NewTransfer = Row<typeof incoming>;

const rows = jsonRows({ ...incoming, mac: maybeHex });

/**
 * Records transfers, and marks those that didn't pay an invoice, so that events are written for them. The caller must leave out transfers
 * that are already in the ledger. A constraint refuses a second record, unless all earlier ones were annulled.
 */
export async function insertTransfers(tx: Sql, network: Network, transfers: readonly NewTransfer[]): Promise<void> {
  const sealer = await tx.sealer();
  const mac = (row: NewTransfer) => hexSeal(sealer, SEALED_TRANSFER, { ...row, network });
  await tx.run(insert, [network, rows.bind(transfers.map((row) => ({ ...row, mac: mac(row) })))]);
  const untold = transfers.filter(({ kind }) => kind !== 'matched');
  if (untold.length === 0) return;
  await tx.run(insertUntold, [network, untold.map(({ projectId }) => projectId), untold.map(({ id }) => id)]);
}

const insert = statement(
  'transfer-insert',
  {},
  `insert into transfers (network, reserved_micro, correction, ${rows.columns})
   select $1, case when t.kind <> 'unmatched' then t.amount_micro::int8 end,
     (select count(*) from transfers r join transfer_annulments n on n.transfer_id = r.id
      where r.network = $1 and r.tx_id = t.tx_id and r.log_index = t.log_index), ${rows.columns}
   from ${rows.table('$2')}`,
);

const insertUntold = statement(
  'untold-insert',
  {},
  'insert into untold_transfers (network, project_id, transfer_id) select $1, * from unnest($2::uuid[], $3::uuid[])',
);

/** Returns the newest transfer (UUID) below `below` to any of the projects, or `null`. */
export const findNewestTransfer = answerOf(
  'transfer-newest',
  { id: 'uuid' },
  `select t.id from unnest($1::uuid[]) as p (id)
   cross join lateral (select id from transfers where project_id = p.id and id < $2 order by id desc limit 1) t
   order by t.id desc limit 1`,
  (projectIds: readonly string[], below: string) => [projectIds, below],
  ([row]) => row?.id ?? null,
);
