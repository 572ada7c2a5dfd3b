import type { Node } from '../nodes/node.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import { type ReadBlock, type ReadDeps, readExamined, readLogsIfThere, readLogsOf } from './read-block.ts';
import { settleUnproven } from './settle-unproven.ts';

/**
 * The block at a height and its USDT logs, checked against it. Both are from one node, unless only another node shows all of its bytes.
 * `null`: the node doesn't have it yet. A miss costs one request, a block two. Errors: `NODE_REFUSED`, `BLOCK_UNVERIFIABLE`,
 * `NODES_DISAGREE`.
 */
export async function readBlock(deps: ReadDeps, node: Node, number: number): Promise<ReadBlock | null> {
  const block = await readExamined(deps, node, number);
  return block === null ? null : withLogs(deps, node, block);
}

/** The same at the head. Behind one address, the back end for the infos may lag: `no-infos`. */
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

/** Adds the logs to a block that the node showed. Errors: as `readBlock`. */
export async function withLogs(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<ReadBlock> {
  if (!block.isProven) return settleUnproven(deps, node, block);
  return { node, block, logs: await readLogsOf(deps, node, block), word: null };
}
