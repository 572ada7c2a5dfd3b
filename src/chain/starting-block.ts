import type { UnixMs } from '../domain/time.ts';
import type { NodeClient } from './node-client.ts';
import { readHeaderAt, readNewest } from './read-block.ts';
import type { BlockHeader } from './verify-block.ts';

/** How far the clock of the server that created the first invoice may be ahead of the chain's: far worse than clocks are. */
const CLOCK_MARGIN_MS = 10 * 60_000;

/**
 * The block after which a new network is followed: its current solid block, or, if invoices were already created while
 * no node answered, the newest solid block that is surely older than the first of them. So no payment falls before the start.
 */
export async function findStartingBlock(node: NodeClient, earliestInvoice: UnixMs | null): Promise<BlockHeader> {
  const newest = await readNewest(node, 'walletsolidity');
  if (earliestInvoice === null) return newest;
  const start = earliestInvoice - CLOCK_MARGIN_MS;
  if (newest.time < start) return newest;
  // Binary search by block time; 2^53 heights take 53 steps.
  let low = await readHeaderAt(node, 'walletsolidity', 0);
  let high = newest;
  while (high.number - low.number > 1) {
    const middle = await readHeaderAt(node, 'walletsolidity', Math.floor((low.number + high.number) / 2));
    if (middle.time < start) low = middle;
    else high = middle;
  }
  return low;
}
