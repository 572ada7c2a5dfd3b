import { randomUUID } from 'node:crypto';
import { tryReceiptKey } from '../core/store/access/encrypt-receipt-key.ts';
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
  const { config, db, keyRing, clock, databaseClock, log, loops, liveness, metrics, now, certainNow } = context;
  const { networks, random, requestShare } = context;
  if (keyRing === null) throw new Error('the webhooks role needs a key ring');
  await retryUntilReady(log, () => refuseMissingKeys({ db, keyRing }, now()));
  const { localTargets, retentionDays } = config.webhooks;
  const dispatcher = startDispatcher({
    db,
    clock: databaseClock,
    signingClock: clock,
    log,
    metrics,
    random: Math.random,
    keyRing,
    certainNow,
    localTargets,
    requestShare,
    loops,
  });
  const retention = startRetention({ db, clock: { now: certainNow }, log, loops, days: retentionDays });
  const secretWatch = startSecretWatch({
    ...{ db, keyRing, log, loops, networks },
    tryReceiptKey: () => tryReceiptKey(db, keyRing),
  });
  const receiverWatch = startReceiverWatch({ db, now, log, loops });
  const holder = randomUUID();
  const notifier = startNotifier({
    ...{ db, now, log, loops, random, keyRing, network: networks[0] ?? null, holder },
    isStalled: () => liveness.isStalled('notifier'),
    installation: { name: config.publicUrl && new URL(config.publicUrl).host, consoleUrl: config.consoleUrl ?? null },
  });
  const rateKeeper = startRatePolling({ db, now, log, loops, localTargets, holder });
  return {
    stop: async () => {
      const parts = [dispatcher, retention, secretWatch, receiverWatch, notifier, rateKeeper];
      await Promise.all(parts.map((part) => part.stop()));
    },
  };
}
