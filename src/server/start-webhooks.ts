import { randomUUID } from 'node:crypto';
import { tryReceiptKey } from '../core/store/access/receipt-keys.ts';
import { startDispatcher } from '../core/webhooks/dispatcher.ts';
import { startRatePolling } from '../core/webhooks/poll-rates.ts';
import { startRetention } from '../core/webhooks/retention.ts';
import { refuseMissingKeys, startReceiverWatch, startSecretWatch } from '../core/webhooks/watch-endpoints.ts';
import { startNotifier } from '../faces/notify/notifier.ts';
import type { Context } from './context.ts';
import { retryUntilReady } from './retry-until-ready.ts';

/**
 * Starts the role `webhooks`. It sends due deliveries, deletes old ones, reads rates, watches receivers and encryption keys, and notifies
 * operators.
 */
export async function startWebhooks(context: Context): Promise<{ stop(): Promise<void> }> {
  const { config, db, keyRing, clock, databaseClock, log, liveness, now, certainNow, networks } = context;
  if (keyRing === null) throw new Error('the webhooks role needs a key ring');
  await retryUntilReady(log, () => refuseMissingKeys({ db, keyRing }, now()));
  const { publicUrl, consoleUrl = null, webhooks } = config;
  const deps = { ...context, keyRing, localTargets: webhooks.localTargets, holder: randomUUID() };
  const parts = [
    startDispatcher({ ...deps, clock: databaseClock, signingClock: clock, random: Math.random }),
    startRetention({ ...deps, clock: { now: certainNow }, days: webhooks.retentionDays }),
    startSecretWatch({ ...deps, tryReceiptKey: () => tryReceiptKey(db, keyRing) }),
    startReceiverWatch(deps),
    startNotifier({
      ...{ ...deps, network: networks[0] ?? null, isStalled: () => liveness.isStalled('notifier') },
      installation: { name: publicUrl && new URL(publicUrl).host, consoleUrl },
    }),
    startRatePolling(deps),
  ];
  return { stop: async () => void (await Promise.all(parts.map((part) => part.stop()))) };
}
