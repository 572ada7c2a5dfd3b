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
  /** Where this machine says why it is not ready; `null`: nowhere, or at any free port. */
  metricsUrl: string | null;
  publicUrl: string | null;
  databasePoolSize: number;
  trustProxy: readonly string[];
  rowMacs: 'ledger' | 'off' | 'warn' | 'require';
  /** Where the service makes backups, and how often; `null`: it makes none. */
  backups: Readonly<{ directory: string; intervalMs: number }> | null;
  addressManifest: ManifestSettings | null;
};

/** What the environment of a process says, but for its networks. `host` and `port`: where its API is to listen. */
export type ConfiguredProcess = Omit<DoctorSettings, 'networks' | 'networkProblem' | 'localUrl' | 'metricsUrl'> & {
  metrics: { host: string; port: number } | null;
  host: string;
  port: number;
  roles: readonly string[];
};

/** `sandboxUrl`: where the API of a sandbox is, which nobody configured. */
type FoundNetworks = { networks: readonly DoctorNetwork[]; problem: string | null; sandboxUrl: string | null };

export function doctorSettings(
  config: ConfiguredProcess,
  { networks, problem, sandboxUrl }: FoundNetworks,
): DoctorSettings {
  const { metrics, publicUrl, roles } = config;
  const own = roles.includes('api') ? urlOf(config) : null;
  return {
    ...{ ...config, networks, networkProblem: problem },
    ...{ localUrl: sandboxUrl ?? own, publicUrl: publicUrl ?? sandboxUrl },
    metricsUrl: metrics === null ? null : urlOf(metrics),
  };
}

/** Where this machine asks what listens there. */
function urlOf({ host, port }: { host: string; port: number }): string | null {
  const name = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return port === 0 ? null : `http://${name}:${port}`;
}
