import { hash } from 'node:crypto';
import { isSameText, parseSecret } from './sign.ts';

/** A request's fields as text, by name. */
export type Fields = ReadonlyMap<string, string>;

/** The signature itself, and the field that says how it was made. */
const UNSIGNED = new Set(['signature', 'sign', 'sign_type']);

/**
 * Returns the signature that epusdt and EPay use: the MD5 of `a=1&b=2` followed by the secret. The fields are sorted by name; empty ones
 * are left out, and nothing is percent-encoded. These protocols offer nothing better; docs/guides/adapters.md explains how weak this is.
 */
export function signFields(fields: Fields, secret: string): string {
  const parts = [...fields]
    .filter(([name, value]) => !UNSIGNED.has(name) && value !== '')
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`);
  return hash('md5', parts.join('&') + secret, 'hex');
}

/**
 * Returns the name of a field that would start within a value if the signed text were split again: `x&money=1` would start `money`. If this
 * returns `null` for all values, splitting the signed text at each `&` that starts a field returns the signed fields. `isField` says which
 * names count.
 */
export function startedField(value: string, isField: (name: string) => boolean = () => true): string | null {
  for (const [, name = ''] of value.matchAll(/&([^&=]*)=/g)) if (isField(name)) return name;
  return null;
}

/** Whether fields have this signature. Shops write the signature in upper or lower case. */
export function isSigned(fields: Fields, signature: string, secret: string): boolean {
  return isSameText(signature.toLowerCase(), signFields(fields, secret));
}

/** Converts a stored endpoint secret (`whsec_…`) to the form that an adapter's shop uses. */
export function adapterSecret(stored: string): string {
  return parseSecret(stored).toString('latin1');
}

/** The shop number that these systems require. The URL already identifies the adapter, so the number is the same for all. */
export const PID = '1000';

/** Formats a decimal like a number in a program: `100.50` becomes `100.5`. */
export function asNumber(decimal: string): string {
  return decimal.includes('.') ? decimal.replace(/\.?0+$/, '') : decimal;
}
