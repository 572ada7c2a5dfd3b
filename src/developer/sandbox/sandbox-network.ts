import type { NetworkConfig } from '../../config/config.ts';
import { AppError } from '../../domain/errors.ts';
import { unlimitedNode } from '../../domain/node.ts';
import { parseAddress } from '../../tron/address.ts';
import { readSandboxFile, type SandboxFile } from './sandbox-file.ts';

/** How the sandbox asks its own network: as we advise others to, by gRPC. */
export function sandboxNetwork({
  grpcUrl,
  grpcSolidityUrl,
  usdtContract,
}: Pick<SandboxFile, 'grpcUrl' | 'grpcSolidityUrl' | 'usdtContract'>): NetworkConfig {
  const usdt = parseAddress(usdtContract);
  if (usdt.kind !== 'ok') throw new AppError('NOT_FOUND', `the sandbox has no USDT contract: ${usdt.reason}`);
  return {
    nodes: [unlimitedNode(grpcUrl, grpcUrl, { solidityUrl: grpcSolidityUrl })],
    usdt: usdt.account,
    agreement: 1,
  };
}

/** The network of the sandbox that runs on a data directory, and where its payers reach it. Error: `SANDBOX_NOT_RUNNING`. */
export async function readSandboxNetwork(dataDir: string): Promise<NetworkConfig & { publicUrl: string }> {
  const file = await readSandboxFile(dataDir);
  return { ...sandboxNetwork(file), publicUrl: file.baseUrl };
}
