import { formatNetworks, type Manifest, vouchedAddresses } from './manifest.ts';

/** `text` is the signed text. `digest` is its SHA-256, which becomes the `previous` of the next manifest. */
export type ManifestHead = { text: string; digest: string; tree: AddressTree };

/**
 * Returns a manifest's head. The head represents the whole manifest in a few lines, so that the head's signature and a short path are
 * enough to prove a single address. The head contains the digest of all entries, and the root of the tree over the addresses. Example:
 * `{"ledgerId":"…","leaves":2,"networks":"…","notAfter":"…","previous":null,"root":"…","serial":1,"v":1}`
 */
export function headOf(manifest: Manifest, sha256: Sha256): ManifestHead {
  const { ledgerId, networks, notAfter, previous, serial, v } = manifest;
  const tree = growAddressTree(vouchedAddresses(networks), sha256);
  const text = JSON.stringify({
    ledgerId,
    leaves: tree.levels[0]?.length ?? 0,
    networks: sha256(formatNetworks(networks)),
    notAfter,
    previous,
    root: tree.levels.at(-1)?.[0] ?? null,
    serial,
    v,
  });
  return { text, digest: sha256(text), tree };
}

/**
 * Returns the SHA-256 of a UTF-8 text in hexadecimal. Callers pass a native implementation if they have one, because a tree of 10,000
 * addresses needs 20,000 hashes.
 */
export type Sha256 = (text: string) => string;

/** Hashes in hexadecimal. `levels[0]` contains the leaves; the last level contains only the root. */
type AddressTree = { levels: readonly (readonly string[])[] };

/**
 * Builds the Merkle tree of the addresses. If a level has an odd number of nodes, the last one moves up unchanged. Leaves and inner nodes
 * have different prefixes, so that one can't pass for the other.
 */
function growAddressTree(addresses: ReturnType<typeof vouchedAddresses>, sha256: Sha256): AddressTree {
  let level: string[] = [];
  for (const { network, projectId, address } of addresses)
    level.push(sha256(`address ${network} ${projectId} ${address}`));
  const levels = [level];
  while (level.length > 1) {
    const above: string[] = [];
    for (let index = 0; index < level.length; index += 2) {
      const [left = '', right] = [level[index], level[index + 1]];
      above.push(right === undefined ? left : sha256(`node ${left} ${right}`));
    }
    levels.push(above);
    level = above;
  }
  return { levels };
}

/**
 * Returns the path from a leaf to the root. Each step is the sibling's side (`L` or `R`), followed by its hash in 64 hexadecimal
 * characters. A node that moves up unchanged doesn't add a step.
 */
export function pathOf({ levels }: AddressTree, leaf: number): string[] {
  const path: string[] = [];
  let index = leaf;
  for (const level of levels) {
    const neighbour = level[index ^ 1];
    if (neighbour !== undefined) path.push(`${index % 2 === 0 ? 'R' : 'L'}${neighbour}`);
    index >>= 1;
  }
  return path;
}
