/**
 * The ledger's records for one address. Amounts are in micro-USDT, positive for incoming money and negative for outgoing money. Heights are
 * block numbers.
 */
export type Books = {
  /** The address's balance on the chain at the height where comparisons begin. */
  opening: { block: number; micro: bigint };
  /** The sum of the ledger's transfers up to and including the opening block. */
  beforeMicro: bigint;
  /** The ledger's changes above the opening block, one entry per block, in ascending order. */
  movements: readonly { block: number; micro: bigint }[];
};

/** A node's `balanceOf` at some irreversible height between `low` and `high`. */
export type BalanceReading = { low: number; high: number; balanceMicro: bigint };

export type Balanced =
  /** `block` is the newest height at which the ledger's amount equals the node's. */
  | { kind: 'good'; block: number; expectedMicro: bigint }
  /** `expectedMicro` is the ledger's amount at `high`. */
  | { kind: 'differs'; expectedMicro: bigint };

/** The back end that reads the balance may be this many blocks behind the node's other back ends, which is one minute. */
export const BEHIND_BLOCKS = 20;

/**
 * Compares the books with the chain. Opening balance plus incoming minus outgoing transfers must equal the node's balance at one of the
 * heights that the node may have meant. An address can't have held less than 0 before the ledger knew it. So if the ledger's sum up to the
 * opening block exceeds the opening balance, an outgoing transfer is missing. `reading.high` must not be below the opening block.
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
