import type { UnixMs } from '../domain/time.ts';
import type { NodeClient } from './node-client.ts';
import { readHeaderAt, readNewest } from './read-block.ts';
import type { BlockHeader } from './verify-block.ts';

/**
 * The block after which a new network is followed: its current solid block, or, if invoices were already created while
 * no node answered, the newest solid block that is older than the first of them. So no payment falls before the start.
 */
export async function findStartingBlock(node: NodeClient, earliestInvoice: UnixMs | null): Promise<BlockHeader> {
  const newest = await readNewest(node, 'walletsolidity');
  if (earliestInvoice === null || newest.time < earliestInvoice) return newest;
  // Binary search by block time; 2^53 heights take 53 steps.
  let low = await readHeaderAt(node, 'walletsolidity', 0);
  let high = newest;
  while (high.number - low.number > 1) {
    const middle = await readHeaderAt(node, 'walletsolidity', Math.floor((low.number + high.number) / 2));
    if (middle.time < earliestInvoice) low = middle;
    else high = middle;
  }
  return low;
}
