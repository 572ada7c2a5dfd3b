import { ASKED_SECONDS, MAX_ATTEMPTS, OUTAGE } from '../../domain/retry.ts';
import type { UnixMs } from '../../domain/time.ts';
import { rowsOf } from '../db/rows-of.ts';
import { isPaused } from './endpoint-health.ts';

/**
 * Maximum number of attempts per delivery. Beyond this number, attempts are made only on schedule, so that the attempt log doesn't grow
 * without limit.
 */
const MOST_ATTEMPTS = 240;
/** For each endpoint, this many deliveries are considered, soonest first. After a short outage, no more than this many are waiting. */
const MOST_SEEN = 5000;
/** An adapter gets only the payments of an order, which are one or two. */
const MOST_PER_ORDER = 100;

/**
 * The SQL that says whether a waiting delivery may be expedited. A delivery in progress (counted but not logged) isn't waiting. A delivery
 * that failed before its endpoint last recovered was refused because of its own contents; otherwise it would have arrived at that time. A
 * replay starts such a delivery from scratch. A pause that the receiver asked for (`Retry-After`) must be over.
 */
export const mayBeExpedited = (d: string, now: string, returnedAt = "'-infinity'") => `(${d}.attempt_count = 0 or (
  ${d}.max_attempts < ${MOST_ATTEMPTS} and exists (
    select from delivery_attempts a
    where a.event_id = ${d}.event_id and a.endpoint_id = ${d}.endpoint_id and a.attempt = ${d}.attempt_count
      and coalesce(a.attempted_at + interval '1 millisecond' * coalesce(a.latency_ms, 0)
        + interval '1 second' * substring(${d}.last_error from '${ASKED_SECONDS}')::int4, '-infinity') <= ${now}) and not exists (
    select from delivery_attempts a
    where a.event_id = ${d}.event_id and a.endpoint_id = ${d}.endpoint_id and a.attempted_at >= ${d}.created_at
      and a.attempted_at + interval '1 millisecond' * coalesce(a.latency_ms, 0) < ${returnedAt})))`;

/**
 * Makes the deliveries in a CTE `chosen (tuple, due_at)` due now. They are found by location, as in a lease, and rows that have changed in
 * the meantime are skipped. The due time is compared as well, because PostgreSQL versions before November 2025 follow a row that has moved,
 * and would treat a delivery in progress as waiting. Each delivery gets one extra attempt, so that this doesn't use up the schedule. A
 * delivery that was expedited but not yet attempted already has its extra attempt, so no delivery gets more than its schedule. Because of
 * the microsecond, no earlier lease of the row seems to be valid again.
 */
export const expediteChosen = (now: string) => `picked as materialized (
     select d.*, chosen.due_at from chosen cross join lateral (
       select d.ctid as tuple, d.event_id, d.endpoint_id, d.attempt_count from deliveries d
       where d.ctid = chosen.tuple and d.status = 'pending' and d.next_attempt_at = chosen.due_at
       for update skip locked) d),
   hastened as (
     update deliveries d set next_attempt_at = ${now}::timestamptz - interval '1 microsecond',
       max_attempts = case when d.attempt_count = 0 then d.max_attempts else least(d.max_attempts + 1, d.attempt_count + ${MAX_ATTEMPTS}) end
     where d.ctid = any (array(select tuple from picked)))`;

/** A URL with fewer orders than this is found by its orders. Others, such as the only URL of a shop, are found by their deliveries. */
const MANY_ORDERS = 1000;
/** The SQL for an adapter's orders with the URL `asked.url`. The hash is in an index, and a URL may be too long for one. */
const ordersAt = (asked: string) =>
  `adapter_orders o where o.endpoint_id = ${asked}.id and hashtextextended(o.notify_url, 0) = hashtextextended(${asked}.url, 0) and o.notify_url = ${asked}.url`;

/**
 * The SQL for the pending deliveries at the target `asked` that are due before or after `$4`. Each order may have its own URL, and an
 * adapter with a long backlog has thousands of them. Looking through the whole backlog for each URL would hold up all deliveries.
 */
