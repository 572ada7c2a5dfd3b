import { type UnixMs, unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { createSeldom, createTally } from '../runtime/seldom.ts';
import type { Database } from '../store/db/database.ts';
import { type LeasedDelivery, returnDeliveries } from '../store/outbox/deliveries.ts';
import type { AttemptOutcome } from '../store/outbox/delivery-outcomes.ts';
import type { Hastener } from './hasten.ts';
import { namesOf, recordAttempts } from './record-attempts.ts';

/** Outcomes of attempts, and leases to give back, until they are written. The number of leases at once bounds them. */
export type OutcomeQueue = {
  add(outcome: AttemptOutcome): void;
  /** Gives leases back uncounted, to be attempted after `delayMs`. */
  giveBack(deliveries: readonly LeasedDelivery[], delayMs?: number): void;
  /** Writes the whole queue. Throws if that is not possible now; nothing is lost, and the caller must call `flush` again. */
  flush(): Promise<void>;
  size(): number;
};

/** The size of a statement; with more, the answers alone would be megabytes. */
const BATCH = 256;
/** With the pauses of the dispatcher that is half a minute. By then one outcome is at fault and not the database. */
const MAX_TRIES = 10;

export function createOutcomeQueue(options: {
  db: Database;
  clock: Clock;
  certainNow?(): UnixMs;
  log: Logger;
  metrics: Pick<Metrics, 'deliveryAttempts'>;
  hastener: Hastener;
}): OutcomeQueue {
  const { db, clock, log } = options;
  const once = () => performance.now();
  const deps = { ...options, pages: createSeldom(once), outages: createTally(once) };
  const now = (): UnixMs => unixMs(clock.now());
  let outcomes: AttemptOutcome[] = [];
  let returns: { delivery: LeasedDelivery; delayMs: number }[] = [];
  const tries = new WeakMap<AttemptOutcome, number>();

  /** Records each outcome alone, so that one that cannot be recorded does not hold up the others. */
  const recordSingly = async (batch: readonly AttemptOutcome[]): Promise<void> => {
    let failure: unknown = null;
    for (const outcome of batch) {
      try {
        await recordAttempts(deps, [outcome], now());
        outcomes = outcomes.filter((other) => other !== outcome);
      } catch (error) {
        failure = error;
        if (isRetryable(error)) break;
        const count = (tries.get(outcome) ?? 0) + 1;
        tries.set(outcome, count);
        if (count < MAX_TRIES) continue;
        outcomes = outcomes.filter((other) => other !== outcome);
        const fields = { error, ...namesOf(outcome.delivery), outcome: outcome.kind };
        log.error(fields, 'a webhook attempt cannot be recorded; it is made again');
      }
    }
    if (failure !== null) throw failure;
  };
  const recordBatch = async (): Promise<void> => {
    const batch = outcomes.slice(0, BATCH);
    try {
      await recordAttempts(deps, batch, now());
      outcomes = outcomes.slice(batch.length);
    } catch (error) {
      if (isRetryable(error)) throw error;
      await recordSingly(batch);
    }
  };
  const returnBatch = async (): Promise<void> => {
    const delayMs = returns[0]?.delayMs;
    const batch = returns.filter((one) => one.delayMs === delayMs);
    const dueAt = unixMs(clock.now() + (delayMs ?? 0));
    await returnDeliveries(
      db,
      batch.map(({ delivery }) => delivery),
      dueAt,
    );
    returns = returns.filter((one) => !batch.includes(one));
  };
  return {
    add: (outcome) => {
      outcomes.push(outcome);
    },
    giveBack: (deliveries, delayMs = 0) => {
      returns.push(...deliveries.map((delivery) => ({ delivery, delayMs })));
    },
    flush: async () => {
      // Outcomes that are added meanwhile wait for the next flush, so that this one ends.
      for (let left = outcomes.length; left > 0; left -= BATCH) await recordBatch();
      while (returns.length > 0) await returnBatch();
    },
    size: () => outcomes.length + returns.length,
  };
}

/** The database is away, or could not do it just now. */
function isRetryable(error: unknown): boolean {
  return error instanceof Error && 'retryable' in error && error.retryable === true;
}
