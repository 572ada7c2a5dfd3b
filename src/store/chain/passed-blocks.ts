import type { Network } from '../../domain/network.ts';
import type { Sql } from '../db/database.ts';
import { count, type Row, statement } from '../db/statement.ts';

const select = statement(
  'passed-block-select',
  { number: count, blockId: 'text', digest: 'text', passedAt: 'timestamptz', passedBy: 'text', reason: 'text' },
  `select number, encode(block_id, 'hex') as block_id, encode(digest, 'hex') as digest, passed_at, passed_by, reason from passed_blocks
   where network = $1 and number = $2 order by id desc limit 1`,
);

/** A block that no node could prove, and that an operator let pass. `blockId`, and `digest` over all that was shown of it, are 64 hex characters. */
export type PassedBlock = Row<typeof select.shape>;

/** The block that an operator let pass at a height; the newest, if it was decided anew. */
export async function findPassedBlock(db: Sql, network: Network, number: number): Promise<PassedBlock | null> {
  const [row] = await db.run(select, [network, number]);
  return row ?? null;
}

const insert = statement(
  'passed-block-insert',
  {},
  `insert into passed_blocks (network, number, block_id, digest, passed_at, passed_by, reason)
   values ($1, $2, decode($3, 'hex'), decode($4, 'hex'), $5, $6, $7)`,
);

/** Notes that a block passes. A second note of the same is refused by constraint. */
export async function insertPassedBlock(tx: Sql, network: Network, block: PassedBlock): Promise<void> {
  const { number, blockId, digest, passedAt, passedBy, reason } = block;
  await tx.run(insert, [network, number, blockId, digest, new Date(passedAt), passedBy, reason]);
}
