import * as table from '../../src/core/domain/mismatch/mistakes.ts';
import type { RandomStream } from '../ingest/random-stream.ts';

/** A mistake whose amounts are drawn at random if there are too many of them. */
export type Mistake = Pick<table.Mistake, 'name' | 'isExcluded'> & {
  of(shown: table.Shown, random: RandomStream): bigint[];
};

/** One amount has thousands of cases. With this many draws, a shop of 60,000 invoices gives more than a million. */
const TWO_WRONG_DRAWS = 20;

/** The mistakes to evaluate, and other wrong amounts. */
export const MISTAKES: readonly Mistake[] = [
  ...table.MISTAKES,
  { name: '0.000001 more or less', isExcluded: true, of: ({ amount }) => [amount + 1n, amount - 1n] },
  { name: '0.01 more or less', isExcluded: false, of: ({ amount }) => [amount + 10_000n, amount - 10_000n] },
  { name: 'two wrong digits', isExcluded: false, of: twoWrong },
];

function twoWrong(shown: table.Shown, random: RandomStream): bigint[] {
  const all = table.places(shown);
  return Array.from({ length: TWO_WRONG_DRAWS }, () => {
    const first = random.below(all.length);
    const second = (first + 1 + random.below(all.length - 1)) % all.length;
    return [first, second].reduce((amount, at) => {
      const { digit, unit } = all[at] ?? { digit: 0n, unit: 0n };
      return amount + (((digit + 1n + BigInt(random.below(9))) % 10n) - digit) * unit;
    }, shown.amount);
  });
}
