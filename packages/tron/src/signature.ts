import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from './address.ts';
import { bytesFromHex } from './hex.ts';
import { accountFromPublicKey } from './public-key.ts';

const SIGNATURE_BYTES = 65;

/**
 * Returns the account whose key signed sha256(message), or null if the signature is invalid or too short. The signature is r‖s‖v in hex,
 * where v is 0 or 1, or 27 or 28 as wallets write it. Bytes after v are ignored (java-tron `Rsv.fromSignature`).
 */
export function recoverSigner(message: Uint8Array, signatureHex: string): AccountHex | null {
  return recoverKey(message, signatureHex)?.account ?? null;
}

/** Like `recoverSigner`, but also returns the public key in its uncompressed form (65 bytes). */
export function recoverKey(
  message: Uint8Array,
  signatureHex: string,
): { account: AccountHex; publicKey: Uint8Array } | null {
  const signature = bytesFromHex(signatureHex);
  if (signature === null || signature.length < SIGNATURE_BYTES) return null;
  const v = signature[64] ?? 0;
  const recovery = v >= 27 ? v - 27 : v;
  if (recovery > 1) return null;
  try {
    // noble expects the recovery byte at the beginning.
    const recovered = concatBytes(Uint8Array.of(recovery), signature.subarray(0, 64));
    const point = secp256k1.Signature.fromBytes(recovered, 'recovered').recoverPublicKey(sha256(message));
    // The key is uncompressed, because reading a compressed point would require a square root.
    const publicKey = point.toBytes(false);
    return { account: accountFromPublicKey(publicKey), publicKey };
  } catch {
    return null;
  }
}

/** Signs sha256(message) with a 32-byte private key. The result is deterministic (RFC 6979): r‖s‖v in hex, where v is 0 or 1. */
export function signMessage(message: Uint8Array, privateKey: Uint8Array): string {
  const signature = secp256k1.sign(message, privateKey, { format: 'recovered' });
  return bytesToHex(concatBytes(signature.subarray(1), signature.subarray(0, 1)));
}
