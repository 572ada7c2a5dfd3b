import { parseAddress } from '../../tron/address.ts';

/** Turns full-width and other variants of characters into the plain ones, and removes white space around and invisible characters. */
export function trimPasted(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .trim();
}

/** Compares a pasted text with the address that is to be paid. `other`: a valid address of TRON, and not this one. */
export function comparePasted(address: string, pasted: string): 'same' | 'other' | 'no-address' {
  const text = trimPasted(pasted);
  if (text === address) return 'same';
  return parseAddress(text).kind === 'ok' ? 'other' : 'no-address';
}
