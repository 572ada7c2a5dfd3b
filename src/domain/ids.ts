/**
 * TypeIDs: a prefix, `_`, and the 26 characters of a UUIDv7 in Crockford's base32 (lower case).
 * Specification: github.com/jetify-com/typeid, version 0.3. Example: `inv_01h455vb4pex5vsknk084sn02q`.
 */
export type IdPrefix = 'inv' | 'evt' | 'prj' | 'key' | 'whe' | 'trf' | 'req';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const SUFFIX = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Writes a UUID as a TypeID. Throws if `uuid` is not in lower-case canonical form. */
export function encodeId(prefix: IdPrefix, uuid: string): string {
  if (!UUID.test(uuid)) throw new RangeError(`not a UUID: ${uuid}`);
  let value = BigInt(`0x${uuid.replaceAll('-', '')}`);
  let text = '';
  for (let i = 0; i < 26; i++) {
    text = ALPHABET.charAt(Number(value & 31n)) + text;
    value >>= 5n;
  }
  return `${prefix}_${text}`;
}

/** Reads a TypeID with this prefix back to its UUID; `null` for anything else, also for upper case. */
export function decodeId(prefix: IdPrefix, id: string): string | null {
  if (!id.startsWith(`${prefix}_`)) return null;
  const suffix = id.slice(prefix.length + 1);
  if (!SUFFIX.test(suffix)) return null;
  let value = 0n;
  for (const character of suffix) value = (value << 5n) | BigInt(ALPHABET.indexOf(character));
  const hex = value.toString(16).padStart(32, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/**
 * Builds a UUIDv7 (RFC 9562) from a time in Unix milliseconds and 10 random bytes.
 */
export function uuidV7(nowMs: number, random: Uint8Array): string {
  if (random.length < 10) throw new RangeError('a UUIDv7 needs 10 random bytes');
  const time = Math.floor(nowMs).toString(16).padStart(12, '0');
  const bytes = Array.from(random.subarray(0, 10));
  bytes[0] = ((bytes[0] ?? 0) & 0x0f) | 0x70;
  bytes[2] = ((bytes[2] ?? 0) & 0x3f) | 0x80;
  const tail = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return `${time.slice(0, 8)}-${time.slice(8)}-${tail.slice(0, 4)}-${tail.slice(4, 8)}-${tail.slice(8)}`;
}
