/** The ledger's view of one address. Amounts are micro-USDT; heights are blocks; incoming money is positive, outgoing money negative. */
export type Books = {
  /** Its balance on the chain at the height where the comparison began. */
  opening: { block: number; micro: bigint };
  /** The ledger's sum at or below the opening block. */
  beforeMicro: bigint;
  /** The ledger's changes above the opening block, one entry per block, heights ascending. */
  movements: readonly { block: number; micro: bigint }[];
};

/** A node's `balanceOf` at some irreversible height between `low` and `high`. */
export type BalanceReading = { low: number; high: number; balanceMicro: bigint };

export type Balanced =
  /** `block` is the newest height at which the ledger's amount equals the node's. */
  | { kind: 'good'; block: number; expectedMicro: bigint }
  /** `expectedMicro` is the ledger's amount at `high`. */
  | { kind: 'differs'; expectedMicro: bigint };

/** How far behind a node's back end that answers the balance may be: a minute of blocks. */
export const BEHIND_BLOCKS = 20;

/**
 * Compares the books with the chain: opening + in − out must be the balance at one of the heights that the node may have meant. Before the
 * ledger knew an address, it held 0 or more. So if the ledger's sum up to the opening exceeds the opening balance, an outgoing transfer is
 * missing. `reading.high` is at or above the opening block.
 */
export function balanceBooks({ opening, beforeMicro, movements }: Books, reading: BalanceReading): Balanced {
  const { low, high, balanceMicro } = reading;
  const sumAt = (height: number) =>
    movements.filter(({ block }) => block <= height).reduce((sum, { micro }) => sum + micro, opening.micro);
  const expectedMicro = sumAt(high);
  const heldBefore = opening.micro - beforeMicro;
  if (heldBefore < 0n) return { kind: 'differs', expectedMicro: expectedMicro - heldBefore };
  for (let height = high; height >= Math.max(low - BEHIND_BLOCKS, opening.block); height -= 1) {
    const micro = sumAt(height);
    if (micro === balanceMicro) return { kind: 'good', block: height, expectedMicro: micro };
  }
  return { kind: 'differs', expectedMicro };
}
