import type { Node } from '../nodes/node.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import { type ReadBlock, type ReadDeps, readExamined, readLogsIfThere, readLogsOf } from './read-block.ts';
import { settleUnproven } from './settle-unproven.ts';

/**
 * Reads the block at a height and its USDT logs, which are checked against the block. Both come from one node, unless only another node
 * shows all of the block's bytes. Returns `null` if the node doesn't have it yet. A miss costs one request, a block costs two. Errors:
 * `NODE_REFUSED`, `BLOCK_UNVERIFIABLE`, `NODES_DISAGREE`.
 */
export async function readBlock(deps: ReadDeps, node: Node, number: number): Promise<ReadBlock | null> {
  const block = await readExamined(deps, node, number);
  return block === null ? null : withLogs(deps, node, block);
}

/** Like `readBlock`, but at the head, where the back end for infos may lag behind the others at the same address: `no-infos`. */
export async function readHeadBlock(
  deps: ReadDeps,
  node: Node,
  number: number,
): Promise<ReadBlock | null | 'no-infos'> {
  const block = await readExamined(deps, node, number);
  if (block === null) return null;
  if (!block.isProven) return settleUnproven(deps, node, block);
  const logs = await readLogsIfThere(deps, node, block);
  return logs === null ? 'no-infos' : { node, block, logs, word: null };
}

/** Adds the logs to a block that the node has shown. Errors: as for `readBlock`. */
export async function withLogs(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<ReadBlock> {
  if (!block.isProven) return settleUnproven(deps, node, block);
  return { node, block, logs: await readLogsOf(deps, node, block), word: null };
}
