import { asTyped, formatAmount, type MicroUsdt, microUsdt } from './money.ts';
import { isCurrentRate, originOf, readRateSource } from './rate.ts';
import { toIso, type UnixMs } from './time.ts';

/** The price of an order in another currency. `amount` has six decimals, so that equal prices have equal text. */
export type Price = { amount: string; currency: string };

/**
 * A price with the rate that it was converted at: the price of one USDT. `rateAt` is the rate's time, and `rateSource` is the origin that
 * the rate was read from. If the operator set the rate, `rateAt` is `null` and `rateSource` is `fixed`.
 */
export type ConvertedPrice = Price & { rate: string; rateAt: string | null; rateSource: string };

/** Describes a price as payers know it, with its currency's decimals, or more if it has more: `25.00 EUR`, `1500 JPY`, `0.925 EUR`. */
export function formatPrice({ amount, currency }: Price): string {
  return `${asTyped(amount, decimalsOf(currency))} ${currency}`;
}

/** The decimals of a currency of ISO 4217, otherwise 2. */
function decimalsOf(currency: string): number {
  if (currency.length !== 3) return 2;
  return new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().minimumFractionDigits ?? 2;
}

/** Describes a price and its rate: `25.00 EUR at 0.92 EUR for 1 USDT, read 2026-09-01T12:00:00.000Z from https://rates.example`. */
export function describePrice({ rate, rateAt, rateSource, ...price }: ConvertedPrice): string {
  const converted = `${formatPrice(price)} at ${formatPrice({ ...price, amount: rate })} for 1 USDT`;
  return rateAt === null ? `${converted}, a fixed rate` : `${converted}, read ${rateAt} from ${rateSource}`;
}

/** The largest amount that an invoice can have. */
const MOST = 10n ** 18n - 1n;

/**
 * Converts a price to USDT and rounds it up to a millionth, so that no merchant gets less and no payer pays a millionth too much. Both
 * arguments are in millionths. Returns `null` if no invoice can have the result.
 */
export function convertPrice(amountMicro: MicroUsdt, rateMicro: bigint): MicroUsdt | null {
  if (rateMicro <= 0n) throw new RangeError('a rate is not positive');
  const converted = (amountMicro * 1_000_000n + rateMicro - 1n) / rateMicro;
  return converted >= 1n && converted <= MOST ? microUsdt(converted) : null;
}

/** A fixed rate, or the last rate that a source returned, in millionths. */
type Rate = { rateMicro: bigint; rateSource: string | null; readMicro: bigint | null; readAt: UnixMs | null };

/** Returns the rate in force, or `null` if the last known one is too old. */
export function rateInForce({ rateMicro, rateSource, readMicro, readAt }: Rate, now: UnixMs) {
  if (rateSource === null) return { rateMicro, ...describe(rateMicro), rateAt: null, rateSource: 'fixed' };
  const source = readRateSource(rateSource);
  if (readMicro === null || readAt === null || !isCurrentRate(readAt, source, now)) return null;
  return { rateMicro: readMicro, ...describe(readMicro), rateAt: toIso(readAt), rateSource: originOf(source) };
}

const describe = (rateMicro: bigint) => ({ rate: formatAmount(microUsdt(rateMicro)) });
