import { createCipheriv } from 'node:crypto';

const POOL_BYTES = 1 << 20;

/** Bytes that look random and are the same in every run. `hex(n)` returns n bytes in hex, and `below(n)` an integer under n. */
export type RandomStream = { hex(bytes: number): string; below(limit: number): number };

export function createRandomStream(seed: number): RandomStream {
  const key = Buffer.alloc(16);
  key.writeUInt32BE(seed);
  const cipher = createCipheriv('aes-128-ctr', key, Buffer.alloc(16));
  const zeros = Buffer.alloc(POOL_BYTES);
  let [pool, used] = [cipher.update(zeros), 0];
  const take = (bytes: number): Buffer => {
    if (used + bytes > POOL_BYTES) [pool, used] = [cipher.update(zeros), 0];
    used += bytes;
    return pool.subarray(used - bytes, used);
  };
  return {
    hex: (bytes) => take(bytes).toString('hex'),
    below: (limit) => take(4).readUInt32BE() % limit,
  };
}
