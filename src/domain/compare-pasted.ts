import { parseAddress } from '../tron/address.ts';

/** White space, and what is invisible in a text copied from a chat. */
const AROUND = /^[\s\u200b-\u200f\u2060\ufeff]+|[\s\u200b-\u200f\u2060\ufeff]+$/g;

/** What a pasted text is to the address that is to be paid. `other`: a valid address of TRON, and not this one. */
export function comparePasted(address: string, pasted: string): 'same' | 'other' | 'no-address' {
  const text = pasted.replace(AROUND, '');
  if (text === address) return 'same';
  return parseAddress(text).kind === 'ok' ? 'other' : 'no-address';
}
