import { trimPasted } from './compare-pasted.ts';

/** The text that people paste as their transaction: its id (64 lowercase hex characters), or why it is none. */
export type TransactionReference =
  /** `hasPrefix`: written as `0x…`, as ids of Ethereum are, and those of TRON by tools that ask for them over JSON-RPC. */
  | { kind: 'id'; txId: string; hasPrefix: boolean }
  /** A transaction of another chain, where no payment of ours can be. */
  | { kind: 'not-tron'; looksLike: 'ethereum' | 'solana' | 'ton' }
  | { kind: 'none'; looksLike: 'address' | 'part-of-an-id' | 'link' | 'other'; characters: number };

/** Longer text is no link to one transaction. */
const MAX_CHARACTERS = 500;

/** `https://tronscan.org/#/transaction/0ca1…8ae`, `nile.tronscan.org/#/transaction/0ca1…8ae/token-transfers?lang=en`. */
const TRONSCAN =
  /^(?:https?:\/\/)?(?:(?:www|nile|shasta)\.)?tronscan\.(?:org|io)\/(?:\?[^#\s]*)?(?:#\/)?transaction\/([0-9a-f]{64})(?:[/?#]\S*)?$/i;
/** An id as it is, or behind `0x`. */
const ID = /^(0x)?([0-9a-f]{64})$/i;
/** In a link, which is to an explorer of another chain. */
const ETHEREUM_HASH = /(?:^|[^0-9a-z])0x[0-9a-f]{64}(?![0-9a-z])/i;
/** An address of TRON, or of an Ethereum-style chain. */
const ADDRESS = /^(?:T[1-9A-HJ-NP-Za-km-z]{33}|0x[0-9a-f]{40})$/i;
/** A signature of 64 bytes in base58. */
const SOLANA_SIGNATURE = /^[1-9A-HJ-NP-Za-km-z]{86,88}$/;
/** A hash of 32 bytes in base64, also in its form for URLs. */
const TON_HASH = /^[A-Za-z0-9+/_-]{43}=$/;

/**
 * Reads a bare transaction id in any case, with or without `0x`, or a link to tronscan.org; names what else it may be. Any text
 * is borne.
 */
export function readTransactionReference(pasted: string): TransactionReference {
  const none = (looksLike: 'address' | 'part-of-an-id' | 'link' | 'other') =>
    ({ kind: 'none', looksLike, characters: pasted.length }) as const;
  if (pasted.length > MAX_CHARACTERS) return none('other');
  const text = trimPasted(pasted);
  const bare = ID.exec(text);
  const id = bare?.[2] ?? TRONSCAN.exec(text)?.[1];
  if (id !== undefined) return { kind: 'id', txId: id.toLowerCase(), hasPrefix: bare?.[1] !== undefined };
  if (ETHEREUM_HASH.test(text)) return { kind: 'not-tron', looksLike: 'ethereum' };
  if (SOLANA_SIGNATURE.test(text)) return { kind: 'not-tron', looksLike: 'solana' };
  if (TON_HASH.test(text)) return { kind: 'not-tron', looksLike: 'ton' };
  if (ADDRESS.test(text)) return none('address');
  if (/^(?:0x)?[0-9a-f]{16,}…?$/i.test(text)) return { ...none('part-of-an-id'), characters: text.length };
  return none(/^https?:\/\//i.test(text) ? 'link' : 'other');
}
