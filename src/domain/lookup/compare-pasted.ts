import { parseAddress } from '../../tron/address.ts';

/** Removes white space around a text, and the invisible characters that come with a copy from a chat. */
export function trimPasted(text: string): string {
  return text.replace(/^[\s\u200b-\u200f\u2060\ufeff]+|[\s\u200b-\u200f\u2060\ufeff]+$/g, '');
}

/** Compares a pasted text with the address that is to be paid. `other`: a valid address of TRON, and not this one. */
export function comparePasted(address: string, pasted: string): 'same' | 'other' | 'no-address' {
  const text = trimPasted(pasted);
  if (text === address) return 'same';
  return parseAddress(text).kind === 'ok' ? 'other' : 'no-address';
}
