import { randomUUID } from 'node:crypto';
import { startNotifier } from '../notify/notifier.ts';
import { tryReceiptKey } from '../store/access/encrypt-receipt-key.ts';
import { startDispatcher } from '../webhooks/dispatcher.ts';
import { startRateKeeper } from '../webhooks/keep-rates.ts';
import { refuseMissingKeys } from '../webhooks/refuse-missing-keys.ts';
import { startRetention } from '../webhooks/retention.ts';
import { startReceiverWatch } from '../webhooks/watch-receivers.ts';
import { startSecretWatch } from '../webhooks/watch-secrets.ts';
import type { Context } from './context.ts';
import { patiently } from './patiently.ts';

/** The role `webhooks`: sends due deliveries, deletes old ones, reads rates, watches receivers and the keys that secrets are encrypted with, and tells operators. */
export async function startWebhooks(context: Context): Promise<{ stop(): Promise<void> }> {
  const { config, db, keyRing, clock, databaseClock, log, loops, liveness, metrics, now, certainNow } = context;
  const { networks, random, requestShare } = context;
  if (keyRing === null) throw new Error('the role webhooks needs a key ring');
  await patiently(log, () => refuseMissingKeys({ db, keyRing }, now()));
  const { localTargets, retentionDays } = config.webhooks;
  const dispatcher = startDispatcher({
    ...{
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
    },
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
  const rateKeeper = startRateKeeper({ db, now, log, loops, localTargets, holder });
  return {
    stop: async () => {
      const parts = [dispatcher, retention, secretWatch, receiverWatch, notifier, rateKeeper];
      await Promise.all(parts.map((part) => part.stop()));
    },
  };
}
