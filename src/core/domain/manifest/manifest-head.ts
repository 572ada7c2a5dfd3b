import { type AddressTree, growAddressTree, rootOf, type Sha256 } from './address-tree.ts';
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
    root: rootOf(tree),
    serial,
    v,
  });
  return { text, digest: sha256(text), tree };
}
