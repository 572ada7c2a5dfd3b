import type { Network } from '../../domain/network.ts';
import { ASKED_SECONDS, MAX_ATTEMPTS, OPEN_AFTER_FAILURES, OUTAGE } from '../../domain/retry.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, changesOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_ENDPOINT, SEALED_EVENT } from '../db/sealed-tables.ts';
import { count, isAsSealed, maybe, type Row, statement, text } from '../db/statement.ts';
import { isPaused } from './webhook-endpoints.ts';

/** Counts in the database stop at this limit, so that a single row can't make a statement fail for all deliveries. */
const MOST_ATTEMPTS = 1_000_000;

/**
 * A lease is longer than the time in the buffer (2 s), an attempt (15 s) and the recording of its outcome together. It's short enough that
 * a sender's crash is hardly noticed.
 */
export const LEASE_MS = 25_000;

const leased = {
  eventId: 'uuid',
  endpointId: 'uuid',
  /** The endpoint's project. The endpoint's and the event's seals are compared with it, so that events can't be sent to another project. */
  projectId: 'uuid',
  /** The number counts from 1. Together with the end of the lease, it's the fencing token. */
  attempt: 'int4',
  maxAttempts: 'int4',
  body: 'text',
  url: 'text',
  network: text<Network>(),
  /** The adapter's kind, if the endpoint belongs to an adapter. */
  adapter: 'text?',
  /** The callback URL of an adapter order. Its seal is checked when the URL is used. */
  callbackUrl: 'text?',
  /** Whether attempts to this endpoint are failing. If so, it gets only one attempt at a time. */
  isFailing: 'bool',
  /** Whether the endpoint was paused, and this attempt probes whether it works again. */
  isProbe: 'bool',
  /** Whether the event's and its endpoint's seals are valid. */
  isEventSound: isAsSealed(SEALED_EVENT),
  isEndpointSound: isAsSealed(SEALED_ENDPOINT),
} as const;

/**
 * An attempt that this process may make until `leasedUntil`. `target` is the endpoint or, for an adapter, a single callback URL; the
 * outcome counts for this target.
 */
export type LeasedDelivery = Row<typeof leased> & { target: string; leasedUntil: UnixMs };

/** URLs contain no spaces. */
export const targetOf = (endpointId: string, callbackUrl: string | null) =>
  callbackUrl === null ? endpointId : `${endpointId} ${callbackUrl}`;

/**
 * `waiting` uses the index to jump from endpoint to endpoint, so that neither endpoints without work nor long queues cost anything.
 * Endpoints come first if the caller holds none of their deliveries. `seen` contains each endpoint's earliest due deliveries, a few
 * thousand at most in total.
 *
 * An event waits for an earlier event of the same invoice during the first hour after the earlier delivery was created. After that, it
 * waits only while the earlier one is due or in progress, so that a backlog arrives in order. While the earlier one waits for its next
 * attempt, the later one is postponed until then (`until`); otherwise `seen` would contain thousands of such events again and again. If
 * both are due, the later one is put behind the earlier one. Otherwise, a few dozen such events at the front, with earlier events that lie
 * beyond `seen`, would block the endpoint permanently. In all other cases its time doesn't change. An attempt that was counted but not
 * logged is in progress.
 *
 * Rows are found again by their physical location (ctid). If the queue was empty a minute ago, the planner's statistics are outdated, and
 * it would otherwise scan the whole queue for each row. A row that has changed in the meantime has another location and is skipped.
 *
 * A probe blocks all other attempts to the endpoint until it's recorded.
 */
