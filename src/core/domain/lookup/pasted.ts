import { parseAddress } from '@quittance/tron/address';
import { type MicroUsdt, microUsdt } from '../money.ts';

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

/** No exchange charges this much, and the sum of this fee and any amount can still be formatted. */
const FEE = /^(\d{1,6})(?:\.(\d{1,6}))?$/;

/** Digits as typed on Arabic and Persian keyboards. */
const ARABIC_ZERO = 0x0660;
const PERSIAN_ZERO = 0x06f0;

/**
 * Reads a fee as people type it: `1`, `1.5`, `1,5`, `1.5 USDT`, `۱٫۵`. Returns `null` for anything else. A comma is read as a decimal
 * point, because no fee is in the thousands.
 */
export function readFee(text: string): MicroUsdt | null {
  const plain = trimPasted(text.slice(0, 100))
    .replace(/[\u0660-\u0669]/g, (digit) => String(digit.charCodeAt(0) - ARABIC_ZERO))
    .replace(/[\u06f0-\u06f9]/g, (digit) => String(digit.charCodeAt(0) - PERSIAN_ZERO))
    .replace(/\s*usdt$/i, '')
    .replace(/[,\u066b]/, '.');
  const found = FEE.exec(plain);
  if (found === null) return null;
  const [, integer = '', fraction = ''] = found;
  return microUsdt(BigInt(integer + fraction.padEnd(6, '0')));
}

/** The TRON networks whose explorers are known. */
export type LinkedNetwork = 'mainnet' | 'nile' | 'shasta';

/** The other chains whose transactions are recognised. */
export type OtherChain = 'ethereum' | 'bsc' | 'polygon' | 'solana' | 'ton';

/**
 * The result of reading a text that someone pasted as their transaction: the transaction's id (64 lowercase hex characters), or the reason
 * why the text isn't an id.
 */
type TransactionReference =
  /**
   * `hasPrefix`: the id was written as `0x…`, as Ethereum ids are, and as tools that use JSON-RPC write TRON ids. `linkTo`: the id was in a
   * link to an explorer of that network.
   */
  | { kind: 'id'; txId: string; hasPrefix: boolean; linkTo: LinkedNetwork | null }
  /** A transaction on another chain, where Quittance doesn't receive payments. */
  | { kind: 'not-tron'; looksLike: OtherChain }
  | { kind: 'none'; looksLike: 'address' | 'part-of-an-id' | 'link' | 'other'; characters: number };

/** A longer text can't be a link to a single transaction. */
const MAX_CHARACTERS = 500;

const ID_CHARACTERS = 64;
/** A link's host, with or without `https://`, and its path. */
const LINK = /(?<![\w.@-])(?:https?:\/\/)?((?:[a-z0-9-]+\.)+[a-z]{2,}\/\S*)/gi;
/** TRON explorers. OKLink and Tokenview also cover other chains. */
const EXPLORERS: readonly (readonly [RegExp, LinkedNetwork])[] = [
  [/^nile\.tronscan\.(?:org|io)\//i, 'nile'],
  [/^shasta\.tronscan\.(?:org|io)\//i, 'shasta'],
  [/^(?:www\.)?(?:tronscan\.(?:org|io)|trx\.tokenview\.io|tron\.tokenview\.io)\//i, 'mainnet'],
  [/^(?:www\.)?oklink\.com\/(?:[a-z-]+\/)?(?:tron|trx)\//i, 'mainnet'],
];
/** The best-known explorers of other chains. An id in a link to any other site is looked up on TRON. */
const OTHER_EXPLORERS: readonly (readonly [RegExp, OtherChain])[] = [
  [/^(?:www\.)?(?:etherscan\.io|oklink\.com\/(?:[a-z-]+\/)?(?:eth|ethereum))\//i, 'ethereum'],
  [/^(?:www\.)?(?:bscscan\.com|oklink\.com\/(?:[a-z-]+\/)?(?:bsc|bnb))\//i, 'bsc'],
  [/^(?:www\.)?(?:polygonscan\.com|oklink\.com\/(?:[a-z-]+\/)?polygon)\//i, 'polygon'],
];
/** An address on TRON or on a chain like Ethereum. */
const ADDRESS = /^(?:T[1-9A-HJ-NP-Za-km-z]{33}|0x[0-9a-f]{40})$/i;
/** A 64-byte signature in base58. */
const SOLANA_SIGNATURE = /^[1-9A-HJ-NP-Za-km-z]{86,88}$/;
/** A 32-byte hash in base64 or base64url. */
const TON_HASH = /^[A-Za-z0-9+/_-]{43}=$/;

/**
 * Finds the only transaction id in a text, in upper or lower case, with or without `0x`, surrounding words or a link, even if white space
 * interrupts it. If there's none, says what the text looks like. Accepts any text.
 */
export function readTransactionReference(pasted: string): TransactionReference {
  const none = (looksLike: 'address' | 'part-of-an-id' | 'link' | 'other') =>
    ({ kind: 'none', looksLike, characters: pasted.length }) as const;
  if (pasted.length > MAX_CHARACTERS) return none('other');
  const text = trimPasted(pasted);
  const links = [...text.matchAll(LINK)].map(([, link = '']) => link);
  const [id, ...others] = new Set(idsIn(text));
  if (id !== undefined && others.length === 0) {
    const hasPrefix = new RegExp(`0x${id}`, 'i').test(text);
    const link = links.find((each) => each.toLowerCase().includes(id));
    const placeOf = <Place>(explorers: readonly (readonly [RegExp, Place])[]) =>
      link === undefined ? null : (explorers.find(([form]) => form.test(link))?.[1] ?? null);
    const looksLike = placeOf(OTHER_EXPLORERS);
    if (looksLike !== null) return { kind: 'not-tron', looksLike };
    return { kind: 'id', txId: id, hasPrefix, linkTo: placeOf(EXPLORERS) };
  }
  if (SOLANA_SIGNATURE.test(text)) return { kind: 'not-tron', looksLike: 'solana' };
  if (TON_HASH.test(text)) return { kind: 'not-tron', looksLike: 'ton' };
  if (ADDRESS.test(text)) return none('address');
  if (/^(?:0x)?[0-9a-f]{16,}(?:\.{3})?$/i.test(text)) return { ...none('part-of-an-id'), characters: text.length };
  return none(links.length > 0 || /^https?:\/\//i.test(text) ? 'link' : 'other');
}

/**
 * Returns all runs of 64 hex characters. If there are none, returns runs interrupted by white space, such as an id that spans two lines.
 */
function idsIn(text: string): string[] {
  const words = [...text.toLowerCase().matchAll(/(?<![0-9a-z])(?:0x)?([0-9a-z]+)(?![0-9a-z])/g)];
  const whole = words.map(([, word = '']) => word).filter((word) => /^[0-9a-f]{64}$/.test(word));
  if (whole.length > 0) return whole;
  return words.flatMap((first, index) => {
    let [joined, end] = ['', first.index];
    for (const { 0: written, 1: word = '', index: at } of words.slice(index, index + ID_CHARACTERS)) {
      if (joined.length >= ID_CHARACTERS || /\S/.test(text.slice(end, at)) || !/^[0-9a-f]+$/.test(word)) break;
      joined += word;
      end = at + written.length;
    }
    return joined.length === ID_CHARACTERS ? [joined] : [];
  });
}
