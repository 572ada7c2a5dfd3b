import type { InvoiceWithPayment } from '@quittance/sdk';

const MICRO_DIGITS = 6;
/** Currencies whose amounts are taken as USDT. Quittance converts all others. */
const AS_USDT = ['USD', 'USDT'];

/** What an invoice is created for: an amount of USDT, or a price in `currency`. */
export type Asked = { amount: string; currency?: string };

/** Throws a RangeError for an amount that no invoice can have. */
export function askFor(minor: number, currency: string, precision: number): Asked {
  const amount = formatMinor(minor, precision);
  const priced = toPriceCurrency(currency);
  return priced === undefined ? { amount } : { amount, currency: priced };
}

/** The currency of the price for an order in `currency`; undefined if its amount is taken as USDT. */
export function toPriceCurrency(currency: string): string | undefined {
  return AS_USDT.includes(currency) ? undefined : currency;
}

/** The decimal string of an amount of Vendure, an integer of minor units: 2599 with two decimals is "25.99". */
export function formatMinor(minor: number, precision: number): string {
  if (!Number.isSafeInteger(minor) || minor <= 0) throw new RangeError(`${minor} is not an amount that can be paid`);
  if (!Number.isInteger(precision) || precision < 0 || precision > MICRO_DIGITS) {
    throw new RangeError(`USDT has ${MICRO_DIGITS} decimals, but the shop uses ${precision}`);
  }
  const digits = String(minor).padStart(precision + 1, '0');
  const whole = digits.slice(0, digits.length - precision);
  return precision === 0 ? whole : `${whole}.${digits.slice(-precision)}`;
}

/** The members of a request that creates such an invoice. */
export function toInput({ amount, currency }: Asked) {
  return currency === undefined ? { amount } : { price: { amount, currency } };
}

/** Whether the invoice was created for this. A price is compared with the invoice's price, never with its USDT. */
export function isAsked(
  { requestedAmount, price }: InvoiceWithPayment['payment'],
  { amount, currency }: Asked,
): boolean {
  if (currency === undefined) return isSameAmount(requestedAmount, amount);
  return price?.currency === currency && isSameAmount(price.amount, amount);
}

/** Whether two decimal strings are the same amount: "25.99" and "25.990000" are. */
function isSameAmount(left: string, right: string): boolean {
  const [one, other] = [toMicro(left), toMicro(right)];
  return one !== null && one === other;
}

function toMicro(amount: string): bigint | null {
  const found = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(amount);
  if (found === null) return null;
  return BigInt(`${found[1]}${(found[2] ?? '').padEnd(MICRO_DIGITS, '0')}`);
}
