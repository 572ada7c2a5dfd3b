import { ed25519 } from '@noble/curves/ed25519.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import { parseAddress } from '@quittance/tron/address';
import { base64urlnopad } from '@scure/base';
import type { AddressProof } from '../manifest/manifest.ts';
import { parseAmount } from '../money.ts';
import { isNetwork, type Network, WIRE_ASSET, WIRE_NETWORK } from '../network.ts';

/** An Ed25519 public key as a JWK (RFC 8037); `x` contains its 32 bytes in base64url. */
export type PublicJwk = { kty: 'OKP'; crv: 'Ed25519'; x: string };

/** A key for signing receipts. `id` is the thumbprint of the public key as a JWK (RFC 7638), 43 characters long. */
export type ReceiptKey = { id: string; publicKey: Uint8Array; privateKey: Uint8Array };

/** Creates the key from 32 random bytes, which are the private key as defined by RFC 8032. */
export function receiptKeyOf(privateKey: Uint8Array): ReceiptKey {
  const publicKey = ed25519.getPublicKey(privateKey);
  return { id: receiptKeyId(toJwk(publicKey)), publicKey, privateKey };
}

export function toJwk(publicKey: Uint8Array): PublicJwk {
  return { kty: 'OKP', crv: 'Ed25519', x: base64urlnopad.encode(publicKey) };
}

export function receiptKeyId({ kty, crv, x }: PublicJwk): string {
  return base64urlnopad.encode(sha256(utf8ToBytes(canonicalJson({ kty, crv, x }))));
}

/** A published key set (RFC 7517). */
type JwkSet = { keys: (PublicJwk & { kid: string; use: 'sig'; alg: 'EdDSA' })[] };

export function toJwkSet(publicKeys: readonly Uint8Array[]): JwkSet {
  const jwks = publicKeys.map(toJwk);
  return { keys: jwks.map((jwk) => ({ ...jwk, kid: receiptKeyId(jwk), use: 'sig', alg: 'EdDSA' })) };
}

/** Even a set with a thousand keys is many times smaller than this. */
export const MAX_KEY_SET_BYTES = 1024 * 1024;

/** Returns the ids of the Ed25519 keys in a JWK Set and ignores other keys. Returns `null` if the text isn't a JWK Set. */
export function readKeyIds(text: string): string[] | null {
  try {
    const { keys } = JSON.parse(text) as { keys: unknown };
    if (!Array.isArray(keys)) return null;
    return keys.flatMap((key: Partial<PublicJwk> | null) => {
      const isOurs = key?.kty === 'OKP' && key.crv === 'Ed25519' && typeof key.x === 'string';
      return isOurs && X.test(key.x ?? '') ? [receiptKeyId(key as PublicJwk)] : [];
    });
  } catch {
    return null;
  }
}

/** Matches 32 bytes in base64url, whose last character encodes only four bits. */
const X = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** A value in a signed statement. Fractions, lists and nulls aren't allowed, because their form is ambiguous. */
type CanonicalValue = string | number | { readonly [name: string]: CanonicalValue };

/**
 * Serialises a value according to the JSON Canonicalization Scheme (RFC 8785): members are sorted by their UTF-16 units, without white
 * space. Equal values always give equal bytes. Throws a RangeError for a number that isn't a safe integer, and for an unpaired surrogate.
 */
export function canonicalJson(value: CanonicalValue): string {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw new RangeError('a text contains an unpaired surrogate');
    return JSON.stringify(value);
  }
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is not a safe integer`);
    return JSON.stringify(value);
  }
  const members = Object.entries(value)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, member]) => `${canonicalJson(name)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}

/**
 * A statement about a paid invoice. Third parties can see it, so it contains nothing that leads back to the invoice. It also doesn't depend
 * on when it was requested.
 */
export type Receipt = {
  version: 1;
  /** The origin that payers see, such as `https://pay.example.com`. */
  issuer: string;
  merchant: string;
  network: typeof WIRE_NETWORK;
  /** Names the TRON network, because `network` has the same value for all TRON networks. */
  chain: Network;
  asset: typeof WIRE_ASSET;
  contract: string;
  /** For example `25.000009`. */
  amount: string;
  from: string;
  to: string;
  transaction: ReceiptTransaction;
};

/** `txId` and `blockId` are 64 hex characters each. `blockTime` is ISO 8601 with milliseconds. */
type ReceiptTransaction = {
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockId: string;
  blockTime: string;
};

type ReadReceipt = { kind: 'ok'; receipt: Receipt } | { kind: 'invalid'; reason: string };

