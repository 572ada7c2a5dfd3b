import { hash } from 'node:crypto';
import { isSameText, parseSecret } from './sign.ts';

/** Fields of a request by their names, as texts. */
export type Fields = ReadonlyMap<string, string>;

/** The signature itself, and what says how it was made. */
const UNSIGNED = new Set(['signature', 'sign', 'sign_type']);

/**
 * The signature of epusdt and EPay: MD5 of `a=1&b=2` and the secret, with the fields in the order of their names, without empty ones, and as
 * they are rather than percent-encoded. It is all that these protocols have; docs/guides/adapters.md says what it is worth.
 */
export function signFields(fields: Fields, secret: string): string {
  const parts = [...fields]
    .filter(([name, value]) => !UNSIGNED.has(name) && value !== '')
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`);
  return hash('md5', parts.join('&') + secret, 'hex');
}

/**
 * The name of the field that a value begins when the signed text is split again: `x&money=1` begins `money`. `null` if there is none, and then
 * splitting at each `&` that begins a field gives back the fields that were signed. `isField` says which names count.
 */
export function startedField(value: string, isField: (name: string) => boolean = () => true): string | null {
  for (const [, name = ''] of value.matchAll(/&([^&=]*)=/g)) if (isField(name)) return name;
  return null;
}

/** Whether fields carry this signature. Shops write it in either case. */
export function isSigned(fields: Fields, signature: string, secret: string): boolean {
  return isSameText(signature.toLowerCase(), signFields(fields, secret));
}

/** The secret of an adapter as shops have it, out of how endpoints keep theirs (`whsec_…`). */
export function adapterSecret(stored: string): string {
  return parseSecret(stored).toString('latin1');
}

/** The number of the shop that these systems ask for. The URL of an adapter says which one it is, so it is the same for all. */
export const PID = '1000';

/** A decimal as programs write a number: `100.50` is `100.5`. */
export function asNumber(decimal: string): string {
  return decimal.includes('.') ? decimal.replace(/\.?0+$/, '') : decimal;
}
