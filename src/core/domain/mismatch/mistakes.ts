import type { CauseCode } from '../mismatch.ts';
import { COMMON_FEES, lessShare } from './fee-errors.ts';
import { shortly } from './finding.ts';

/**
 * An amount as shown to a payer, with `decimals` digits after the decimal point. If `decimals` is negative, the amount ends in that many
 * zeros before the point.
 */
export type Shown = { amount: bigint; decimals: number };

/**
 * A mistake by a payer, a wallet or an exchange, and the cause that explains it. `of` returns every amount that may arrive instead of the
 * right one. If `isExcluded` is true, none of these amounts is another invoice's code word (see `policy.ts`).
 */
export type Mistake = { name: string; cause: CauseCode; isExcluded: boolean; of(shown: Shown): bigint[] };

const USDT_DECIMALS = 6;
const ALL_ROUNDINGS = [0, 1, 2, 3, 4, 5];
const ONE_PERCENT = 100n;

/**
 * This is the only list of mistakes. The operator's and the payer's diagnosis refer to it, the sandbox makes some of these mistakes, and
 * the benchmark counts how many amounts each of them affects.
 */
export const MISTAKES: readonly Mistake[] = [
  excluded('one wrong digit', 'ONE_DIGIT_WRONG', oneDigitWrong),
  excluded('neighbouring digits swapped', 'DIGITS_SWAPPED', digitsSwapped),
  excluded('rounded to 2 decimals', 'ROUNDED', ({ amount }) => [roundTo(amount, 2)]),
  excluded('rounded to 0 … 5 decimals', 'ROUNDED', ({ amount }) => ALL_ROUNDINGS.map((kept) => roundTo(amount, kept))),
  excluded('truncated to 2 decimals', 'TRUNCATED', ({ amount }) => [cutTo(amount, 2)]),
  excluded('truncated to 0 … 5 decimals', 'TRUNCATED', ({ amount }) =>
    ALL_ROUNDINGS.map((kept) => cutTo(amount, kept)),
  ),
  excluded('decimal point forgotten', 'POINT_MISPLACED', ({ amount, decimals }) => [amount * 10n ** BigInt(decimals)]),
  excluded('point one place too far right', 'POINT_MISPLACED', ({ amount }) => [amount * 10n]),
  excluded('point one place too far left, cut to 6 decimals', 'POINT_MISPLACED', ({ amount }) => [amount / 10n]),
  excluded('a decimal digit left out', 'DIGIT_MISSING', (shown) => leftOut(shown, 'decimals')),
  possible('a digit before the point left out', 'DIGIT_MISSING', (shown) => leftOut(shown, 'whole')),
  possible('a digit before the point inserted', 'DIGIT_ADDED', (shown) => inserted(shown, 'whole')),
  possible('a decimal digit inserted, cut to 6', 'DIGIT_ADDED', (shown) => inserted(shown, 'decimals')),
  ...COMMON_FEES.map((fee) =>
    possible(`a fee of ${shortly(fee)} deducted`, 'FEE_DEDUCTED', ({ amount }) => [amount - fee]),
  ),
  possible('1 % less, cut to 6 decimals', 'FEE_DEDUCTED', ({ amount }) => [lessShare(amount, ONE_PERCENT)]),
  possible('doubled', 'PAID_TWICE', ({ amount }) => [amount * 2n]),
];

function excluded(name: string, cause: CauseCode, of: Mistake['of']): Mistake {
  return { name, cause, isExcluded: true, of };
}

function possible(name: string, cause: CauseCode, of: Mistake['of']): Mistake {
  return { name, cause, isExcluded: false, of };
}

/** Returns the value of the last decimal, in micro-USDT. */
export function lastUnit(decimals: number): bigint {
  return 10n ** BigInt(USDT_DECIMALS - decimals);
}

/** Rounds to the nearest value, with halves rounded up. */
export function roundTo(amount: bigint, decimals: number): bigint {
  return cutTo(amount + lastUnit(decimals) / 2n, decimals);
}

export function cutTo(amount: bigint, decimals: number): bigint {
  return amount - (amount % lastUnit(decimals));
}

/** Returns the digits shown without the decimal point, each with the value of a 1 in its position. */
export function places({ amount, decimals }: Shown): { digit: bigint; unit: bigint }[] {
  const unit = lastUnit(decimals);
  const digits = (amount / unit).toString().padStart(decimals + 1, '0');
  return [...digits].map((digit, at) => ({ digit: BigInt(digit), unit: unit * 10n ** BigInt(digits.length - 1 - at) }));
}

const DIGITS = [0n, 1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n];

/** The result includes the amount itself. */
export function oneDigitWrong(shown: Shown): bigint[] {
  return places(shown).flatMap(({ digit, unit }) => DIGITS.map((other) => shown.amount + (other - digit) * unit));
}

/**
 * Returns the amounts from the leftmost swap to the rightmost. The result includes the amount itself if two neighbouring digits are equal.
 */
export function digitsSwapped(shown: Shown): bigint[] {
  const all = places(shown);
  return all.slice(1).map((right, index) => {
    const left = all[index] ?? right;
    return shown.amount + (right.digit - left.digit) * (left.unit - right.unit);
  });
}

type Part = 'whole' | 'decimals';

function withPart({ amount, decimals }: Shown, part: Part, change: (digits: string) => string[]): bigint[] {
  const digits = (amount / lastUnit(decimals)).toString().padStart(decimals + 1, '0');
  const [whole, behind] = [digits.slice(0, -decimals), digits.slice(-decimals)];
  return part === 'whole'
    ? change(whole).map((changed) => join(changed, behind))
    : change(behind).map((changed) => join(whole, changed));
}

/** Like a wallet, cuts off a seventh decimal. */
function join(whole: string, decimals: string): bigint {
  return BigInt(whole + decimals.slice(0, USDT_DECIMALS).padEnd(USDT_DECIMALS, '0'));
}

function leftOut(shown: Shown, part: Part): bigint[] {
  return withPart(shown, part, (digits) => [...digits].map((_, at) => digits.slice(0, at) + digits.slice(at + 1)));
}

function inserted(shown: Shown, part: Part): bigint[] {
  return withPart(shown, part, (digits) =>
    Array.from({ length: digits.length + 1 }, (_, at) =>
      DIGITS.map((digit) => digits.slice(0, at) + digit + digits.slice(at)),
    ).flat(),
  );
}
