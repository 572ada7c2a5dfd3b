import { createHash } from 'node:crypto';
import { base32crockford } from '@scure/base';

const COUNT = 10;
/** 80 bits: nobody guesses one, however often they may try. */
const BYTES = 10;

/** Ten codes as people keep them, `7k3m-9x2p-…`: 16 characters without those that look alike. */
export function createRecoveryCodes(random: (bytes: number) => Uint8Array): string[] {
  return Array.from({ length: COUNT }, () => {
    const text = base32crockford.encode(random(BYTES)).toLowerCase();
    return (text.match(/.{4}/g) ?? []).join('-');
  });
}

/** What the database keeps of a code, however it was typed; `null` for a text that is none. */
export function recoveryCodeHash(code: string): Buffer | null {
  const text = code.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1');
  return /^[0-9a-hjkmnp-tv-z]{16}$/.test(text) ? createHash('sha256').update(text).digest() : null;
}
