import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

/** A 32-byte key, with an id of 16 hex digits that database rows refer to. The id reveals nothing about the key. */
export type MasterKey = { id: string; bytes: Buffer };

export type KeySource = { kind: 'setting' } | { kind: 'file'; path: string };

/** The master keys: the first one encrypts, and all of them decrypt. */
export type KeyRing = {
  current(): MasterKey;
  find(id: string): MasterKey | undefined;
  /** Returns the keys in order, without duplicates. */
  keys(): readonly MasterKey[];
  source: KeySource;
  /** Reads the key file again, if there is one, because another process may have changed it. Throws if that fails. */
  reload(): Promise<void>;
};

/** Creates a ring whose keys never change. It must have at least one. */
export function createKeyRing(given: readonly MasterKey[], source: KeySource = { kind: 'setting' }): KeyRing {
  // The same key may be listed twice, in base64 and in hexadecimal.
  const keys = given.filter((key, index) => given.findIndex(({ id }) => id === key.id) === index);
  const [first] = keys;
  if (first === undefined) throw new RangeError('a key ring needs at least one key');
  return {
    current: () => first,
    find: (id) => keys.find((key) => key.id === id),
    keys: () => keys,
    source,
    reload: async () => undefined,
  };
}

/** Parses a 32-byte key in base64 (44 characters) or hexadecimal (64 characters). Returns `null` for anything else. */
export function parseMasterKey(text: string): MasterKey | null {
  const encoding = /^[0-9a-fA-F]{64}$/.test(text) ? 'hex' : /^[A-Za-z0-9+/]{43}=$/.test(text) ? 'base64' : null;
  return encoding === null ? null : masterKey(Buffer.from(text, encoding));
}

export function createMasterKey(): MasterKey {
  return masterKey(randomBytes(KEY_BYTES));
}

function masterKey(bytes: Buffer): MasterKey {
  return {
    id: createHash('sha256').update('quittance master key id\n').update(bytes).digest('hex').slice(0, 16),
    bytes,
  };
}

/** A stored secret (nonce, ciphertext and tag), with the id of the key that decrypts it. */
export type Encrypted = { masterKeyId: string; sealed: Buffer };

/** Encrypts with the ring's current key. `place` identifies the row and column, and must be the same for decryption. */
export function encrypt(ring: KeyRing, plain: Uint8Array, place: string): Encrypted {
  const key = ring.current();
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key.bytes, nonce).setAAD(Buffer.from(place));
  const sealed = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  return { masterKeyId: key.id, sealed };
}

export type Decrypted = { kind: 'ok'; plain: Buffer } | { kind: 'unknown-key' } | { kind: 'damaged' };

/**
 * Decrypts the output of `encrypt`. `unknown-key`: the key isn't in the ring. `damaged`: the bytes were changed or belong to another place.
 */
export function decrypt(ring: KeyRing, { masterKeyId, sealed }: Encrypted, place: string): Decrypted {
  const key = ring.find(masterKeyId);
  if (key === undefined) return { kind: 'unknown-key' };
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return { kind: 'damaged' };
  const decipher = createDecipheriv('aes-256-gcm', key.bytes, sealed.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(place))
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    const plain = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
    return { kind: 'ok', plain };
  } catch {
    // `final` throws only if the tag doesn't match.
    return { kind: 'damaged' };
  }
}

/** Like `decrypt`, but if the key is unknown, reloads the keys first, because they may have been rotated. */
export async function decryptCurrent(ring: KeyRing, stored: Encrypted, place: string): Promise<Decrypted> {
  const opened = decrypt(ring, stored, place);
  if (opened.kind !== 'unknown-key') return opened;
  // If the file can't be read, the key remains unknown.
  await ring.reload().catch(() => undefined);
  return decrypt(ring, stored, place);
}

/** Encrypts a stored secret with the ring's current key. Returns `null` if no key decrypts it. */
export function reencrypt(ring: KeyRing, stored: Encrypted, place: string): Encrypted | null {
  const opened = decrypt(ring, stored, place);
  return opened.kind === 'ok' ? encrypt(ring, opened.plain, place) : null;
}

/** Derives a key for one purpose (HKDF-SHA-256, RFC 5869). It reveals nothing about the master key or the keys for other purposes. */
export function deriveKey(key: MasterKey, { purpose, salt }: { purpose: string; salt: string }): Buffer {
  return Buffer.from(hkdfSync('sha256', key.bytes, salt, purpose, KEY_BYTES));
}

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Thrown if keys are missing or invalid. The message says what to do and doesn't contain a key. */
export class KeyRingError extends Error {
  override readonly name = 'KeyRingError';
  readonly code: 'CONFIG_INVALID' | 'KEY_FILE_INVALID';

  constructor(code: KeyRingError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
