import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { AccountHex } from './address.ts';

/**
 * Returns the account of a secp256k1 public key, compressed (33 bytes) or not (65 bytes): the last 20 bytes of keccak256 over x and y.
 * Throws if the bytes aren't a point on the curve.
 */
export function accountFromPublicKey(bytes: Uint8Array): AccountHex {
  const point = secp256k1.Point.fromBytes(bytes).toBytes(false);
  return bytesToHex(keccak_256(point.subarray(1)).subarray(12)) as AccountHex;
}
