import { ed25519 } from '@noble/curves/ed25519.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import { base64urlnopad } from '@scure/base';

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
