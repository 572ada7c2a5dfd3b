import { randomBytes } from 'node:crypto';
import { unixMs } from '../../src/core/domain/time.ts';
import type { ExternalCheckpoint } from '../../src/core/payments/external-checkpoint.ts';
import { startInventoryWatch } from '../../src/core/payments/inventory/watch-inventory.ts';
import { createSealNotifier } from '../../src/core/payments/row-alarm.ts';
import type { KeyRing } from '../../src/core/runtime/key-ring.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics, type Metrics } from '../../src/core/runtime/metrics.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { createSeals } from '../../src/core/store/db/seals.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { eventually } from '../support/service.ts';

export type FastWatch = { metrics: Metrics; lookAgain(): Promise<void>; stop(): Promise<void> };

type FastWatchOptions = {
  isLeader?: () => boolean;
  mark?: ExternalCheckpoint | null;
  stallTickMs?: number;
  keyRing?: KeyRing;
};

/**
 * Runs the inventory's watch like the leader, but continuously and `aheadMs` in the future: with ten minutes, no row is too young to be
 * listed.
 */
export function startFastWatch(
  service: { connectionString: string },
  aheadMs = () => 600_000,
  { isLeader = () => true, mark = null, stallTickMs = 10_000, keyRing = TEST_KEY_RING }: FastWatchOptions = {},
): FastWatch {
  let looks = 0;
  const log = createLogger({ level: 'silent' });
  const network = 'devnet';
  const metrics = createMetrics();
  const seals = createSeals({ mode: 'require', onProblem: (...met) => notify(...met) }, async () => keyRing);
  const db = openDatabase({
    ...{ connection: service.connectionString, poolSize: 2, applicationName: 'watch', onError: () => undefined, seals },
  });
  const now = () => unixMs(Date.now() + aheadMs());
  const notify = createSealNotifier({ db: () => db, log, now, networks: [network] });
  // Each check begins with this call; later calls say whether a key may be created.
  const sealer = (mayCreate?: boolean) => {
    if (mayCreate === undefined) looks += 1;
    return db.sealer(mayCreate);
  };
  const watch = startInventoryWatch({
    ...{
      db: { ...db, sealer },
      network,
      isLeader,
      mark,
      pauseMs: 20,
      stallTickMs,
      random: randomBytes,
      now,
      log,
      metrics,
    },
  });
  return {
    metrics,
    lookAgain: async () => {
      const before = looks;
      await eventually(
        async () => looks,
        (times) => times >= before + 2,
      );
    },
    stop: async () => {
      await watch.stop();
      await db.close();
    },
  };
}
