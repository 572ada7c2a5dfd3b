import { isPayable } from '../policy.ts';
import { beforeShares, belowMinimum, COMMON_FEES, FIXED_FEES } from './fee-errors.ts';
import type { MismatchFacts } from './finding.ts';
import { siblingSums } from './payment-patterns.ts';
import { MAX_LEFT_SHIFT } from './rounding-errors.ts';
import { typingOrigins } from './typing-errors.ts';

/** Payable amounts to look up; both ends are inclusive. */
type AmountRange = { low: bigint; high: bigint };

/** This is higher than any payable amount: it allows 12 digits before the decimal point, 6 after it, and a surcharge. */
const MAX_PAYABLE_MICRO = 10n ** 18n + 1_000_000n;
const CENT = 10_000n;
/** The precisions that an amount may be rounded to: 0.00001 to 1 USDT. */
const ROUNDING_UNITS = [10n, 100n, 1_000n, CENT, 100_000n, 1_000_000n];

/**
 * Returns the ranges of payable amounts that a common mistake turns into this transfer's amount: a few hundred ranges, most of which
 * contain a single amount. If the address uses tails, all payable amounts are code words, which leaves at most one in ten of the single
 * amounts.
 */
export function searchRanges(
  { transfer, policy, siblings }: Pick<MismatchFacts, 'transfer' | 'policy' | 'siblings'>,
  maxSurchargeMicro: bigint,
): AmountRange[] {
  const { amountMicro, at } = transfer;
  const points = [
    ...typingOrigins(amountMicro).keys(),
    ...FIXED_FEES.flatMap((feeMicro) => [amountMicro + feeMicro, amountMicro - feeMicro]),
    ...[1, 2, 3, 4, 5, 6]
      .map((shift) => 10n ** BigInt(shift))
      .flatMap((f) => (amountMicro % f === 0n ? [amountMicro / f] : [])),
    ...(amountMicro % 2n === 0n ? [amountMicro / 2n] : []),
    ...siblingSums(siblings, at).map(({ totalMicro }) => amountMicro + totalMicro),
  ];
  const reserved = points.filter((micro) => isPayable(policy, micro));
  // The payable amounts for a requested amount are higher than the requested amount.
  const tailed = (requestedMicro: bigint) => ({ low: requestedMicro, high: requestedMicro + maxSurchargeMicro });
  const ranges = [
    ...[...new Set(reserved)].map((micro) => ({ low: micro, high: micro })),
    tailed(amountMicro),
    ...belowMinimum(amountMicro),
    // A rounded amount is a multiple of its unit. Don't merge the ranges, because only a limited number of invoices is read per range.
    ...ROUNDING_UNITS.filter((unit) => amountMicro % unit === 0n).map((unit) => around(amountMicro, unit)),
    // A share may have been deducted from a requested amount. If so, the result is rarely as precise as a micro-USDT.
    ...beforeShares(amountMicro).map(({ low, high }) => ({
      low,
      high: amountMicro % 10n === 0n ? high + maxSurchargeMicro : high,
    })),
    ...Array.from({ length: MAX_LEFT_SHIFT }, (_, index) => leftShifted(amountMicro, 10n ** BigInt(index + 1))),
    ...[2n, 3n, 4n].map((parts) => around(amountMicro * parts, parts)),
    ...(amountMicro % CENT === 0n
      ? [
          ...COMMON_FEES.map((feeMicro) => amountMicro + feeMicro),
          amountMicro / 2n,
          ...[2n, 3n, 4n].map((n) => amountMicro * n),
          ...siblingSums(siblings, at).map(({ totalMicro }) => amountMicro + totalMicro),
        ].map(tailed)
      : []),
  ];
  return ranges.filter(({ low, high }) => high > 0n && low <= MAX_PAYABLE_MICRO).map(clip);
}

function around(micro: bigint, byMicro: bigint): AmountRange {
  return { low: micro - byMicro, high: micro + byMicro };
}

/** Returns the amounts that become this one by losing their last digits when the decimal point moves to the left. */
function leftShifted(amountMicro: bigint, factor: bigint): AmountRange {
  return { low: amountMicro * factor, high: (amountMicro + 1n) * factor - 1n };
}

function clip({ low, high }: AmountRange): AmountRange {
  return { low: low < 1n ? 1n : low, high: high > MAX_PAYABLE_MICRO ? MAX_PAYABLE_MICRO : high };
}
