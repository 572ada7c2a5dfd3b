import type { NodePool } from '../chain/nodes/node-pool.ts';
import type { ReadDeps } from '../chain/verify/read-block.ts';
import type { Recording } from '../payments/watching.ts';
import type { Database } from '../store/db/database.ts';

/** For what asks the nodes of a network. */
export type ReadSolidDeps = ReadDeps & {
  db: Database;
  pool: NodePool;
  agreement: number;
  /** How long to go on asking, for one part of the range, nodes that refuse, are wrong, or disagree. */
  patienceMs: number;
};

/** For what also records. */
export type NodeDeps = ReadSolidDeps & Recording;
