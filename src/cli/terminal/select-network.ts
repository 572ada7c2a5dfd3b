import type { Config, NetworkConfig } from '../../config/config.ts';
import { readSandboxNetwork } from '../../developer/sandbox/sandbox-network.ts';
import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';

/** The networks whose nodes are asked here; in the sandbox it is the one that it makes. */
export function configuredNetworks({ sandbox, networks }: Pick<Config, 'sandbox' | 'networks'>): Network[] {
  return sandbox ? ['devnet'] : (Object.keys(networks) as Network[]);
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
  if (configured !== undefined) return { ...configured, publicUrl: config.publicUrl ?? localUrl(config) };
  const sandbox = await readSandboxNetwork(config.dataDir);
  return { ...sandbox, publicUrl: config.publicUrl ?? sandbox.publicUrl };
}

/** Where payers reach the service, and would if the sandbox ran. */
export async function publicUrlOf(config: Config): Promise<string> {
  const { publicUrl, sandbox, dataDir } = config;
  if (publicUrl !== null || !sandbox) return publicUrl ?? localUrl(config);
  return readSandboxNetwork(dataDir).then(
    (running) => running.publicUrl,
    (error: unknown) => {
      if (error instanceof AppError && error.code === 'SANDBOX_NOT_RUNNING') return localUrl(config);
      throw error;
    },
  );
}

function localUrl({ host, port }: Config): string {
  return `http://${host}:${port}`;
}
