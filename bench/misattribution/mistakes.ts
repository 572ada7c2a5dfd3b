import type { RandomStream } from '../ingest/random-stream.ts';

/** An amount as the payer is shown it. */
type Shown = { amount: bigint; decimals: number };

/**
 * What a payer, a wallet or an exchange may make of an amount. `of` lists the amounts that arrive instead: all there are, or, where
 * they are too many, some drawn at random. `isExcluded`: that no such amount is another invoice's is proven for code words.
 */
export type Mistake = { name: string; isExcluded: boolean; of(shown: Shown, random: RandomStream): bigint[] };

export const FEES = ['0.5', '0.8', '1', '1.5', '2', '3', '5'] as const;
const USDT_DECIMALS = 6;
/** Of the thousands that an amount has; a shop of 60,000 invoices then gives more than a million. */
const TWO_WRONG_DRAWS = 20;

export const MISTAKES: readonly Mistake[] = [
  excluded('one wrong digit', oneWrong),
  excluded('neighbouring digits swapped', swapped),
  excluded('rounded to 2 decimals', (shown) => rounded(shown, [2])),
  excluded('rounded to 0 … 5 decimals', (shown) => rounded(shown, [0, 1, 2, 3, 4, 5])),
  excluded('truncated to 2 decimals', (shown) => truncated(shown, [2])),
  excluded('truncated to 0 … 5 decimals', (shown) => truncated(shown, [0, 1, 2, 3, 4, 5])),
  excluded('decimal point forgotten', ({ amount, decimals }) => [amount * 10n ** BigInt(decimals)]),
  excluded('point one place too far right', ({ amount }) => [amount * 10n]),
  excluded('point one place too far left, cut to 6 decimals', ({ amount }) => [amount / 10n]),
  excluded('a digit of the decimals left out', (shown) => leftOut(shown, 'decimals')),
  excluded('0.000001 more or less', ({ amount }) => [amount + 1n, amount - 1n]),
  possible('two wrong digits', twoWrong),
  possible('a digit before the point left out', (shown) => leftOut(shown, 'whole')),
  possible('a digit before the point inserted', (shown) => inserted(shown, 'whole')),
  possible('a digit of the decimals inserted, cut to 6', (shown) => inserted(shown, 'decimals')),
  possible('0.01 more or less', ({ amount }) => [amount + 10_000n, amount - 10_000n]),
  ...FEES.map((fee) => possible(`a fee of ${fee} taken out`, ({ amount }) => [amount - feeMicro(fee)])),
  possible('1 % less, cut to 6 decimals', ({ amount }) => [(amount * 99n) / 100n]),
  possible('doubled', ({ amount }) => [amount * 2n]),
];

function excluded(name: string, of: Mistake['of']): Mistake {
  return { name, isExcluded: true, of };
}

function possible(name: string, of: Mistake['of']): Mistake {
  return { name, isExcluded: false, of };
}

export function feeMicro(fee: (typeof FEES)[number]): bigint {
  const [whole = '0', fraction = ''] = fee.split('.');
  return BigInt(whole + fraction.padEnd(USDT_DECIMALS, '0'));
}

/** What one of the last shown digit is worth in micro-USDT. */
function lastUnit(decimals: number): bigint {
  return 10n ** BigInt(USDT_DECIMALS - decimals);
}

/** The shown digits without the point, and what one of each is worth. */
function places({ amount, decimals }: Shown): { digit: bigint; unit: bigint }[] {
  const unit = lastUnit(decimals);
  const digits = (amount / unit).toString().padStart(decimals + 1, '0');
  return [...digits].map((digit, at) => ({ digit: BigInt(digit), unit: unit * 10n ** BigInt(digits.length - 1 - at) }));
}

const DIGITS = [0n, 1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n];

function oneWrong(shown: Shown): bigint[] {
  return places(shown).flatMap(({ digit, unit }) => DIGITS.map((other) => shown.amount + (other - digit) * unit));
}

function swapped(shown: Shown): bigint[] {
  const all = places(shown);
  return all.slice(1).map((right, index) => {
    const left = all[index] ?? right;
    return shown.amount + (right.digit - left.digit) * (left.unit - right.unit);
  });
}

function rounded({ amount }: Shown, toDecimals: number[]): bigint[] {
  return toDecimals.map(lastUnit).map((unit) => ((amount + unit / 2n) / unit) * unit);
}

function truncated({ amount }: Shown, toDecimals: number[]): bigint[] {
  return toDecimals.map(lastUnit).map((unit) => (amount / unit) * unit);
}

function twoWrong(shown: Shown, random: RandomStream): bigint[] {
  const all = places(shown);
  return Array.from({ length: TWO_WRONG_DRAWS }, () => {
    const first = random.below(all.length);
    const second = (first + 1 + random.below(all.length - 1)) % all.length;
    return [first, second].reduce((amount, at) => {
      const { digit, unit } = all[at] ?? { digit: 0n, unit: 0n };
      return amount + (((digit + 1n + BigInt(random.below(9))) % 10n) - digit) * unit;
    }, shown.amount);
  });
}

type Part = 'whole' | 'decimals';

/** The shown digits before and after the point. */
function split({ amount, decimals }: Shown): { whole: string; decimals: string } {
  const digits = (amount / lastUnit(decimals)).toString().padStart(decimals + 1, '0');
  return { whole: digits.slice(0, -decimals), decimals: digits.slice(-decimals) };
}

function withPart(shown: Shown, part: Part, change: (digits: string) => string[]): bigint[] {
  const { whole, decimals } = split(shown);
  if (part === 'whole') return change(whole).map((digits) => join(digits, decimals));
  return change(decimals).map((digits) => join(whole, digits));
}

/** A seventh decimal is cut off. */
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
