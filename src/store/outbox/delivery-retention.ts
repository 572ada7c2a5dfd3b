import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { count, statement } from '../db/statement.ts';

const remove = statement(
  'deliveries-delete-finished',
  { last: 'text?', deleted: count },
  'select last, deleted from forget_finished_deliveries($1, $2, $3)',
);

/**
 * Looks at the deliveries of about `limit` events behind the event id `after` (NIL_UUID: from the oldest), up to those of `before`, and deletes the ones that ended
 * before then, with their attempts. Returns how many, and the id of the last event that was looked at; `null` if there was none.
 */
export async function deleteFinishedDeliveries(
  db: Sql,
  { after, before, limit }: { after: string; before: UnixMs; limit: number },
): Promise<{ last: string | null; deleted: number }> {
  return (await db.run(remove, [after, new Date(before), limit]))[0] ?? { last: null, deleted: 0 };
}
