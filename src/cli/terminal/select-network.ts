import type { Config, NetworkConfig } from '../../config/config.ts';
import { readSandboxNetwork } from '../../developer/sandbox/sandbox-network.ts';
import type { Network } from '../../domain/network.ts';
import { selectNetwork as select } from '../../operator/chain/select-network.ts';

/** The networks whose nodes are asked here; in the sandbox it is the one that it makes. */
export function configuredNetworks({ sandbox, networks }: Pick<Config, 'sandbox' | 'networks'>): Network[] {
  return sandbox ? ['devnet'] : (Object.keys(networks) as Network[]);
}

/** The network of that name, if it is configured here; without a name, the only one there is. */
export function selectNetwork(config: Config, name: string | undefined): Network {
  return select(configuredNetworks(config), name);
}

/**
 * The nodes and the contract of a network, and where payers reach the service: as configured, or those of the sandbox that
 * runs here. Error: `SANDBOX_NOT_RUNNING`.
 */
export async function findNetworkConfig(
  config: Config,
  network: Network,
): Promise<NetworkConfig & { publicUrl: string }> {
  const configured = config.networks[network];
  const publicUrl = config.publicUrl ?? `http://${config.host}:${config.port}`;
  if (configured !== undefined) return { ...configured, publicUrl };
  const sandbox = await readSandboxNetwork(config.dataDir);
  return { ...sandbox, publicUrl: config.publicUrl ?? sandbox.publicUrl };
}
