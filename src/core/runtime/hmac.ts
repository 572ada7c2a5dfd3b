import { hash } from 'node:crypto';

const [BLOCK_BYTES, DIGEST_BYTES] = [64, 32];
const [INNER, OUTER] = [0x36, 0x5c];
/** Most rows fit into this. Each UTF-16 unit needs at most three bytes, because a surrogate pair needs four for its two units. */
const SCRATCH_BYTES = 8192;
const MOST_BYTES_EACH = 3;

/**
 * Returns a function that computes the HMAC-SHA-256 (RFC 2104) of texts in UTF-8. The key must not exceed 64 bytes. `createHmac` would
 * allocate an OpenSSL object per MAC, which cost 2 % more CPU per created invoice.
 */
export function createHmacSha256(key: Buffer): (text: string) => Buffer {
  if (key.length > BLOCK_BYTES) throw new RangeError(`a key has ${BLOCK_BYTES} bytes at most`);
  const pad = (byte: number) => Buffer.alloc(BLOCK_BYTES).map((_, index) => (key[index] ?? 0) ^ byte);
  const scratch = Buffer.concat([pad(INNER)], SCRATCH_BYTES);
  const outer = Buffer.concat([pad(OUTER)], BLOCK_BYTES + DIGEST_BYTES);
  const inner = (text: string): Buffer => {
    if (BLOCK_BYTES + text.length * MOST_BYTES_EACH > SCRATCH_BYTES)
      return Buffer.concat([scratch.subarray(0, BLOCK_BYTES), Buffer.from(text)]);
    return scratch.subarray(0, BLOCK_BYTES + scratch.write(text, BLOCK_BYTES));
  };
  return (text) => {
    hash('sha256', inner(text), 'buffer').copy(outer, BLOCK_BYTES);
    return hash('sha256', outer, 'buffer');
  };
}