const lease = statement(
  'delivery-lease',
  { delivery: maybe(leased), deferred: count },
  `with recursive waiting (endpoint_id, due_at) as (
     (select endpoint_id, next_attempt_at from deliveries where status = 'pending' order by endpoint_id, next_attempt_at limit 1)
     union all
     select following.endpoint_id, following.next_attempt_at
     from waiting cross join lateral (
       select d.endpoint_id, d.next_attempt_at from deliveries d
       where d.status = 'pending' and d.endpoint_id > waiting.endpoint_id
       order by d.endpoint_id, d.next_attempt_at limit 1) following),
   open as (
     select w.id, w.project_id, w.url, w.network, w.adapter, ${sealColumn(SEALED_ENDPOINT, 'w.')} as seal, w.failing_since is not null as is_failing, w.consecutive_failures >= ${OPEN_AFTER_FAILURES} as is_probe,
       coalesce(known.room, case when w.failing_since is null then $4::int8 else 1 end) as room, waiting.due_at
     from waiting join webhook_endpoints w on w.id = waiting.endpoint_id
     left join unnest($5::uuid[], $6::int8[]) known (endpoint_id, room) on known.endpoint_id = w.id
     where waiting.due_at <= $1 and w.disabled_at is null
       and not (${isPaused('w', '$1::timestamptz')})
       and coalesce(known.room, 1) > 0
     order by is_failing, known.endpoint_id is not null, waiting.due_at, w.id
     limit $3::int8),
   shared as materialized (
     select open.*, least(room, 1 + 2 * $3::int8 / count(*) over ()) as share, 8 + 64 / count(*) over () as spare from open),
   seen as materialized (
     select d.tuple, d.endpoint_id, d.next_attempt_at, shared.is_failing, shared.share, earlier.due_at is not null as is_blocked,
       case when earlier.due_at > $1 then case when not earlier.is_under_way then least(earlier.due_at, earlier.passes_at) end
         when (earlier.due_at, earlier.created_at) > (d.next_attempt_at, d.created_at)
         then earlier.due_at + interval '1 microsecond' * (earlier.created_at > d.created_at)::int end as until,
       row_number() over (partition by d.endpoint_id, earlier.due_at is null order by d.next_attempt_at, d.created_at, d.sequence) as place
     from shared
     cross join lateral (
       select d.ctid as tuple, d.event_id, d.endpoint_id, d.invoice_id, d.sequence, d.next_attempt_at, d.created_at from deliveries d
       where d.endpoint_id = shared.id and d.status = 'pending' and d.next_attempt_at <= $1
       order by d.next_attempt_at, d.created_at, d.sequence
       limit shared.share + shared.spare) d
     left join lateral (
       select e.next_attempt_at as due_at, e.created_at, e.created_at + interval '1 hour' as passes_at, e.is_under_way
       from (
         select e.*, e.attempt_count > 0 and not exists (
           select from delivery_attempts a
           where a.event_id = e.event_id and a.endpoint_id = e.endpoint_id and a.attempt = e.attempt_count) as is_under_way
         from deliveries e
         where e.endpoint_id = d.endpoint_id and e.invoice_id = d.invoice_id and e.sequence < d.sequence and e.status = 'pending') e
       where e.next_attempt_at <= $1 or e.created_at > $1::timestamptz - interval '1 hour' or e.is_under_way
       order by e.sequence limit 1) earlier on true),
   chosen as (
     (select tuple, until from seen where not is_blocked and place <= share order by is_failing, place, next_attempt_at limit $3::int8)
     union all select tuple, until from seen where until is not null),
   picked as materialized (
     select d.tuple, chosen.until from chosen cross join lateral (
       select d.ctid as tuple from deliveries d
       where d.ctid = chosen.tuple and d.status = 'pending' and d.next_attempt_at <= $1
       for update skip locked) d),
   taken as (
     update deliveries d set attempt_count = least(d.attempt_count + 1, ${MOST_ATTEMPTS}), next_attempt_at = $2
     where d.ctid = any (array(select tuple from picked where until is null))
     returning d.event_id, d.endpoint_id, d.attempt_count, d.max_attempts),
   deferred as (
     update deliveries d set next_attempt_at = picked.until from picked
     where d.ctid = any (array(select tuple from picked where until is not null)) and d.ctid = picked.tuple
     returning 1),
   probed as (
     update webhook_endpoints w set open_until = $2 from shared
     where w.id = shared.id and shared.is_probe and exists (select from taken where taken.endpoint_id = w.id))
   select taken.event_id as delivery_event_id, taken.endpoint_id as delivery_endpoint_id, shared.project_id as delivery_project_id,
     taken.attempt_count as delivery_attempt, taken.max_attempts as delivery_max_attempts, e.body as delivery_body, shared.url as delivery_url,
     shared.network as delivery_network, shared.adapter as delivery_adapter, o.notify_url as delivery_callback_url, shared.is_failing as delivery_is_failing, shared.is_probe as delivery_is_probe,
     ${sealColumn(SEALED_EVENT, 'e.')} as delivery_is_event_sound, shared.seal as delivery_is_endpoint_sound, total.deferred
   from (select count(*) as deferred from deferred) total
   left join (taken join shared on shared.id = taken.endpoint_id join events e on e.id = taken.event_id
     left join adapter_orders o on shared.adapter is not null and o.project_id = e.project_id and o.invoice_id = e.invoice_id) on true`,
);

