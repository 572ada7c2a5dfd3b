import { AppError } from '../../core/domain/errors.ts';
import { isLocalNetwork } from '../../core/domain/network.ts';
import { createLogger } from '../../core/runtime/log.ts';
import type { FollowDeps } from '../../faces/operator/backup/verify-backup.ts';
import type { Config } from '../../server/config/config.ts';
import { configuredNetworks, findNetworkConfig } from './select-network.ts';

/** Makes a scratch database follow the chain with the regular watcher and the nodes configured here. */
export function followScratch(config: Config): FollowDeps['follow'] {
  return async (network, connection) => {
    if (!configuredNetworks(config).includes(network)) return 'no node for this network is configured here';
    const found = await findNetworkConfig(config, network).catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'SANDBOX_NOT_RUNNING') return error.message;
      throw error;
    });
    if (typeof found === 'string') return found;
    const { publicUrl } = found;
    // Only a verification needs the service, which is large.
    const { startService } = await import('../../server/service.ts');
    return startService({
      // The rows aren't verified here, because the backup was authenticated, and its rows may need keys that this machine lacks.
      config: {
        ...{ ...config, roles: ['watcher'], metrics: null, rowMacs: 'off' },
        ...{ networks: { [network]: found }, publicUrl },
      },
      ...{ connection, keyRing: null, log: createLogger({ level: 'silent' }) },
      ...(isLocalNetwork(network) ? { blockMs: config.devnet.blockMs } : {}),
    });
  };
}
