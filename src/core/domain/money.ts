/** A USDT amount in micro-USDT (1 USDT = 1,000,000), as an integer. Never use a `number` for it. */
export type MicroUsdt = bigint & { readonly __unit: 'micro-usdt' };

/** The largest accepted amount is 999,999,999,999.999999 USDT, which fits a signed 64-bit integer. */
const MAX_AMOUNT = /^(0|[1-9][0-9]{0,11})(\.[0-9]{1,6})?$/;

type ParsedAmount = { kind: 'ok'; amountMicro: MicroUsdt } | { kind: 'invalid'; code: string; reason: string };

/**
 * Parses a decimal amount from an integrator: `"25"`, `"25.5"`, `"0.000001"`. It must be in plain ASCII, with at most 12 digits before and
 * 6 after the decimal point, and greater than zero.
 */
export function parseAmount(text: string): ParsedAmount {
  if (MAX_AMOUNT.test(text)) {
    const amountMicro = decimalToMicro(text);
    if (amountMicro > 0n) return { kind: 'ok', amountMicro };
    return { kind: 'invalid', code: 'NOT_POSITIVE', reason: 'must be greater than 0' };
  }
  return { kind: 'invalid', ...explainAmount(text) };
}

function explainAmount(text: string): { code: string; reason: string } {
  if (text === '') return { code: 'EMPTY', reason: 'must not be empty; send a decimal string such as "25.00"' };
  if (/\s/u.test(text)) return { code: 'WHITESPACE', reason: 'must not contain whitespace' };
  if (/^[+-]/.test(text)) return { code: 'SIGN', reason: 'must not have a sign' };
  if (/^[0-9.]+[eE]/.test(text)) return { code: 'EXPONENT', reason: 'must not have an exponent' };
  if (!/^[0-9.]+$/.test(text)) {
    return { code: 'NOT_DECIMAL', reason: 'must contain only the digits 0-9 and one decimal point "."' };
  }
  if (text.indexOf('.') !== text.lastIndexOf('.'))
    return { code: 'NOT_DECIMAL', reason: 'must have at most one decimal point' };
  if (text.startsWith('.'))
    return { code: 'NO_INTEGER_PART', reason: `needs a digit before the point: "0${clip(text)}"` };
  if (text.endsWith('.'))
    return { code: 'NO_FRACTION', reason: 'must have a digit after the decimal point; add one or remove the point' };
  const [integer = '', fraction = ''] = text.split('.');
  if (/^0[0-9]/.test(integer)) return { code: 'LEADING_ZERO', reason: 'must not have leading zeros' };
  if (fraction.length > 6)
    return { code: 'TOO_PRECISE', reason: 'must have at most 6 decimals, the precision of USDT' };
  return { code: 'TOO_LARGE', reason: 'must have at most 12 digits before the point' };
}

function clip(text: string): string {
  return text.length > 20 ? `${text.slice(0, 20)}…` : text;
}

function decimalToMicro(text: string): MicroUsdt {
  const [integer = '0', fraction = ''] = text.split('.');
  return BigInt(integer + fraction.padEnd(6, '0')) as MicroUsdt;
}

/** Marks an integer from the database or from a verified log as micro-USDT. Throws if it's negative. */
export function microUsdt(value: bigint): MicroUsdt {
  if (value < 0n) throw new RangeError(`an amount of micro-USDT must not be negative, got ${value}`);
  return value as MicroUsdt;
}

/** Formats an amount with all six decimals: 25000009n → `"25.000009"`. Equal amounts give equal text. */
export function formatAmount(amountMicro: MicroUsdt): string {
  const digits = amountMicro.toString().padStart(7, '0');
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

/**
 * Formats a sum for people: `1234567.500000` → `1,234,567.500000`. The text keeps all six decimals, so that sums line up in columns. Never
 * show it as an amount to pay, because wallets refuse separators.
 */
export function asSum(amount: string): string {
  return amount.replace(/\B(?=(?:\d{3})+(?!\d))(?<![.]\d*)/g, ',');
}

/**
 * Formats an amount with six decimals as payers type it, with as many decimals as needed, but at least `least`, which is 0 to 6:
 * `25.001000` → `25.001`, `25.000000` → `25.00`. A tail's last decimal is never 0, so all of its decimals are kept.
 */
export function asTyped(amount: string, least = 2): string {
  const always = amount.length - 6 + least;
  return `${amount.slice(0, always)}${amount.slice(always).replace(/0+$/, '')}`.replace(/\.$/, '');
}

export function absolute(value: bigint): bigint {
  return value < 0n ? -value : value;
}
