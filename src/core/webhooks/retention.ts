import { NIL_UUID } from '../domain/ids.ts';
import { HOUR_MS, type UnixMs, unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { type Loop, type LoopHealth, startLoop } from '../runtime/loop.ts';
import type { Database } from '../store/db/database.ts';
import { answerOf } from '../store/db/rows-of.ts';
import { count } from '../store/db/statement.ts';

/** A statement that deletes this many takes about ten milliseconds. */
const BATCH = 1000;
/** With this limit, a million deliveries are deleted per hour. If there are more, the rest is deleted in later hours. */
const MAX_BATCHES = 1000;

/**
 * Every hour, deletes the deliveries that ended `days` days ago or earlier, with their attempt logs. Keeps pending deliveries, deliveries
 * that are waiting for a disabled endpoint, and all events.
 */
export function startRetention(options: {
  db: Database;
  clock: Clock;
  log: Logger;
  days: number;
  loops?: LoopHealth;
}): Loop {
  const { db, clock, log, days } = options;
  let after: string | null = null;
  return startLoop({
    name: 'retention of deliveries',
    log,
    health: options.loops,
    maxPauseMs: HOUR_MS,
    run: async (isStopping) => {
      const before = unixMs(Math.max(0, clock.now() - days * 24 * HOUR_MS));
      // If the previous hour's run didn't finish, this one resumes where that one stopped.
      after ??= NIL_UUID;
      let total = 0;
      for (let batch = 0; batch < MAX_BATCHES && after !== null && !isStopping(); batch += 1) {
        const { last, deleted } = await deleteFinishedDeliveries(db, { after, before, limit: BATCH });
        total += deleted;
        after = last;
      }
      if (total > 0) log.info({ deliveries: total, days }, 'old deliveries were deleted; their events are kept');
      return HOUR_MS;
    },
  });
}

/**
 * Scans the deliveries of about `limit` events after the event id `after` (NIL_UUID starts with the oldest), but only events before
 * `before`. Deletes deliveries that ended before then, with their attempts. Returns how many were deleted, and the id of the last event
 * scanned, or `null` if there was none.
 */
export const deleteFinishedDeliveries = answerOf(
  'deliveries-delete-finished',
  { last: 'text?', deleted: count },
  'select last, deleted from forget_finished_deliveries($1, $2, $3)',
  ({ after, before, limit }: { after: string; before: UnixMs; limit: number }) => [after, new Date(before), limit],
  ([row]) => row ?? { last: null, deleted: 0 },
);
