import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes } from '@noble/hashes/utils.js';

/** `txTrieRoot` of a block without transactions. */
const EMPTY_ROOT = '00'.repeat(32);

/**
 * The root a block header commits to (64 hex characters), over the protobuf bytes of whole Transactions in block order.
 * A leaf is sha256 of the bytes, a node sha256(left‖right), and an odd last node moves up unchanged (java-tron `MerkleTree`).
 */
export function txTrieRoot(transactions: readonly Uint8Array[]): string {
  let level: Uint8Array[] = transactions.map((bytes) => sha256(bytes));
  while (level.length > 1) {
    const parents: Uint8Array[] = [];
    for (let index = 0; index < level.length; index += 2) {
      const [left, right] = [level[index], level[index + 1]];
      if (left !== undefined) parents.push(right === undefined ? left : sha256(concatBytes(left, right)));
    }
    level = parents;
  }
  return level[0] === undefined ? EMPTY_ROOT : bytesToHex(level[0]);
}
