import { hostname } from 'node:os';
import type { Network } from '../domain/network.ts';
import { startBackupSchedule } from '../operator/backup/backup-schedule.ts';
import type { Loop } from '../runtime/loop.ts';
import type { Context } from './context.ts';

/** Makes backups while this process follows the network; nothing where no directory is set for them. */
export function startBackups(context: Context, leading: { network: Network; isLeader(): boolean }): Loop[] {
  const { config, keyRing } = context;
  const schedule = config.backups ?? null;
  if (schedule === null || keyRing === null) return [];
  const needsOwnUser = config.networks.mainnet !== undefined;
  return [startBackupSchedule({ ...context, ...leading, keyRing, schedule, needsOwnUser, host: hostname() })];
}
