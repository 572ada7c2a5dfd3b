import { HARDENED_OFFSET, HDKey } from '@scure/bip32';
import { type AccountHex, accountToAddress, type TronAddress } from './address.ts';
import { accountFromPublicKey } from './public-key.ts';

/**
 * An account's extended public key, m/44'/195'/account', as 111 characters of text. With this key, a wallet can be watched, but its money
 * can't be spent.
 */
export type AccountXpub = string & { readonly brand: 'AccountXpub' };

export type ParsedXpub =
  | { readonly kind: 'ok'; readonly xpub: AccountXpub; readonly accountNumber: number }
  | { readonly kind: 'invalid'; readonly reason: string };

export type DerivedAddress = {
  readonly index: number;
  readonly account: AccountHex;
  readonly address: TronAddress;
};

/** m / purpose' / coin type' / account': from this level down, addresses can be derived without a private key (BIP-44). */
const ACCOUNT_DEPTH = 3;

/** The keys at the other depths on the path m/44'/195'/account'/change/index. */
const OTHER_DEPTHS: Readonly<Record<number, string>> = {
  0: 'the master key of the whole wallet (m)',
  1: "the key of level 1 (m/44')",
  2: "the key of a coin (m/44'/195')",
  4: "the key of one chain of an account (m/44'/195'/0'/0)",
  5: "the key of a single address (m/44'/195'/0'/0/0)",
};

const WANTED = "export the key of the account itself, m/44'/195'/0' (it starts with xpub6)";

/**
 * Reads an account's extended public key (BIP-32). If the text is refused, the reason says what it is and what is expected, but never
 * repeats it. The key doesn't show whether it's for TRON (195'); only a comparison with the wallet can show that.
 */
export function parseAccountXpub(text: string): ParsedXpub {
  const [, prefix] = /^([A-Za-z]{4})[1-9A-HJ-NP-Za-km-z]{50,}$/.exec(text) ?? [];
  if (prefix === undefined)
    return invalid('this is not an extended public key, which starts with xpub and has 111 characters');
  if (/prv$/.test(prefix)) return invalid('this is an extended private key, which can spend your money');
  if (prefix !== 'xpub') {
    return invalid(`this key has the format of Bitcoin or another chain (${prefix}…): ${WANTED}`);
  }
  const key = readKey(text);
  if (key === null) {
    return invalid('the checksum does not match: a character is wrong or missing. Copy the whole key again');
  }
  if (key.depth !== ACCOUNT_DEPTH) {
    const what = OTHER_DEPTHS[key.depth] ?? 'too deep for an account';
    return invalid(`this key has depth ${key.depth}: it is ${what}; ${WANTED}`);
  }
  if (key.index < HARDENED_OFFSET) {
    return invalid(`this is not the key of an account: its last step, ${key.index}, is not hardened; ${WANTED}`);
  }
  return { kind: 'ok', xpub: text as AccountXpub, accountNumber: key.index - HARDENED_OFFSET };
}

/** Derives the receiving addresses xpub/0/from … xpub/0/(from + count − 1). Each takes about 1 ms. */
export function deriveAddresses(xpub: AccountXpub, from: number, count: number): DerivedAddress[] {
  const external = HDKey.fromExtendedKey(xpub).deriveChild(0);
  return Array.from({ length: count }, (_, offset) => {
    const index = from + offset;
    const { publicKey } = external.deriveChild(index);
    if (publicKey === null) throw new Error(`the key at index ${index} has no public part`);
    const account = accountFromPublicKey(publicKey);
    return { index, account, address: accountToAddress(account) };
  });
}

function readKey(text: string): HDKey | null {
  try {
    return HDKey.fromExtendedKey(text);
  } catch {
    return null;
  }
}

function invalid(reason: string): ParsedXpub {
  return { kind: 'invalid', reason };
}
