import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/**
 * Ids of events begin with their time, 48 bits of milliseconds (UUIDv7), so the primary key finds what is old. A delivery that was
 * replayed since has ended later than its event.
 */
const remove = statement(
  'deliveries-delete-finished',
  { last: 'text?', deleted: 'int8' },
  `with seen as materialized (
     select event_id, endpoint_id from deliveries
     where event_id > $1 and event_id < (lpad(to_hex($2::int8), 12, '0') || repeat('0', 20))::uuid
     order by event_id fetch first ($4::int8) rows with ties),
   old as materialized (
     select d.event_id, d.endpoint_id from seen cross join lateral (
       select d.event_id, d.endpoint_id from deliveries d
       where d.event_id = seen.event_id and d.endpoint_id = seen.endpoint_id and d.status <> 'pending' and d.finished_at < $3
       for update skip locked) d),
   attempts as (
     delete from delivery_attempts a using old where a.event_id = old.event_id and a.endpoint_id = old.endpoint_id),
   gone as (
     delete from deliveries d using old where d.event_id = old.event_id and d.endpoint_id = old.endpoint_id returning 1)
   select (select max(event_id::text) from seen) as last, (select count(*) from gone) as deleted`,
);

/**
 * Looks at the deliveries of about `limit` events behind the event id `after` (NIL_UUID: from the oldest), up to those of `before`, and deletes the ones that ended
 * before then, with their attempts. Returns how many, and the id of the last event that was looked at; `null` if there was none.
 */
export async function deleteFinishedDeliveries(
  db: Sql,
  { after, before, limit }: { after: string; before: UnixMs; limit: number },
): Promise<{ last: string | null; deleted: number }> {
  const [row] = await db.run(remove, [after, BigInt(before), new Date(before), limit]);
  return { last: row?.last ?? null, deleted: Number(row?.deleted ?? 0) };
}
