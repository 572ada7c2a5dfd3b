import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { Sql } from '../store/db/database.ts';
import { findOldestUndelivered } from '../store/outbox/deliveries.ts';

/** The query reads every undelivered row, and alarms on the gauge are in minutes. */
const REFRESH_MS = 5000;

/**
 * Keeps the age of the oldest undelivered event. `refresh` returns at once, so that neither a scrape nor the dispatcher waits for
 * the database; `ended` resolves when no query is going on.
 */
export function createUndeliveredGauge({
  db,
  clock,
  log,
  metrics,
}: {
  db: Sql;
  clock: Clock;
  log: Logger;
  metrics: Pick<Metrics, 'oldestUndeliveredSeconds'>;
}): { refresh(): void; ended(): Promise<void> } {
  let readAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | null = null;
  const read = async (now: number) => {
    const oldest = await findOldestUndelivered(db);
    metrics.oldestUndeliveredSeconds.set(oldest === null ? 0 : Math.max(0, now - oldest) / 1000);
  };
  return {
    refresh: () => {
      const now = clock.now();
      if (reading !== null || Math.abs(now - readAt) < REFRESH_MS) return;
      readAt = now;
      reading = read(now)
        .catch((error: unknown) => log.warn({ error }, 'the age of the oldest undelivered event is not known'))
        .finally(() => {
          reading = null;
        });
    },
    ended: async () => {
      await reading;
    },
  };
}
