import { tryReceiptKey } from '../store/access/encrypt-receipt-key.ts';
import { startDispatcher } from '../webhooks/dispatcher.ts';
import { refuseMissingKeys } from '../webhooks/refuse-missing-keys.ts';
import { startRetention } from '../webhooks/retention.ts';
import { startSecretWatch } from '../webhooks/watch-secrets.ts';
import type { Context } from './context.ts';
import { patiently } from './patiently.ts';

/** The role `webhooks`: sends due deliveries, deletes old ones, and watches the keys that secrets are encrypted with. */
export async function startWebhooks(context: Context): Promise<{ stop(): Promise<void> }> {
  const { config, db, keyRing, clock, log, metrics, now, certainNow, networks, requestShare } = context;
  if (keyRing === null) throw new Error('the role webhooks needs a key ring');
  await patiently(log, () => refuseMissingKeys({ db, keyRing }, now()));
  const { localTargets, retentionDays } = config.webhooks;
  const dispatcher = startDispatcher({
    ...{ db, clock, log, metrics, random: Math.random, keyRing, certainNow, localTargets, requestShare },
  });
  const retention = startRetention({ db, clock: { now: certainNow }, log, days: retentionDays });
  const secretWatch = startSecretWatch({
    ...{ db, keyRing, log, networks },
    tryReceiptKey: () => tryReceiptKey(db, keyRing),
  });
  return {
    stop: async () => {
      await Promise.all([dispatcher.stop(), retention.stop(), secretWatch.stop()]);
    },
  };
}
