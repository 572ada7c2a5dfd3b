import { lackOfSignatures, type PinnedKeys, signersOf } from '../../domain/manifest/manifest-signature.ts';
import type { ManifestFile } from './manifest-file.ts';

export type ManifestView = {
  serial: number;
  ledgerId: string;
  notAfter: string;
  digest: string;
  previous: string | null;
  projects: {
    network: string;
    projectId: string;
    policy: string;
    maxSurcharge: string;
    addresses: number;
    ranges: number;
  }[];
  /** Whoever signed it as it is, by their keys. */
  signers: string[];
  /** Why it does not count, in words; `null`: it does, or no keys are known. */
  problem: string | null;
};

/** What a manifest says, and who signed it. `pinned`: `null` where no keys are known. */
export function viewManifest({ manifest, signatures, head }: ManifestFile, pinned: PinnedKeys | null): ManifestView {
  const { serial, ledgerId, notAfter, previous, networks } = manifest;
  const projects = Object.entries(networks).flatMap(([network, entries]) =>
    Object.entries(entries ?? {}).map(([projectId, { policy, maxSurcharge, addresses, xpubs }]) => {
      const derived = xpubs.reduce((sum, { count }) => sum + count, 0);
      return { network, projectId, policy, maxSurcharge, addresses: addresses.length + derived, ranges: xpubs.length };
    }),
  );
  const signers = signersOf(head.text, signatures, [...new Set(signatures.map(({ key }) => key))]);
  const problem = pinned && lackOfSignatures(head.text, signatures, pinned);
  return { serial, ledgerId, notAfter, digest: head.digest, previous, projects, signers, problem };
}
