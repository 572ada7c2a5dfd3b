import { COMMONEST_FEE } from '../../domain/mismatch/fee-slips.ts';
import { cutTo, digitsSwapped, lastUnit, oneDigitWrong, roundTo, type Shown } from '../../domain/mismatch/mistakes.ts';

/** People round to cents first, then to less; an amount below a cent leaves only more decimals. */
const ROUNDINGS = [2, 1, 0, 3, 4, 5];

/** The amount that arrives by a mistake: one of those that the judges of mistakes know; null when the amount leaves no room for it. */
export const MISTAKEN_AMOUNTS = {
  /** 1 USDT less, or half of a smaller amount. */
  less: (amountMicro: bigint): bigint | null => {
    const left = amountMicro > COMMONEST_FEE ? amountMicro - COMMONEST_FEE : amountMicro >> 1n;
    return left > 0n ? left : null;
  },
  /** The first of the usual roundings (half up) that changes the amount and leaves something of it. */
  rounded: (amountMicro: bigint): bigint | null =>
    ROUNDINGS.map((decimals) => roundTo(amountMicro, decimals)).find(
      (rounded) => rounded > 0n && rounded !== amountMicro,
    ) ?? null,
  cutTo3: (amountMicro: bigint): bigint | null => cutTo(amountMicro, 3) || null,
  cutTo4: (amountMicro: bigint): bigint | null => cutTo(amountMicro, 4) || null,
  /** The least of the usual minimums of exchanges that is above it. */
  minimumAbove: (amountMicro: bigint): bigint => {
    let minimum = 10_000_000n;
    for (let step = 0; minimum <= amountMicro; step++) minimum = step % 3 === 1 ? (minimum * 5n) / 2n : minimum * 2n;
    return minimum;
  },
  /** The last digit that counts is one higher; a 9 is one lower. */
  oneDigitWrong: (amountMicro: bigint): bigint => {
    const shown = typed(amountMicro);
    const higher = amountMicro + lastUnit(shown.decimals);
    return oneDigitWrong(shown).includes(higher) ? higher : amountMicro - lastUnit(shown.decimals);
  },
  /** The last two neighbours that differ change places: 25.000014 → 25.000041, and 25 → 52. */
  digitsSwapped: (amountMicro: bigint): bigint | null =>
    digitsSwapped(typed(amountMicro)).findLast((swapped) => swapped !== amountMicro) ?? null,
} as const;

/** Without the zeros at the end, which are not typed. */
function typed(amount: bigint): Shown {
  const zeros = /0*$/.exec(amount.toString())?.[0].length ?? 0;
  return { amount, decimals: 6 - zeros };
}
