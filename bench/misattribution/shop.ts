import { COMMON_FEES } from '../../src/core/domain/mismatch/fee-errors.ts';

const CENT_MICRO = 10_000n;

/** Round prices, of which some are halves, doubles and hundredths of each other, and prices that end in .99. */
const ROUND_CENTS = [1000n, 1500n, 2000n, 2500n, 3000n, 5000n, 10_000n, 20_000n];
const ODD_CENTS = [499n, 999n, 1499n, 1999n, 4999n, 9999n];

/**
 * The prices of the shop in micro-USDT, ascending: every round price, every round price minus each fee, and the prices that end in .99. So
 * each fee connects several pairs of prices. A shop whose prices never differ by a fee isn't affected by it.
 */
export const PRICES: readonly bigint[] = [
  ...new Set([
    ...ROUND_CENTS.flatMap((cents) => [cents * CENT_MICRO, ...COMMON_FEES.map((fee) => cents * CENT_MICRO - fee)]),
    ...ODD_CENTS.map((cents) => cents * CENT_MICRO),
  ]),
].sort((left, right) => (left < right ? -1 : 1));
