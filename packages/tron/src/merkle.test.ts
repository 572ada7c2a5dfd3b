import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { txTrieRoot } from './merkle.ts';

const sha = (...parts: Uint8Array[]) => createHash('sha256').update(Buffer.concat(parts)).digest();
const leaves = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 20 });

test('a block without transactions has a root of zeros', () => {
  expect(txTrieRoot([])).toBe('0'.repeat(64));
});

test('an odd node moves up unchanged', () => {
  const [a, b, c, d, e] = [1, 2, 3, 4, 5].map((byte) => Uint8Array.of(byte)) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  expect(txTrieRoot([a])).toBe(sha(a).toString('hex'));
  expect(txTrieRoot([a, b, c])).toBe(sha(sha(sha(a), sha(b)), sha(c)).toString('hex'));
  const four = sha(sha(sha(a), sha(b)), sha(sha(c), sha(d)));
  expect(txTrieRoot([a, b, c, d, e])).toBe(sha(four, sha(e)).toString('hex'));
});

test('the root of any number of transactions is that of its definition', () => {
  const rootOf = (nodes: Uint8Array[]): Uint8Array => {
    const pairs = Array.from({ length: Math.ceil(nodes.length / 2) }, (_, index) =>
      nodes.slice(2 * index, 2 * index + 2),
    );
    const above = pairs.map(([left, right]) =>
      right === undefined ? left : sha(left ?? right, right),
    ) as Uint8Array[];
    return above.length > 1 ? rootOf(above) : (above[0] ?? new Uint8Array(0));
  };
  for (let count = 1; count <= 33; count += 1) {
    const transactions = Array.from({ length: count }, (_, index) => Uint8Array.of(index, count));
    const root = rootOf(transactions.map((bytes) => sha(bytes)));
    expect([count, txTrieRoot(transactions)]).toEqual([count, Buffer.from(root).toString('hex')]);
  }
});

test('changing one bit of any transaction changes the root', () => {
  fc.assert(
    fc.property(leaves, fc.nat(), fc.nat(), (transactions, which, bit) => {
      const index = which % transactions.length;
      const changed = transactions.map((bytes) => Uint8Array.from(bytes));
      const target = changed[index];
      if (target === undefined) return;
      const at = bit % (target.length * 8);
      target[at >> 3] = (target[at >> 3] ?? 0) ^ (1 << (at & 7));
      expect(txTrieRoot(changed)).not.toBe(txTrieRoot(transactions));
    }),
  );
});

test('leaving out the last transaction, or repeating it, changes the root', () => {
  fc.assert(
    fc.property(leaves, (transactions) => {
      expect(txTrieRoot(transactions.slice(0, -1))).not.toBe(txTrieRoot(transactions));
      expect(txTrieRoot([...transactions, ...transactions.slice(-1)])).not.toBe(txTrieRoot(transactions));
    }),
  );
});

test('another sha256 gives the same root', () => {
  const native = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
  fc.assert(
    fc.property(leaves, (transactions) => {
      expect(txTrieRoot(transactions, native)).toBe(txTrieRoot(transactions));
    }),
  );
});
