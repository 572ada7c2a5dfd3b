import { GENESIS_BLOCK_IDS } from '@quittance/tron/genesis';
import { isLocalNetwork, type Network } from '../../domain/network.ts';
import { findGenesisId } from '../../store/chain/cursor.ts';
import type { Sql } from '../../store/db/database.ts';
import type { NodePool } from './node-pool.ts';

export type RecogniseDeps = { db: Sql; network: Network; pool: Pick<NodePool, 'setGenesis'> };

/**
 * Sets the genesis block (block 0) by which the pool recognises nodes. Returns whether it's known; for a private network, that's only after
 * the first start.
 */
export async function recogniseNodes({ db, network, pool }: RecogniseDeps): Promise<boolean> {
  const id = isLocalNetwork(network) ? await findGenesisId(db, network) : GENESIS_BLOCK_IDS[network];
  pool.setGenesis(id);
  return id !== null;
}