const pendingAt = (due: '<=' | '>') => `(
         (select d.ctid as tuple, d.* from deliveries d
          where not asked.is_rare and d.endpoint_id = asked.id and d.status = 'pending' and d.next_attempt_at ${due} $4
            and (asked.url is null or ${due === '>' ? `d.last_error ~ '${OUTAGE}' and` : ''} exists (
              select from adapter_orders o
              where o.project_id = d.project_id and o.invoice_id = d.invoice_id and o.notify_url = asked.url))
          order by d.next_attempt_at, d.created_at, d.sequence limit ${MOST_SEEN})
         union all
         select d.* from (
           select o.project_id, o.invoice_id from ${ordersAt('asked')} and asked.is_rare limit ${MANY_ORDERS}) o
         cross join lateral (
           select d.ctid as tuple, d.* from deliveries d
           where d.endpoint_id = asked.id and d.invoice_id = o.invoice_id and d.status = 'pending' and d.next_attempt_at ${due} $4
             and d.project_id = o.project_id${due === '>' ? ` and d.last_error ~ '${OUTAGE}'` : ''}
           order by d.sequence limit ${MOST_PER_ORDER}) d) d`;

/**
 * Makes waiting deliveries due now. For a target that has recovered, these are all deliveries except events that must wait for an earlier
 * event of the same invoice. For a failing target, it's only the delivery that was expedited least often. Nothing is expedited if the
 * target is paused, or if another delivery that isn't waiting for an earlier event is due there. Deliveries that an adapter's shop
 * responded to during its outage aren't expedited. `returnedAt` is the previous recovery. Returns when each delivery had been due.
 */
export const bringDeliveriesForward = rowsOf(
  'delivery-hasten-waiting',
  { eventId: 'uuid', endpointId: 'uuid', callbackUrl: 'text?', attemptCount: 'int4', dueAt: 'timestamptz' },
  `with asked as (
     select w.id, asked.url, asked.is_back, coalesce(asked.returned_at, '-infinity') as returned_at, asked.is_rare
     from (
       select a.*, a.url is not null and (
         select count(*) from (select from ${ordersAt('a')} limit ${MANY_ORDERS}) o) < ${MANY_ORDERS} as is_rare
       from unnest($1::uuid[], $2::bool[], $3::timestamptz[], $5::text[]) a (id, is_back, returned_at, url) offset 0) asked
     join webhook_endpoints w on w.id = asked.id
     where w.disabled_at is null and (asked.is_back or (
       (w.failing_since is not null or asked.url is not null) and not ${isPaused('w', '$4::timestamptz')} and not exists (
         select from ${pendingAt('<=')}
         where coalesce((
           select e.next_attempt_at from deliveries e
           where e.endpoint_id = d.endpoint_id and e.invoice_id = d.invoice_id and e.sequence < d.sequence and e.status = 'pending'
           order by e.sequence limit 1), '-infinity') <= $4)))),
   chosen as materialized (
     select d.tuple, d.next_attempt_at as due_at, asked.url from asked cross join lateral (
       select d.tuple, d.next_attempt_at from ${pendingAt('>')}
       where (asked.is_back or d.attempt_count > 0) and ${mayBeExpedited('d', '$4', 'asked.returned_at')}
         and (d.attempt_count > 0 or not exists (
           select from deliveries e
           where e.endpoint_id = d.endpoint_id and e.invoice_id = d.invoice_id and e.sequence < d.sequence and e.status = 'pending'
             and not ${mayBeExpedited('e', '$4', 'asked.returned_at')}))
       order by d.max_attempts, d.next_attempt_at limit case when asked.is_back then ${MOST_SEEN} else 1 end) d),
   ${expediteChosen('$4')}
   select p.event_id, p.endpoint_id, chosen.url as callback_url, p.attempt_count, p.due_at
   from picked p join chosen on chosen.tuple = p.tuple`,
  (asked: readonly { target: string; isBack: boolean; returnedAt: UnixMs | null }[], now: UnixMs) => [
    asked.map(({ target }) => target.split(' ')[0] ?? ''),
    asked.map(({ isBack }) => String(isBack)),
    asked.map(({ returnedAt }) => returnedAt && new Date(returnedAt).toISOString()),
    new Date(now),
    asked.map(({ target }) => target.split(' ')[1] ?? null),
  ],
);
