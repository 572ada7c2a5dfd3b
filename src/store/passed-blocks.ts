import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** A block that no node could prove, and that an operator let pass. `blockId`, and `digest` over all that was shown of it, are 64 hex characters. */
export type PassedBlock = {
  number: number;
  blockId: string;
  digest: string;
  passedAt: UnixMs;
  passedBy: string;
  reason: string;
};

const select = statement(
  'passed-block-select',
  { block_id: 'text', digest: 'text', passed_at: 'timestamptz', passed_by: 'text', reason: 'text' },
  `select encode(block_id, 'hex') as block_id, encode(digest, 'hex') as digest, passed_at, passed_by, reason from passed_blocks
   where network = $1 and number = $2 order by id desc limit 1`,
);

/** What an operator let pass at a height; the newest, if it was decided anew. */
export async function findPassedBlock(db: Sql, network: Network, number: number): Promise<PassedBlock | null> {
  const [row] = await db.run(select, [network, number]);
  if (row === undefined) return null;
  const { block_id: blockId, digest, passed_at: passedAt, passed_by: passedBy, reason } = row;
  return { number, blockId, digest, passedAt, passedBy, reason };
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
