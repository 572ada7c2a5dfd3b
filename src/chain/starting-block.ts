import type { UnixMs } from '../domain/time.ts';
import type { Node } from './node-member.ts';
import { readBlockId } from './prove-block.ts';
import { type BlockMark, checked, type ReadDeps, readHeaderAt } from './read-block.ts';

/** How far the clock of the server that created the first invoice may be ahead of the chain's: far worse than clocks are. */
const CLOCK_MARGIN_MS = 10 * 60_000;

/** Block 0 of the node's network. One request. */
export async function readGenesis(deps: ReadDeps, node: Node): Promise<BlockMark> {
  const answer = await node.post('/wallet/getblock', { id_or_num: '0', detail: false });
  return checked(deps, node, () => readBlockId(answer));
}

/**
 * The block after which a new network is followed: its current solid block, or, if invoices were already created while
 * no node answered, the newest solid block that is surely older than the first of them. So no payment falls before the start.
 */
export async function findStartingBlock(
  deps: ReadDeps,
  node: Node,
  { genesis, newest }: { genesis: BlockMark; newest: BlockMark },
  earliestInvoice: UnixMs | null,
): Promise<BlockMark> {
  if (earliestInvoice === null) return newest;
  const start = earliestInvoice - CLOCK_MARGIN_MS;
  if (newest.time < start) return newest;
  // Binary search by block time; 2^53 heights take 53 steps.
  let low = genesis;
  let high = newest;
  while (high.number - low.number > 1) {
    const middle = await readHeaderAt(deps, node, Math.floor((low.number + high.number) / 2));
    if (middle.time < start) low = middle;
    else high = middle;
  }
  return low;
}
