import { parseAddress } from '@quittance/tron/address';

/** Normalises full-width and similar character variants, and removes surrounding white space and invisible characters. */
export function trimPasted(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .trim();
}

/** Compares a pasted text with the receiving address. `other` means a different valid TRON address. */
export function comparePasted(address: string, pasted: string): 'same' | 'other' | 'no-address' {
  const text = trimPasted(pasted);
  if (text === address) return 'same';
  return parseAddress(text).kind === 'ok' ? 'other' : 'no-address';
}
