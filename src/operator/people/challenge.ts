import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { deriveKey, type KeyRing, type MasterKey } from '../../runtime/key-ring.ts';

/** Longer than somebody takes to find the security key, and shorter than a lunch break. */
const LIFETIME_MS = 300_000;

const NONCE_BYTES = 16;
const TIME_BYTES = 8;
const HASH_BYTES = 32;
const SEALED_BYTES = NONCE_BYTES + TIME_BYTES + HASH_BYTES;

/** What a passkey is asked to sign for: a sign-in, the taking up of an invitation, or an action of a session. */
export type Purpose = readonly string[];

/**
 * A challenge for a passkey: a nonce, its end, the SHA-256 of what is signed, and an HMAC over these under a key derived from the master key.
 * So it need not be stored before somebody has answered it, and strangers who ask for many fill no table.
 */
export function createChallenge(
  { keyRing, now, random }: { keyRing: KeyRing; now(): UnixMs; random(bytes: number): Uint8Array },
  purpose: Purpose,
): Uint8Array<ArrayBuffer> {
  const end = Buffer.alloc(TIME_BYTES);
  end.writeBigUInt64BE(BigInt(now() + LIFETIME_MS));
  const content = Buffer.concat([random(NONCE_BYTES), end, hashOf(purpose)]);
  return new Uint8Array(Buffer.concat([content, macOf(keyRing.current(), content)]));
}

/** Reads a challenge (base64url) back: its end and the SHA-256 by which it is spent. `null`: not ours, not for this purpose, or too late. */
export function readChallenge(
  { keyRing, now }: { keyRing: KeyRing; now(): UnixMs },
  purpose: Purpose,
  challenge: string,
): { sha256: Buffer; expiresAt: UnixMs } | null {
  const bytes = Buffer.from(challenge, 'base64url');
  if (bytes.length !== SEALED_BYTES + HASH_BYTES) return null;
  const [content, mac] = [bytes.subarray(0, SEALED_BYTES), bytes.subarray(SEALED_BYTES)];
  if (!keyRing.keys().some((key) => timingSafeEqual(macOf(key, content), mac))) return null;
  if (!content.subarray(NONCE_BYTES + TIME_BYTES).equals(hashOf(purpose))) return null;
  const expiresAt = unixMs(Number(content.readBigUInt64BE(NONCE_BYTES)));
  return expiresAt > now() ? { sha256: createHash('sha256').update(bytes).digest(), expiresAt } : null;
}

/** Of the parts with their lengths, so that no two purposes are one text. */
function hashOf(purpose: Purpose): Buffer {
  const hash = createHash('sha256');
  for (const part of purpose) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest();
}

function macOf(key: MasterKey, content: Buffer): Buffer {
  return createHmac('sha256', deriveKey(key, { purpose: 'quittance challenges', salt: '' }))
    .update(content)
    .digest();
}
