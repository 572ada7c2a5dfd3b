const MICRO_DIGITS = 6;
const CURRENCIES = ['USD', 'USDT'];

/**
 * The decimal string of an amount of Vendure, an integer of minor units: 2599 with two decimals is "25.99".
 * Throws a RangeError for another currency than USD or USDT, and for what is no amount.
 */
export function formatMinor(minor: number, currency: string, precision: number): string {
  if (!CURRENCIES.includes(currency)) {
    throw new RangeError(`Quittance takes orders in USD or USDT, not in ${currency}`);
  }
  if (!Number.isSafeInteger(minor) || minor <= 0) throw new RangeError(`${minor} is no amount to pay`);
  if (!Number.isInteger(precision) || precision < 0 || precision > MICRO_DIGITS) {
    throw new RangeError(`USDT has ${MICRO_DIGITS} decimals; the shop calculates with ${precision}`);
  }
  const digits = String(minor).padStart(precision + 1, '0');
  const whole = digits.slice(0, digits.length - precision);
  return precision === 0 ? whole : `${whole}.${digits.slice(-precision)}`;
}

/** Whether two decimal strings are the same amount: "25.99" and "25.990000" are. */
export function isSameAmount(left: string, right: string): boolean {
  const [one, other] = [toMicro(left), toMicro(right)];
  return one !== null && one === other;
}

function toMicro(amount: string): bigint | null {
  const found = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(amount);
  if (found === null) return null;
  return BigInt(`${found[1]}${(found[2] ?? '').padEnd(MICRO_DIGITS, '0')}`);
}
