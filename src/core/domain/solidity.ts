import type { AccountHex } from '@quittance/tron/address';

/** A block can be irreversible without this percentage of the active producers (java-tron `SOLIDIFIED_THRESHOLD`, 70 %). */
const SPARED_PERCENT = 30;

/**
 * Returns how many different producers must have built on a block: n − ⌊n·30/100⌋ (java-tron `DposService.updateSolidBlock`), so 19 of 27,
 * 4 of 5, 1 of 1. Throws if there are no producers, because then no block can become irreversible.
 */
export function solidThreshold(activeCount: number): number {
  if (!Number.isSafeInteger(activeCount) || activeCount < 1) throw new RangeError(`${activeCount} active producers`);
  return activeCount - Math.floor((activeCount * SPARED_PERCENT) / 100);
}

/**
 * Returns the highest block such that `threshold` different voters have produced it or a block above it, or `null`. `blocks` are the
 * verified blocks above the irreversible one, in ascending order. Blocks by other producers don't count.
 */
export function solidHeight(
  blocks: readonly { number: number; producer: AccountHex }[],
  voters: ReadonlySet<AccountHex>,
  threshold: number,
): number | null {
  if (!(threshold >= 1)) throw new RangeError(`a threshold of ${threshold} producers makes every block irreversible`);
  const seen = new Set<AccountHex>();
  for (let index = blocks.length - 1; index >= 0; index -= 1) {
    const block = blocks[index];
    if (block === undefined || !voters.has(block.producer)) continue;
    seen.add(block.producer);
    if (seen.size >= threshold) return block.number;
  }
  return null;
}
