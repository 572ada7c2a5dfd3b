import { AppError } from '../../core/domain/errors.ts';
import type { Network } from '../../core/domain/network.ts';
import { readSandboxNetwork } from '../../developer/sandbox/sandbox-file.ts';
import type { Config, NetworkConfig } from '../../server/config/config.ts';

/** Returns the networks with nodes configured here; in a sandbox, the network that the sandbox creates. */
export function configuredNetworks({ sandbox, networks }: Pick<Config, 'sandbox' | 'networks'>): Network[] {
  return sandbox ? ['devnet'] : (Object.keys(networks) as Network[]);
}

/**
 * Returns a network's nodes and contract, and the service's public URL: as configured, or those of the running sandbox. Throws
 * `SANDBOX_NOT_RUNNING`.
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

/** Returns the service's public URL, or the one that a sandbox would have if it ran. */
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
