import type { EventType } from '../../domain/event.ts';
import type { UnixMs } from '../../domain/time.ts';
import { answerOf } from '../../store/db/rows-of.ts';
import { count } from '../../store/db/statement.ts';
import { WANTS_EVENT } from '../../store/outbox/adapter-orders.ts';
import { LEASE_MS } from '../../store/outbox/deliveries.ts';
import { DELIVERIES_CHANNEL } from '../../store/outbox/events.ts';

/** Commands and dispatchers may run on machines whose clocks differ by so much. */
const CLOCKS_DIFFER_MS = 60_000;

/**
 * Whether a pending delivery `d` waits for an attempt that is not soon, and is not under way: that one is shows in that its attempt
 * was counted and is not logged, until its lease has run out.
 */
export const isLate = (now: string) => `(
  d.next_attempt_at > ${now}::timestamptz + interval '${LEASE_MS} milliseconds'
  and (d.attempt_count = 0 or d.next_attempt_at > ${now}::timestamptz + interval '${LEASE_MS + CLOCKS_DIFFER_MS} milliseconds'
    or exists (select from delivery_attempts a
      where a.event_id = d.event_id and a.endpoint_id = d.endpoint_id and a.attempt = d.attempt_count)))`;

/** Makes what waits for its next attempt at an endpoint due now, in the order of the events behind `after`. Returns their ids. */
export const hastenDeliveries = answerOf(
  'delivery-hasten',
  { eventId: 'uuid' },
  `with late as (
     select event_id from deliveries d
     where d.endpoint_id = $1 and d.status = 'pending' and d.event_id > $3 and ${isLate('$2')}
     order by d.event_id limit $4::int8 for update),
   placed as (select event_id, row_number() over (order by event_id) as place from late)
   update deliveries d set next_attempt_at = least($2, now()), created_at = $2::timestamptz + placed.place * interval '1 microsecond'
   from placed where d.event_id = placed.event_id and d.endpoint_id = $1
   returning d.event_id`,
  (endpointId: string, now: UnixMs, page: { after: string; limit: number }) => [
    endpointId,
    new Date(now),
    page.after,
    page.limit,
  ],
  (rows) => rows.map((row) => row.eventId),
);

/** How many events from a position on were never planned for the endpoint, counted up to `limit`. */
export const countUnplanned = answerOf(
  'replay-count-missing',
  { count },
  `select count(*) as count from (
     select from events e join webhook_endpoints w on w.id = $2 and ${WANTS_EVENT}
     where e.project_id = $1 and e.position >= $3 and e.type = any($4::text[])
       and not exists (select from deliveries d where d.event_id = e.id and d.endpoint_id = $2)
     limit $5::int8) missing`,
  (endpoint: { id: string; projectId: string }, first: bigint, types: readonly EventType[], limit: number) => [
    endpoint.projectId,
    endpoint.id,
    first,
    types,
    limit,
  ],
  ([row]) => row?.count ?? 0,
);

// Positions have no gap and follow the time, so a time is found among them in as many steps as the count has bits. Transactions that
// were under way together are in the order of their commits, so the answer is right to the time that those take.
/** The position of the first event of a project at or after a time; of none, the position that the next event takes. */
export const findPositionAt = answerOf(
  'delivery-desk-position',
  { position: 'int8' },
  `with recursive search (low, high) as (
     select 1::int8, last_position + 1 from event_streams where project_id = $1
     union all
     select case when e.created_at < $2 then middle.position + 1 else low end,
       case when e.created_at < $2 then high else middle.position end
     from search cross join lateral (select (low + high) / 2 as position) middle
     join events e on e.project_id = $1 and e.position = middle.position
     where low < high)
   select low as position from search where low = high`,
  (projectId: string, time: UnixMs) => [projectId, new Date(time)],
  ([row]) => row?.position ?? 1n,
);

/** Tells the dispatchers to look for what is due. */
export const notifyDispatchers = answerOf(
  'delivery-notify',
  { notified: 'text?' },
  `select pg_notify('${DELIVERIES_CHANNEL}', '')::text as notified`,
  () => [],
  () => undefined,
);
