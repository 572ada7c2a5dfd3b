import type { Config, NetworkConfig } from '../config.ts';
import { isNetwork, type Network } from '../domain/network.ts';
import { parseAddress } from '../tron/address.ts';
import { CliError } from './cli-error.ts';
import { clip } from './clip.ts';
import { readSandboxFile } from './sandbox/sandbox-file.ts';
import { sandboxNode } from './sandbox/sandbox-node.ts';

/** The network of that name, if it is configured here; without a name, the only one there is. In the sandbox it is `devnet`. */
export function selectNetwork(config: Config, name: string | undefined): Network {
  const configured: Network[] = config.sandbox ? ['devnet'] : (Object.keys(config.networks) as Network[]);
  const [only] = configured;
  if (name === undefined) {
    if (only !== undefined && configured.length === 1) return only;
    throw new CliError(
      'INVALID_ARGUMENT',
      `there are several networks: say which with --network, ${configured.join(' or ')}`,
    );
  }
  if (isNetwork(name) && configured.includes(name)) return name;
  const problem = isNetwork(name) ? 'is not configured here' : 'is no network';
  throw new CliError('INVALID_ARGUMENT', `--network ${clip(name)} ${problem}; configured: ${configured.join(', ')}`);
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
  const { baseUrl, usdtContract, ...urls } = await readSandboxFile(config.dataDir);
  const usdt = parseAddress(usdtContract);
  if (usdt.kind !== 'ok') throw new CliError('NOT_FOUND', `the sandbox has no USDT contract: ${usdt.reason}`);
  return { nodes: [sandboxNode(urls)], usdt: usdt.account, agreement: 1, publicUrl: config.publicUrl ?? baseUrl };
}