/**
 * Leases up to `limit` due deliveries, starting with each endpoint's earliest, and counts an attempt for each. `room` limits how many each
 * endpoint can get. Endpoints that aren't in it get `defaultRoom`, or 1 while their attempts are failing. A paused endpoint gets none
 * during its pause, and one after it. If a sender crashes, its deliveries are leased again after the lease has expired. Concurrent senders
 * never get the same delivery. `isMore` means that a delivery was postponed, so call this again immediately for the deliveries behind it.
 */
export async function leaseDueDeliveries(
  db: Sql,
  options: { now: UnixMs; limit: number; defaultRoom: number; room: ReadonlyMap<string, number> },
): Promise<{ deliveries: LeasedDelivery[]; isMore: boolean }> {
  const leasedUntil = unixMs(options.now + LEASE_MS);
  const rows = await db.run(lease, [
    new Date(options.now),
    new Date(leasedUntil),
    options.limit,
    options.defaultRoom,
    [...options.room.keys()],
    [...options.room.values()].map(BigInt),
  ]);
  // If nothing was leased, there's only one row, without a delivery.
  const deliveries = rows.flatMap(({ delivery }) => {
    if (delivery === null) return [];
    return [{ ...delivery, target: targetOf(delivery.endpointId, delivery.callbackUrl), leasedUntil }];
  });
  return { deliveries, isMore: (rows[0]?.deferred ?? 0) > 0 };
}

/** This form makes the planner use the primary key. If it used an index on pending deliveries, it would scan the whole index. */
const IS_PENDING = "d.status not in ('delivered', 'dead')";

/**
 * Undoes leases whose attempts weren't made or weren't finished. These attempts don't count, and the deliveries are due from `dueAt` on. If
 * there's nothing to wait for, the deliveries must be due immediately; otherwise later events of their invoices would overtake them. Leases
 * end at whole milliseconds, but these deliveries are due a microsecond earlier, so that no earlier lease of the row seems to be valid
 * again. Returns how many leases were still held.
 */
export const returnDeliveries = changesOf(
  'delivery-give-back',
  `with given as (
     select * from unnest($1::uuid[], $2::uuid[], $3::int4[], $4::timestamptz[]) as _ (event_id, endpoint_id, attempt, leased_until))
   update deliveries d set attempt_count = d.attempt_count - 1, next_attempt_at = $5::timestamptz - interval '1 microsecond' from given
   where d.event_id = given.event_id and d.endpoint_id = given.endpoint_id and d.attempt_count = given.attempt
     and d.next_attempt_at = given.leased_until and ${IS_PENDING}`,
  (deliveries: readonly LeasedDelivery[], dueAt: UnixMs) => [...tokens(deliveries), new Date(dueAt)],
);

/** Returns the four arrays that identify these leases, as long as they are still held. */
function tokens(deliveries: readonly LeasedDelivery[]) {
  return [
    deliveries.map(({ eventId }) => eventId),
    deliveries.map(({ endpointId }) => endpointId),
    deliveries.map(({ attempt }) => String(attempt)),
    deliveries.map(({ leasedUntil }) => new Date(leasedUntil).toISOString()),
  ] as const;
}

/** Returns when the oldest pending delivery was planned, or `null` if there is none. */
export const findOldestUndelivered = answerOf(
  'delivery-oldest',
  { createdAt: 'timestamptz?' },
  `select min(d.created_at) as created_at
   from deliveries d join webhook_endpoints w on w.id = d.endpoint_id
   where d.status = 'pending' and w.disabled_at is null`,
  () => [],
  ([row]) => row?.createdAt ?? null,
);

/**
 * An attempt's outcome. `nextAttemptAt` is set after a failure; null means that this was the last attempt. `status` is the HTTP status.
 * `error` is null if the attempt succeeded. `answer` is the beginning of the endpoint's response. A callback that was no longer needed is
 * `delivered` without a status, and `answer` says why.
 */
export type AttemptOutcome = {
  delivery: LeasedDelivery;
  kind: 'delivered' | 'failed';
  startedAt: UnixMs;
  latencyMs: number;
  status: number | null;
  error: string | null;
  answer: string | null;
  nextAttemptAt: UnixMs | null;
  /** Whether the attempt was made before its scheduled time. */
  isHastened: boolean;
};

