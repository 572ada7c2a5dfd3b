import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

const remove = statement(
  'deliveries-delete-finished',
  { last: 'text?', deleted: 'int8' },
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
  const [row] = await db.run(remove, [after, new Date(before), limit]);
  return { last: row?.last ?? null, deleted: Number(row?.deleted ?? 0) };
}
