import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { startWatcher } from '../core/chain/follow/watcher.ts';
import { startReconciler, startStateWatch } from '../core/chain/reconcile.ts';
import { createKnownTerms } from '../core/chain/verify/fee-terms.ts';
import { SLOT_MS } from '../core/chain/verify/read-block.ts';
import type { AlarmKind } from '../core/domain/alarm-kinds.ts';
import { isLocalNetwork, type Network } from '../core/domain/network.ts';
import { startAddressChangeWatch } from '../core/payments/apply-address-change.ts';
import { startClaims } from '../core/payments/claims.ts';
import { startEmitting } from '../core/payments/emit-unmatched-events.ts';
import { createHeldBack } from '../core/payments/expire-invoices.ts';
import { type ExternalCheckpoint, openExternalCheckpoint } from '../core/payments/external-checkpoint.ts';
import { startInventoryWatch } from '../core/payments/inventory/watch-inventory.ts';
import { startCapacityWatch } from '../core/payments/measure-capacity.ts';
import { startSettling } from '../core/payments/settle-set-aside.ts';
import { startOrderFloodWatch } from '../core/payments/unpaid-gate.ts';
import { startLogWatch } from '../core/payments/watch-audit-log.ts';
import { startGuaranteeWatch } from '../core/payments/watch-guarantees.ts';
import { type Leading, loopWhileLeading, whileLeading } from '../core/payments/watching.ts';
import type { Loop } from '../core/runtime/loop.ts';
import { settleAlarms } from '../core/store/chain/alarms.ts';
import type { Context } from './context.ts';

/**
 * Starts the role `watcher`. For each network it runs a watcher, and compares the books with the chain, the schema with the release, and
 * the rows with their inventory. It also verifies the audit log, runs scheduled work, and makes backups.
 */
export async function startWatchers(context: Context): Promise<{ stop(): Promise<void> }[]> {
  const { dataDir } = context.config;
  const headMark = await openExternalCheckpoint(dataDir, 'audit-head.json');
  const marks = new Map<Network, ExternalCheckpoint | null>();
  for (const { network } of context.pools)
    marks.set(network, await openExternalCheckpoint(dataDir, `inventory-head-${network}.json`));
  const startBackups = await loadBackups(context);
  const { addressManifest } = context.config;
  return context.pools.map((followed, index) => {
    const { network, usdt } = followed;
    const held = createHeldBack();
    const watcher = startWatcher({
      ...{ ...context, ...followed, held },
      fees: createKnownTerms(),
      slotMs: isLocalNetwork(network) ? null : SLOT_MS,
      publicUrl: context.publicUrl(),
      holder: randomUUID(),
    });
    const leading = { ...context, network, isLeader: watcher.isLeader };
    const parts = [
      watcher,
      startReconciler({ ...leading, ...followed }),
      startStateWatch({ ...leading, ...followed }),
      startEmitting(leading),
      startClaims(leading),
      startSettling({ ...leading, held, publicUrl: context.publicUrl() }),
      startCapacityWatch(leading),
      startOrderFloodWatch(leading),
      startGuaranteeWatch(leading),
      startAddressChangeWatch({ ...leading, usdt }),
      startInventoryWatch({ ...leading, mark: marks.get(network) ?? null }),
      startLogWatch({ ...leading, headMark }),
      // Backups are made by the process that follows the first network, so only one process makes them at a time.
      ...(startBackups !== null && index === 0
        ? [startBackups(leading)]
        : [endAlarmsOf(leading, 'backups', ['backup-failed', 'backup-old'])]),
      ...(addressManifest == null ? [endAlarmsOf(leading, 'address manifest', ['address-not-vouched'])] : []),
    ];
    // They are stopped in parallel, because the watcher aborts requests to hanging nodes.
    return { stop: async () => void (await Promise.all(parts.map((part) => part.stop()))) };
  });
}

/**
 * When this process starts to follow the network, ends the alarms of a feature that the network doesn't use, because nothing else would end
 * them. Does so only once, because another process may use the feature and raise them again.
 */
function endAlarmsOf({ db, ...leading }: Leading, feature: string, kinds: readonly AlarmKind[]): Loop {
  const { network, log, isLeader } = leading;
  const telling = { db: whileLeading(db, network, isLeader), log };
  let isDone = false;
  const onFollower = () => {
    isDone = false;
  };
  return loopWhileLeading(leading, { name: `end of alarms about the ${feature}`, onFollower }, async () => {
    if (isDone) return;
    for (const kind of kinds) await settleAlarms(telling, kind, [], { networks: [network] });
    isDone = true;
  });
}

/** Returns a function that starts making backups while this process follows a network, or `null` if no backup directory is configured. */
async function loadBackups(context: Context): Promise<((leading: Leading) => Loop) | null> {
  const { config, keyRing } = context;
  const schedule = config.backups ?? null;
  if (schedule === null || keyRing === null) return null;
  const { startBackupSchedule } = await import('../faces/operator/backup/backup-schedule.ts');
  const needsOwnUser = config.networks.mainnet !== undefined;
  return (leading) =>
    startBackupSchedule({ ...context, ...leading, keyRing, schedule, needsOwnUser, host: hostname() });
}
