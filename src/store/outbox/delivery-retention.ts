import type { UnixMs } from '../../domain/time.ts';
import { answerOf } from '../db/rows-of.ts';
import { count } from '../db/statement.ts';

/**
 * Looks at the deliveries of about `limit` events behind the event id `after` (NIL_UUID: from the oldest), up to those of `before`, and deletes the ones that ended
 * before then, with their attempts. Returns how many, and the id of the last event that was looked at; `null` if there was none.
 */
export const deleteFinishedDeliveries = answerOf(
  'deliveries-delete-finished',
  { last: 'text?', deleted: count },
  'select last, deleted from forget_finished_deliveries($1, $2, $3)',
  ({ after, before, limit }: { after: string; before: UnixMs; limit: number }) => [after, new Date(before), limit],
  ([row]) => row ?? { last: null, deleted: 0 },
);
