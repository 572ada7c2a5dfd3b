import { createRandom as createNumbers } from '../../support/random.ts';

/** A world's source of randomness, reproducible from a seed. */
export type Random = {
  /** 0 ≤ x < 1. */
  next(): number;
  /** A whole number from 0 to count − 1. */
  below(count: number): number;
  /** Whether an event of this probability happens. */
  chance(probability: number): boolean;
  /** A number from `from` to `to`. */
  between(from: number, to: number): number;
  pick<Value>(values: readonly Value[]): Value;
  bytes(count: number): Uint8Array;
  /** Derives another source, whose use doesn't change this one's following values. */
  fork(): Random;
};

export function createRandom(seed: number): Random {
  const next = createNumbers(seed);
  const below = (count: number) => Math.floor(next() * count);
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    between: (from, to) => from + next() * (to - from),
    pick: (values) => {
      const value = values[below(values.length)];
      if (value === undefined) throw new Error('nothing to pick from');
      return value;
    },
    bytes: (count) => Uint8Array.from({ length: count }, () => below(256)),
    fork: () => createRandom(below(2 ** 32)),
  };
}
