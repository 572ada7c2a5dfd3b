/** The value of each hex digit by its character code; -1 for every other ASCII character. */
const NIBBLES = Int8Array.from({ length: 128 }, (_, code) => '0123456789abcdef'.indexOf(String.fromCharCode(code)));
for (const letter of 'ABCDEF') NIBBLES[letter.charCodeAt(0)] = Number.parseInt(letter, 16);

const DIGITS = new TextEncoder().encode('0123456789abcdef');
const decoder = new TextDecoder();
/** Most of what is written is shorter than this, and takes no memory but that of its text. */
const room = new Uint8Array(1024);

/** Lower-case hex of bytes, as one flat text: a text that is put together from pairs of digits takes sixteen times the memory. */
export function hexOf(bytes: Uint8Array): string {
  const length = bytes.length * 2;
  const into = length <= room.length ? room : new Uint8Array(length);
  let at = 0;
  for (const byte of bytes) {
    into[at++] = DIGITS[byte >> 4] ?? 0;
    into[at++] = DIGITS[byte & 15] ?? 0;
  }
  return decoder.decode(into.subarray(0, length));
}

/** Bytes of a hex string without `0x`, or null when it is anything else. Outside data enters here, so it is not assumed to be a string. */
export function bytesFromHex(hex: unknown): Uint8Array | null {
  if (typeof hex !== 'string') return null;
  const bytes = new Uint8Array(hex.length >> 1);
  return writeHex(hex, bytes, 0) === null ? null : bytes;
}

/**
 * Writes the bytes of a hex string into `into` from `offset` on; returns the offset after them, or null when the text is
 * not hex of whole bytes. The caller leaves room for `hex.length / 2` bytes.
 */
export function writeHex(hex: string, into: Uint8Array, offset: number): number | null {
  if (hex.length % 2 !== 0) return null;
  const end = offset + hex.length / 2;
  // A digit that is none makes the sum of all negative bits -1 for good; one test at the end costs less than one per byte.
  let signs = 0;
  for (let at = offset, index = 0; at < end; at += 1, index += 2) {
    const high = NIBBLES[hex.charCodeAt(index)] ?? -1;
    const low = NIBBLES[hex.charCodeAt(index + 1)] ?? -1;
    signs |= high | low;
    into[at] = (high << 4) | low;
  }
  return signs < 0 ? null : end;
}
