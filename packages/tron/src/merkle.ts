import { writeHex } from './hex.ts';
import { type Sha256Hex, sha256Hex } from './sha256.ts';

/** The `txTrieRoot` of a block without transactions. */
const EMPTY_ROOT = '00'.repeat(32);

const HASH_BYTES = 32;

/**
 * Returns the root that a block header commits to (64 hex characters), computed over the protobuf bytes of whole Transactions in block
 * order. A leaf is the sha256 of the bytes, an inner node is sha256(left‖right), and the last of an odd number of nodes moves up unchanged
 * (java-tron `MerkleTree`). Leaves and inner nodes are hashed in the same way, so callers with an untrusted tree must refuse a leaf of 64
 * bytes, which could be an inner node.
 */
export function txTrieRoot(transactions: readonly Uint8Array[], hash: Sha256Hex = sha256Hex): string {
  return rootOfLeaves(
    transactions.map((bytes) => hash(bytes)),
    hash,
  );
}

/** Like `txTrieRoot`, but computed from the transactions' hashes (64 hex characters each). */
export function rootOfLeaves(leaves: readonly string[], hash: Sha256Hex = sha256Hex): string {
  const [first] = leaves;
  if (first === undefined) return EMPTY_ROOT;
  // Each level overwrites the one below it from the left, so a tree needs only one array.
  const level = new Uint8Array(leaves.length * HASH_BYTES);
  for (const [index, leaf] of leaves.entries()) writeHex(leaf, level, index * HASH_BYTES);
  let root = first;
  let count = leaves.length;
  while (count > 1) {
    for (let index = 0; index + 1 < count; index += 2) {
      root = hash(level.subarray(index * HASH_BYTES, (index + 2) * HASH_BYTES));
      writeHex(root, level, (index / 2) * HASH_BYTES);
    }
    if (count % 2 === 1) level.copyWithin(((count - 1) / 2) * HASH_BYTES, (count - 1) * HASH_BYTES, count * HASH_BYTES);
    count = Math.ceil(count / 2);
  }
  return root;
}
