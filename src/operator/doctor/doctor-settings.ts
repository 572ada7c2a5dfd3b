import type { Network } from '../../domain/network.ts';
import type { NodeSpec } from '../../domain/node.ts';
import type { ManifestSettings } from '../../payments/manifest/read-installed.ts';
import type { KeySettings } from '../../runtime/open-key-ring.ts';

/** A network as it is configured here. */
export type DoctorNetwork = { network: Network; nodes: readonly NodeSpec[]; agreement: number };

/** What the environment of the service says. */
export type DoctorSettings = KeySettings & {
  /** What is odd about the settings themselves. */
  warnings: readonly string[];
  networks: readonly DoctorNetwork[];
  /** Why the nodes are not known; `null`: they are. */
  networkProblem: string | null;
  /** Where the API of this machine listens; `null`: it is told nobody, or this process has none. */
  localUrl: string | null;
  publicUrl: string | null;
  databasePoolSize: number;
  trustProxy: readonly string[];
  rowMacs: 'off' | 'warn' | 'require';
  /** Where the service makes backups, and how often; `null`: it makes none. */
  backups: Readonly<{ directory: string; intervalMs: number }> | null;
  addressManifest: ManifestSettings | null;
};
