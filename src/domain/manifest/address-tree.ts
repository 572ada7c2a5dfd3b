import type { Network } from '../network.ts';

/** SHA-256. Who has a native one passes it: a tree of 10,000 addresses takes 20,000 of them. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array;

export type VouchedAddress = { network: Network; projectId: string; address: string };

/** `levels[0]` are the leaves; the last level is the root alone. */
export type AddressTree = { levels: readonly (readonly Uint8Array[])[] };

/** Leaves and nodes are hashed apart, so that no node can be taken for a leaf (RFC 6962). */
const [LEAF, NODE] = [0, 1];

/** The Merkle tree over addresses: an odd last node moves up unchanged. */
export function growAddressTree(addresses: Iterable<VouchedAddress>, sha256: Sha256): AddressTree {
  let level = Array.from(addresses, (address) => leafOf(address, sha256));
  const levels = [level];
  while (level.length > 1) {
    const above: Uint8Array[] = [];
    for (let index = 0; index < level.length; index += 2) {
      const [left, right] = [level[index] as Uint8Array, level[index + 1]];
      above.push(right === undefined ? left : nodeOf(left, right, sha256));
    }
    levels.push(above);
    level = above;
  }
  return { levels };
}

/** `null`: there are no addresses. */
export function rootOf({ levels }: AddressTree): Uint8Array | null {
  return levels.at(-1)?.[0] ?? null;
}

/**
 * The way from a leaf to the root: at each step the neighbour and its side, as `L` or `R` and 64 hexadecimal characters. A node that moves
 * up unchanged makes no step.
 */
export function pathOf({ levels }: AddressTree, leaf: number): string[] {
  const path: string[] = [];
  let index = leaf;
  for (const level of levels) {
    const neighbour = level[index ^ 1];
    if (neighbour !== undefined) path.push(`${index % 2 === 0 ? 'R' : 'L'}${hexOf(neighbour)}`);
    index >>= 1;
  }
  return path;
}

function leafOf({ network, projectId, address }: VouchedAddress, sha256: Sha256): Uint8Array {
  const text = `${network} ${projectId} ${address}`;
  const bytes = new Uint8Array(text.length + 1);
  bytes[0] = LEAF as number;
  for (let index = 0; index < text.length; index += 1) bytes[index + 1] = text.charCodeAt(index);
  return sha256(bytes);
}

function nodeOf(left: Uint8Array, right: Uint8Array, sha256: Sha256): Uint8Array {
  const bytes = new Uint8Array(65);
  bytes[0] = NODE as number;
  bytes.set(left, 1);
  bytes.set(right, 33);
  return sha256(bytes);
}

export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
