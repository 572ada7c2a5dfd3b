import { parseAddress } from '@quittance/tron/address';
import { AppError } from '../../core/domain/errors.ts';
import { unlimitedNode } from '../../core/domain/node.ts';
import type { NetworkConfig } from '../../server/config/config.ts';
import { readSandboxFile, type SandboxFile } from './sandbox-file.ts';

/** Returns the sandbox's own network. It's reached over gRPC, which we also recommend for other networks. */
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

/** Returns the network of a data directory's sandbox, and the sandbox's public URL. Throws `SANDBOX_NOT_RUNNING`. */
export async function readSandboxNetwork(dataDir: string): Promise<NetworkConfig & { publicUrl: string }> {
  const file = await readSandboxFile(dataDir);
  return { ...sandboxNetwork(file), publicUrl: file.baseUrl };
}
