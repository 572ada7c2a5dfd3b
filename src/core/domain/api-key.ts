import { decodeId, encodeId } from './ids.ts';
import { keyMode, type Network } from './network.ts';

/**
 * An API key's scopes. `create`: create and withdraw invoices; `read`: read invoices and transfers; `events`: read the event feed;
 * `webhooks`: manage the endpoints that receive events.
 */
export const SCOPES = ['create', 'read', 'events', 'webhooks'] as const;
export type Scope = (typeof SCOPES)[number];

/**
 * A key that was created without scopes has these ones. They cover everything that all keys could do before scopes existed. Managing
 * webhooks must be requested explicitly.
 */
const DEFAULT_SCOPES: readonly Scope[] = ['create', 'read', 'events'];

export function scopesOf(stored: readonly string[] | null): readonly Scope[] {
  return stored === null ? DEFAULT_SCOPES : SCOPES.filter((scope) => stored.includes(scope));
}

/**
 * Secret keys look like `qt_<live|test>_<key id, 26><secret, 43 base62><CRC32 of everything before, 6 base62>`. The prefix and the checksum
 * let secret scanners and typo checks recognise a key offline. Only the SHA-256 of a key is stored.
 */
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const KEY = /^qt_(live|test)_([0-7][0-9a-hjkmnp-tv-z]{25})([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;
/** Admin API keys have the same form: `qa_<key id, 26><secret, 43><CRC32, 6>`. */
const ADMIN_KEY = /^qa_([0-7][0-9a-hjkmnp-tv-z]{25})([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

/** Formats an API key from its id and 32 random bytes. */
export function formatApiKey(network: Network, keyUuid: string, secret: Uint8Array): string {
  return formatKey(`qt_${keyMode(network)}_`, keyUuid, secret);
}

/** Like `formatApiKey`, but for admin API keys. */
export function formatAdminKey(keyUuid: string, secret: Uint8Array): string {
  return formatKey('qa_', keyUuid, secret);
}

function formatKey(prefix: string, keyUuid: string, secret: Uint8Array): string {
  if (secret.length !== 32) throw new RangeError('a secret key needs 32 random bytes');
  const id = encodeId('key', keyUuid).slice('key_'.length);
  const body = `${prefix}${id}${toBase62(bytesToBigint(secret), 43)}`;
  return body + checksumOf(body);
}

/** Returns the key id (UUID) in a well-formed key, or `null` for any text that Quittance can't have issued. */
export function readApiKey(text: string): { keyUuid: string; mode: 'live' | 'test' } | null {
  const match = KEY.exec(text);
  if (match === null) return null;
  const [, mode, id = '', , checksum = ''] = match;
  if (checksumOf(text.slice(0, -checksum.length)) !== checksum) return null;
  const keyUuid = decodeId('key', `key_${id}`);
  return keyUuid === null ? null : { keyUuid, mode: mode === 'live' ? 'live' : 'test' };
}

/** Like `readApiKey`, but for admin API keys. Returns the key's UUID, or `null`. */
export function readAdminKey(text: string): string | null {
  const [, id = '', , checksum = ''] = ADMIN_KEY.exec(text) ?? [];
  if (id === '' || checksumOf(text.slice(0, -checksum.length)) !== checksum) return null;
  return decodeId('key', `key_${id}`);
}

/** Returns six base62 characters. Every request checks a key, so this avoids BigInt. */
function checksumOf(body: string): string {
  let text = '';
  for (let rest = crc32(body); text.length < 6; rest = Math.floor(rest / 62)) text = BASE62.charAt(rest % 62) + text;
  return text;
}

function bytesToBigint(bytes: Uint8Array): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

function toBase62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = BASE62.charAt(Number(rest % 62n)) + text;
  return text;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let crc = index;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** Returns the CRC-32 (IEEE 802.3) of ASCII text as an unsigned integer. */
export function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let i = 0; i < text.length; i++) crc = (CRC_TABLE[(crc ^ text.charCodeAt(i)) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
