/** The value of each hex digit, by its character code; -1 for every other ASCII character. */
const NIBBLES = Int8Array.from({ length: 128 }, (_, code) => '0123456789abcdef'.indexOf(String.fromCharCode(code)));
for (const letter of 'ABCDEF') NIBBLES[letter.charCodeAt(0)] = Number.parseInt(letter, 16);

const DIGITS = new TextEncoder().encode('0123456789abcdef');
const decoder = new TextDecoder();
/** Most texts fit into this buffer, so they need no memory beyond the text itself. */
const room = new Uint8Array(1024);

/**
 * Returns the bytes as lower-case hex in one flat string. A string concatenated from pairs of digits needs sixteen times as much memory.
 */
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

/**
 * Returns the bytes of a hex string without `0x`, or null for anything else. The input comes from outside, so it may not even be a string.
 */
export function bytesFromHex(hex: unknown): Uint8Array | null {
  if (typeof hex !== 'string') return null;
  const bytes = new Uint8Array(hex.length >> 1);
  return writeHex(hex, bytes, 0) === null ? null : bytes;
}

/**
 * Writes the bytes of a hex string into `into`, starting at `offset`. Returns the offset after them, or null if the text isn't hex of whole
 * bytes. `into` must have room for `hex.length / 2` bytes.
 */
export function writeHex(hex: string, into: Uint8Array, offset: number): number | null {
  if (hex.length % 2 !== 0) return null;
  const end = offset + hex.length / 2;
  // An invalid digit sets the sign bit and never clears it, so one test at the end is enough, and cheaper than one per byte.
  let signs = 0;
  for (let at = offset, index = 0; at < end; at += 1, index += 2) {
    const high = NIBBLES[hex.charCodeAt(index)] ?? -1;
    const low = NIBBLES[hex.charCodeAt(index + 1)] ?? -1;
    signs |= high | low;
    into[at] = (high << 4) | low;
  }
  return signs < 0 ? null : end;
}
