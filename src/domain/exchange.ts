import { type MicroUsdt, microUsdt } from './money.ts';

/** Whole cents of a USDT: payers type them, and the tail of the payable amount follows. */
const CENT = 10_000n;
const ONE_USDT = 1_000_000n;
/** From 0.01 to below 100,000,000: with the tail an amount has 14 digits, which every program holds that reads it as a number. */
const BOUNDS = { least: CENT, below: 100_000_000n * ONE_USDT };

/**
 * What an amount of another currency costs in USDT, rounded up to a whole cent, so that no merchant gets less than they ask for. `rateMicro`: the
 * price of one USDT in that currency; both in millionths. `null`: it is below 0.01 USDT, or 100,000,000 USDT or more.
 */
export function exchange(amountMicro: bigint, rateMicro: bigint): MicroUsdt | null {
  if (amountMicro < 0n || rateMicro <= 0n) throw new RangeError('an amount or a rate is not positive');
  const cents = ceiling(amountMicro * ONE_USDT, rateMicro * CENT);
  const exchanged = cents * CENT;
  return exchanged >= BOUNDS.least && exchanged < BOUNDS.below ? microUsdt(exchanged) : null;
}

function ceiling(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}
