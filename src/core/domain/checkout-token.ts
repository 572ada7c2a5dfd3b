import { base58 } from '@scure/base';

/** Formats the secret part of a checkout link: 128 random bits in base58, 16 to 22 characters. It reveals nothing about the invoice. */
export function formatCheckoutToken(random: Uint8Array): string {
  if (random.length !== 16) throw new RangeError('a checkout token needs 16 random bytes');
  return base58.encode(random);
}

const TOKEN = /^[1-9A-HJ-NP-Za-km-z]{16,22}$/;

/** Whether a text has the form of a checkout token. Whether the token exists is known only to the database. */
export function isCheckoutToken(text: string): boolean {
  return TOKEN.test(text);
}
