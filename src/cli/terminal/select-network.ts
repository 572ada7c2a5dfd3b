import type { Config, NetworkConfig } from '../../config/config.ts';
import { readSandboxNetwork } from '../../developer/sandbox/sandbox-network.ts';
import { AppError } from '../../domain/errors.ts';
import { isNetwork, type Network } from '../../domain/network.ts';
import { clip } from '../../operator/input/clip.ts';

/** The networks whose nodes are asked here; in the sandbox it is the one that it makes. */
export function configuredNetworks({ sandbox, networks }: Pick<Config, 'sandbox' | 'networks'>): Network[] {
  return sandbox ? ['devnet'] : (Object.keys(networks) as Network[]);
}

/** The network of that name, if it is configured here; without a name, the only one there is. */
export function selectNetwork(config: Config, name: string | undefined): Network {
  const configured = configuredNetworks(config);
  const [only] = configured;
  if (name === undefined) {
    if (only !== undefined && configured.length === 1) return only;
    throw new AppError(
      'INVALID_ARGUMENT',
      `there are several networks: say which with --network, ${configured.join(' or ')}`,
    );
  }
  if (isNetwork(name) && configured.includes(name)) return name;
  const problem = isNetwork(name) ? 'is not configured here' : 'is no network';
  throw new AppError('INVALID_ARGUMENT', `--network ${clip(name)} ${problem}; configured: ${configured.join(', ')}`);
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
