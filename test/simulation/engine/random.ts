import { createRandom as createNumbers } from '../../support/random.ts';

/** What a world asks of chance; a seed repeats it. */
export type Random = {
  /** 0 ≤ x < 1. */
  next(): number;
  /** A whole number in 0 … count − 1. */
  below(count: number): number;
  /** Whether something of this probability happens. */
  chance(probability: number): boolean;
  /** A number in from … to. */
  between(from: number, to: number): number;
  pick<Value>(values: readonly Value[]): Value;
  bytes(count: number): Uint8Array;
  /** Another source, which this one decides: what it is used for changes nothing of what follows here. */
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
