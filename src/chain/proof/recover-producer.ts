import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { AccountHex } from '../../tron/address.ts';
import { recoverKey } from '../../tron/signature.ts';

/** More keys than a network's producers have, so that those in use stay. */
const MAX_KEYS = 128;
/** DER of a SubjectPublicKeyInfo with an uncompressed secp256k1 point (RFC 5480), up to the point. */
const SPKI_PREFIX = Buffer.from('3056301006072a8648ce3d020106052b8104000a034200', 'hex');

/** Keys that were recovered from signatures, by the producer whose blocks they signed, the oldest first. */
const keys = new Map<string, { signer: AccountHex; key: KeyObject }>();

/**
 * The account that signed a header, or null if none can have. To recover a key from a signature takes 1.4 ms, to verify a
 * signature with a known key a quarter of it (OpenSSL): the key that signed a producer's blocks before is tried first.
 */
export function recoverProducer(producer: AccountHex, header: Uint8Array, signatureHex: string): AccountHex | null {
  const known = keys.get(producer);
  // The last byte only says which of the possible keys it is.
  const signature = Buffer.from(signatureHex, 'hex').subarray(0, 64);
  if (known !== undefined && signatureHex.length >= 130 && signature.length === 64) {
    const key = { key: known.key, dsaEncoding: 'ieee-p1363' } as const;
    if (verify('sha256', header, key, signature)) return known.signer;
  }
  const recovered = recoverKey(header, signatureHex);
  if (recovered === null) return null;
  keys.delete(producer);
  keys.set(producer, { signer: recovered.account, key: toKey(recovered.publicKey) });
  for (const oldest of keys.keys()) {
    if (keys.size <= MAX_KEYS) break;
    keys.delete(oldest);
  }
  return recovered.account;
}

function toKey(point: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([SPKI_PREFIX, point]), format: 'der', type: 'spki' });
}