/** Parses a value that may be a receipt. Every member must be valid, and others aren't allowed. `reason` is a phrase. */
export function readReceipt(value: unknown): ReadReceipt {
  if (!isObject(value)) return invalid('contains no receipt');
  const { version } = value;
  if (version !== 1) {
    return invalid(
      typeof version === 'number'
        ? `contains a receipt of version ${version}, but this release reads version 1: use a newer release`
        : 'contains no receipt',
    );
  }
  const problem = problemOf(value, MEMBERS) ?? problemOf(value['transaction'], TRANSACTION_MEMBERS);
  return problem === null ? { kind: 'ok', receipt: value as Receipt } : invalid(problem);
}

function invalid(reason: string): ReadReceipt {
  return { kind: 'invalid', reason };
}

type Member = (value: unknown) => boolean;

const isHash: Member = (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
const isAddress: Member = (value) => typeof value === 'string' && parseAddress(value).kind === 'ok';
const isCount: Member = (value) => Number.isSafeInteger(value) && (value as number) >= 0;

/** Matches an origin, without a path, query or user. */
const ORIGIN = /^https?:\/\/[^\s/?#@]{1,255}$/;
/** A project name's maximum length in characters. */
const MAX_MERCHANT = 100;

const MEMBERS: Record<keyof Receipt, Member> = {
  version: (value) => value === 1,
  issuer: (value) => typeof value === 'string' && value.isWellFormed() && ORIGIN.test(value),
  merchant: isName,
  network: (value) => value === WIRE_NETWORK,
  chain: (value) => typeof value === 'string' && isNetwork(value),
  asset: (value) => value === WIRE_ASSET,
  contract: isAddress,
  amount: (value) => typeof value === 'string' && parseAmount(value).kind === 'ok',
  from: isAddress,
  to: isAddress,
  transaction: isObject,
};

const TRANSACTION_MEMBERS: Record<keyof ReceiptTransaction, Member> = {
  txId: isHash,
  logIndex: isCount,
  blockNumber: isCount,
  blockId: isHash,
  blockTime: isTime,
};

function problemOf(value: unknown, members: Record<string, Member>): string | null {
  if (!isObject(value)) return 'contains no receipt';
  const wrong = Object.entries(members).find(([name, isRight]) => !isRight(value[name]));
  if (wrong !== undefined) return `contains a receipt whose ${wrong[0]} is missing or not valid`;
  const isForeign = Object.keys(value).length !== Object.keys(members).length;
  return isForeign ? 'contains a receipt with members that Quittance does not write' : null;
}

function isName(value: unknown): boolean {
  if (typeof value !== 'string' || !value.isWellFormed()) return false;
  const length = [...value].length;
  return length >= 1 && length <= MAX_MERCHANT;
}

function isTime(value: unknown): boolean {
  if (typeof value !== 'string') return false;
  const time = new Date(value);
  return !Number.isNaN(time.getTime()) && time.toISOString() === value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * `signature` is a JWS (RFC 7515) with detached content, `header..signature`, over the canonical form of `receipt`. `addressProof` proves
 * that the recipient is on a list of addresses that others signed. The list's signatures are separate, and are checked against the keys of
 * its signers.
 */
export type SignedReceipt = { receipt: Receipt; signature: string; addressProof?: AddressProof };

/** A receipt has about a thousand bytes. */
export const MAX_RECEIPT_BYTES = 64 * 1024;

/** Signs a receipt. The same receipt and key always give the same signature (RFC 8032). */
export function signReceipt(receipt: Receipt, { publicKey, privateKey }: ReceiptKey): SignedReceipt {
  const header = encodeHeader(toJwk(publicKey));
  const signature = ed25519.sign(signingInput(header, receipt), privateKey);
  return { receipt, signature: `${header}..${base64urlnopad.encode(signature)}` };
}

/** Returns the contents of the file that payers keep. */
export function formatReceipt(signed: SignedReceipt): string {
  return `${JSON.stringify(signed, null, 2)}\n`;
}

/** `intact` means that nothing has changed since the receipt was signed with this key. Each reason is a sentence without a full stop. */
type ReceiptCheck =
  | { kind: 'intact'; receipt: Receipt; keyId: string }
  | { kind: 'changed'; reason: string }
  | { kind: 'unreadable'; reason: string };

/** Checks a file with any content. The check needs nothing but the file. */
export function checkReceipt(file: Uint8Array): ReceiptCheck {
  const read = readFile(file);
  if (read.kind !== 'ok') return read;
  const [header = '', between = '', signature = '', ...rest] = read.signature.split('.');
  if (rest.length > 0 || between !== '' || signature === '') {
    return unreadable('the signature does not have the form "header..signature"');
  }
  const signer = readHeader(header);
  if (signer.kind !== 'ok') return signer;
  const { jwk } = signer;
  const bytes = decode(signature, SIGNATURE_BYTES);
  const publicKey = decode(jwk.x, KEY_BYTES);
  const fits =
    bytes !== null &&
    publicKey !== null &&
    // The check follows RFC 8032 strictly, unlike some lenient implementations, so that a signature never fits a second text.
    ed25519.verify(bytes, signingInput(header, read.receipt), publicKey, { zip215: false });
  if (!fits) return changed('the signature does not match: the receipt or the signature was changed after signing');
  return { kind: 'intact', receipt: read.receipt, keyId: receiptKeyId(jwk) };
}

function unreadable(reason: string): ReceiptCheck & { kind: 'unreadable' } {
  return { kind: 'unreadable', reason };
}

function changed(reason: string): ReceiptCheck & { kind: 'changed' } {
  return { kind: 'changed', reason };
}

function signingInput(header: string, receipt: Receipt): Uint8Array {
  return utf8ToBytes(`${header}.${base64urlnopad.encode(utf8ToBytes(canonicalJson(receipt)))}`);
}

/**
 * The header contains the key, so a receipt can be checked without anything else. `typ` separates these signatures from all other kinds.
 */
function encodeHeader(jwk: PublicJwk): string {
  const header = { alg: 'EdDSA', jwk, kid: receiptKeyId(jwk), typ: 'quittance-receipt+jws' };
  return base64urlnopad.encode(utf8ToBytes(canonicalJson(header)));
}

type Signer = { kind: 'ok'; jwk: PublicJwk } | (ReceiptCheck & { kind: 'changed' | 'unreadable' });

/**
 * Only one header is accepted per key. Any other member, such as `crit`, `b64` or a second `alg`, could make other readers understand the
 * receipt differently, so such a header is refused.
 */
function readHeader(header: string): Signer {
  const value = parseHeader(header);
  if (value === null) return unreadable('the signature header is not JSON in base64url');
  const { alg, jwk } = value;
  if (alg !== 'EdDSA') return unreadable('the signature does not use EdDSA, the only algorithm for receipts');
  const { kty, crv, x } = (jwk ?? {}) as Partial<PublicJwk>;
  if (kty !== 'OKP' || crv !== 'Ed25519' || typeof x !== 'string' || decode(x, KEY_BYTES) === null) {
    return unreadable('the signature header has no Ed25519 key');
  }
  const key: PublicJwk = { kty, crv, x };
  if (header === encodeHeader(key)) return { kind: 'ok', jwk: key };
  return changed('the signature header differs from the header that Quittance writes for this key');
}

const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

function parseHeader(header: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(base64urlnopad.decode(header)));
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}

/** Decodes exactly `length` bytes of base64url without padding or unused bits. Returns `null` for anything else. */
function decode(text: string, length: number): Uint8Array | null {
  try {
    const bytes = base64urlnopad.decode(text);
    return bytes.length === length ? bytes : null;
  } catch {
    return null;
  }
}

type ReadFile = (SignedReceipt & { kind: 'ok' }) | (ReceiptCheck & { kind: 'unreadable' });

function readFile(file: Uint8Array): ReadFile {
  if (file.length > MAX_RECEIPT_BYTES) {
    return unreadable(`the file has more than ${MAX_RECEIPT_BYTES} bytes, but a receipt has about a thousand`);
  }
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(file);
    value = JSON.parse(text);
  } catch {
    return unreadable('the file is not JSON in UTF-8: it is damaged, or it is not a signed receipt');
  }
  const { receipt: statement, signature, addressProof, ...others } = (value ?? {}) as Record<string, unknown>;
  const read = readReceipt(statement);
  if (read.kind === 'invalid') return unreadable(`the file ${read.reason}`);
  if (typeof signature !== 'string') return unreadable('the file contains a receipt without a signature');
  const isProven = typeof addressProof === 'object' && addressProof !== null;
  if (
    Object.keys(others).length > 0 ||
    (addressProof !== undefined && !isProven) ||
    countNames(text) !== countMembers(value)
  ) {
    return unreadable(
      'the file contains a repeated name, or more than a receipt, its signature and a proof of its address',
    );
  }
  return { kind: 'ok', receipt: read.receipt, signature };
}

/**
 * Counts the members of all objects as they appear in the text. If two members have the same name, `JSON.parse` keeps the last one, while
 * other readers may keep the first.
 */
function countNames(json: string): number {
  return [...json.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)].filter(([, colon]) => colon !== undefined).length;
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : 1;
  return Object.values(value).reduce((count: number, member) => count + own + countMembers(member), 0);
}
