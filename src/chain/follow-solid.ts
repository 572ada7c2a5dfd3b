import { applySolidBlocks } from '../payments/apply-solid-blocks.ts';
import type { Watching } from '../payments/watching.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { AccountHex } from '../tron/address.ts';
import type { NodeClient } from './node-client.ts';
import { readBlock } from './read-block.ts';

/** Blocks of one transaction while catching up. Memory and lock time stay small, and commits are few. */
const BATCH_BLOCKS = 20;
/** Blocks that are read at the same time from the one node: two requests each. */
const PARALLEL_BLOCKS = 4;

/**
 * Applies the irreversible blocks after `from` up to `to`, in order and without a gap, in batches. Stops between batches
 * when `isStopping`. A block that cannot be read or checked ends it with an error, and nothing after it is applied.
 */
export async function followSolid(
  deps: { watching: Watching; node: NodeClient; usdt: AccountHex; metrics: Metrics; isStopping(): boolean },
  from: number,
  to: number,
): Promise<void> {
  const { watching, node, usdt, metrics } = deps;
  const { network } = watching;
  for (let next = from + 1; next <= to && !deps.isStopping(); next += BATCH_BLOCKS) {
    const numbers = range(next, Math.min(to, next + BATCH_BLOCKS - 1));
    const blocks = await inOrder(numbers, PARALLEL_BLOCKS, (number) => readBlock(node, 'walletsolidity', number, usdt));
    const counts = await applySolidBlocks(watching, blocks);
    for (const [kind, count] of Object.entries(counts)) metrics.transfers.inc({ network, kind }, count);
    const processed = numbers.at(-1) ?? from;
    metrics.chainProcessedNumber.set({ network }, processed);
    metrics.chainLagBlocks.set({ network }, to - processed);
  }
}

/** The integers from `first` to `last`, both included. */
export function range(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}

/** Maps in groups of `parallel`, keeping the order. The first error ends it. */
export async function inOrder<Item, Result>(
  items: Item[],
  parallel: number,
  read: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let start = 0; start < items.length; start += parallel) {
    results.push(...(await Promise.all(items.slice(start, start + parallel).map(read))));
  }
  return results;
}