/**
 * An attempt is in the log if and only if it was counted. If its number was already used, the attempt replaces the logged one, because the
 * log must never prevent an outcome from being recorded. A row without an event stands for an endpoint that has recovered.
 */
const record = statement(
  'delivery-record',
  { eventId: 'uuid?', endpointId: 'uuid' },
  `with input as (
     select * from unnest($1::uuid[], $2::uuid[], $3::int4[], $4::timestamptz[], $6::text[], $7::timestamptz[], $8::int4[], $9::int4[],
       $10::text[], $11::text[], $12::timestamptz[], $13::text[])
     as _ (event_id, endpoint_id, attempt, leased_until, outcome, started_at, latency_ms, http_status, error, answer, next_at, url)),
   recorded as (
     update deliveries d set status = input.outcome, next_attempt_at = coalesce(input.next_at, d.next_attempt_at),
       finished_at = case when input.outcome <> 'pending' then $5::timestamptz end, last_status = input.http_status, last_error = input.error
     from input
     where d.event_id = input.event_id and d.endpoint_id = input.endpoint_id and d.attempt_count = input.attempt
       and d.next_attempt_at = input.leased_until and ${IS_PENDING}
     returning d.event_id, d.endpoint_id, d.attempt_count, d.status, input.started_at, input.latency_ms,
       input.http_status, input.error, input.answer, input.url),
   logged as (
     insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at, latency_ms, status, error, answer)
     select event_id, endpoint_id, attempt_count, started_at, latency_ms, http_status, error, answer from recorded
     on conflict (event_id, endpoint_id, attempt) do update
       set attempted_at = excluded.attempted_at, latency_ms = excluded.latency_ms, status = excluded.status, error = excluded.error,
         answer = excluded.answer),
   recovered as (
     update webhook_endpoints w set failing_since = null, consecutive_failures = 0, open_until = null
     where (w.failing_since is not null or w.consecutive_failures > 0 or w.open_until is not null)
       and exists (select from recorded r where r.endpoint_id = w.id and r.status = 'delivered' and r.url = w.url)
     returning w.id)
   select event_id, endpoint_id from recorded union all select null, id from recovered`,
);

/**
 * Records and logs the outcomes of attempts, at most one per delivery. An endpoint that accepted a delivery at its current URL no longer
 * counts as failing. Returns the attempts whose lease was still held, and the endpoints that have recovered. Nothing is written for the other attempts.
 */
export async function recordOutcomes(
  db: Sql,
  outcomes: readonly AttemptOutcome[],
  now: UnixMs,
): Promise<{ ours: Set<AttemptOutcome>; back: string[] }> {
  const time = (at: UnixMs | null) => at && new Date(at).toISOString();
  const rows = await db.run(record, [
    ...tokens(outcomes.map(({ delivery }) => delivery)),
    new Date(now),
    outcomes.map(({ kind, nextAttemptAt }) =>
      kind === 'delivered' ? kind : nextAttemptAt === null ? 'dead' : 'pending',
    ),
    outcomes.map(({ startedAt }) => time(startedAt)),
    outcomes.map(({ latencyMs }) => String(latencyMs)),
    outcomes.map(({ status }) => (status === null ? null : String(status))),
    outcomes.map(({ error }) => error),
    outcomes.map(({ answer }) => answer),
    outcomes.map(({ nextAttemptAt }) => time(nextAttemptAt)),
    outcomes.map(({ delivery }) => delivery.url),
  ]);
  const ours = new Set(rows.map((row) => `${row.eventId} ${row.endpointId}`));
  return {
    ours: new Set(outcomes.filter(({ delivery }) => ours.has(`${delivery.eventId} ${delivery.endpointId}`))),
    back: rows.flatMap(({ eventId, endpointId }) => (eventId === null ? [endpointId] : [])),
  };
}

/**
 * A delivery is expedited only while it's allowed fewer attempts than this. Further attempts are made only on schedule, so that the attempt
 * log doesn't grow without limit.
 */
const MOST_EARLY_ATTEMPTS = 240;
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
  ${d}.max_attempts < ${MOST_EARLY_ATTEMPTS} and exists (
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
  'delivery-expedite-waiting',
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
