import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** One attempt that is ours until `leasedUntil`. `attempt` counts from 1; with the end of the lease it is the fencing token. */
export type LeasedDelivery = {
  eventId: string;
  endpointId: string;
  attempt: number;
  leasedUntil: UnixMs;
  body: string;
  url: string;
  secrets: string[];
};

/** Longer than one attempt can take (15 s) and its record, and short enough that a crashed sender is hardly noticed. */
export const LEASE_MS = 20_000;

/**
 * `failing` endpoints come last and get one place each, so that those known to be slow or down leave the places to the others.
 * An event waits for an earlier one of its invoice during that one's first hour; the time is the one of the delivery's creation.
 */
const lease = statement(
  'delivery-lease',
  {
    event_id: 'uuid',
    endpoint_id: 'uuid',
    attempt_count: 'int4',
    next_attempt_at: 'timestamptz',
    body: 'text',
    url: 'text',
    secret: 'text',
  },
  `with due as materialized (
     select d.event_id, d.endpoint_id
     from webhook_endpoints w
     left join unnest($5::uuid[], $6::int8[]) busy (endpoint_id, attempts) on busy.endpoint_id = w.id
     cross join lateral (
       select d.event_id, d.endpoint_id, d.next_attempt_at
       from deliveries d
       where d.endpoint_id = w.id and d.status = 'pending' and d.next_attempt_at <= $1
         and not exists (
           select from deliveries earlier
           where earlier.endpoint_id = d.endpoint_id and earlier.invoice_id = d.invoice_id
             and earlier.sequence < d.sequence and earlier.status = 'pending'
             and earlier.created_at > $1::timestamptz - interval '1 hour')
       order by d.next_attempt_at, d.created_at, d.event_id
       limit greatest(0, case when w.failing_since is null then $4::int8 else 1 end - coalesce(busy.attempts, 0))
       for update of d skip locked) d
     where w.disabled_at is null
     order by w.failing_since is not null, d.next_attempt_at, d.event_id
     limit $3::int8)
   update deliveries d set attempt_count = d.attempt_count + 1, next_attempt_at = $2
   from due
   join events e on e.id = due.event_id
   join webhook_endpoints w on w.id = due.endpoint_id
   where d.event_id = due.event_id and d.endpoint_id = due.endpoint_id
     and d.status = 'pending' and d.next_attempt_at <= $1
   returning d.event_id, d.endpoint_id, d.attempt_count, d.next_attempt_at, e.body, w.url, w.secret`,
);

/**
 * Takes up to `limit` due deliveries and counts an attempt for each. A sender that crashes leaves them to be taken again when
 * the lease has run out. `inFlight` says how many attempts the caller is making to each endpoint: with them, an endpoint gets at
 * most `perEndpoint`. Senders that run side by side never get the same delivery.
 */
export async function leaseDueDeliveries(
  db: Sql,
  options: { now: UnixMs; limit: number; perEndpoint: number; inFlight: ReadonlyMap<string, number> },
): Promise<LeasedDelivery[]> {
  const rows = await db.run(lease, [
    new Date(options.now),
    new Date(options.now + LEASE_MS),
    options.limit,
    options.perEndpoint,
    [...options.inFlight.keys()],
    [...options.inFlight.values()].map(BigInt),
  ]);
  return rows.map((row) => ({
    eventId: row.event_id,
    endpointId: row.endpoint_id,
    attempt: row.attempt_count,
    leasedUntil: row.next_attempt_at,
    body: row.body,
    url: row.url,
    secrets: [row.secret],
  }));
}

const OURS =
  "d.event_id = $1 and d.endpoint_id = $2 and d.attempt_count = $3 and d.next_attempt_at = $4 and d.status = 'pending'";

/**
 * Part of the statement that records an outcome, so that the log has an attempt exactly if it counted. An attempt that is made
 * anew under a number that was used takes its place: the log must never keep an outcome from being recorded.
 */
const logAttempt = (recorded: string, values: string) =>
  `insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at, status, error)
     select event_id, endpoint_id, attempt_count, ${values} from ${recorded}
     on conflict (event_id, endpoint_id, attempt) do update
       set attempted_at = excluded.attempted_at, status = excluded.status, error = excluded.error`;

const recordDelivery = statement(
  'delivery-record-delivered',
  { event_id: 'uuid' },
  `with delivered as (
     update deliveries d set status = 'delivered', finished_at = $5, last_status = $6, last_error = null
     where ${OURS} returning d.event_id, d.endpoint_id, d.attempt_count),
   logged as (${logAttempt('delivered', '$7::timestamptz, $6, null')}),
   recovered as (
     update webhook_endpoints w set failing_since = null from delivered
     where w.id = delivered.endpoint_id and w.failing_since is not null)
   select event_id from delivered`,
);

/**
 * Ends a delivery, logs the attempt, and its endpoint no longer counts as failing. `false` if the lease is no longer ours:
 * nothing is written.
 */
export async function recordDelivered(
  db: Sql,
  delivery: LeasedDelivery,
  outcome: { now: UnixMs; status: number },
): Promise<boolean> {
  const parameters = [...token(delivery), new Date(outcome.now), outcome.status, begunAt(delivery)];
  return (await db.run(recordDelivery, parameters)).length === 1;
}

const recordFailedAttempt = statement(
  'delivery-record-failure',
  { event_id: 'uuid', disabled_reason: 'text?' },
  `with failed as (
     update deliveries d set status = case when $6::timestamptz is null then 'dead' else 'pending' end,
       finished_at = case when $6::timestamptz is null then $5::timestamptz end,
       next_attempt_at = coalesce($6, d.next_attempt_at), last_status = $7, last_error = $8
     where ${OURS} returning d.event_id, d.endpoint_id, d.attempt_count),
   logged as (${logAttempt('failed', '$10::timestamptz, $7, $8')}),
   endpoint as (
     update webhook_endpoints w set failing_since = coalesce(w.failing_since, $5),
       disabled_at = case when $9::text is not null or w.failing_since <= $5::timestamptz - interval '5 days' then $5 end,
       disabled_reason = coalesce($9,
         case when w.failing_since <= $5::timestamptz - interval '5 days' then 'every attempt has failed for 5 days' end)
     from failed
     where w.id = failed.endpoint_id and w.disabled_at is null
       and ($9::text is not null or w.failing_since is null or w.failing_since <= $5::timestamptz - interval '5 days')
     returning w.id, w.disabled_reason)
   select failed.event_id, endpoint.disabled_reason
   from failed left join endpoint on endpoint.id = failed.endpoint_id`,
);

export type RecordedFailure = { kind: 'lost' } | { kind: 'recorded'; disabledReason: string | null };

/**
 * Notes and logs a failed attempt: the next one is at `nextAttemptAt`, or the delivery is dead if that is `null`. An endpoint
 * at which every attempt has failed for 5 days is disabled, and so is one with a `disableReason`; then `disabledReason` says why, once.
 * The deliveries of a disabled endpoint stay as they are and are not attempted. `lost`: the lease is no longer ours.
 */
export async function recordFailure(
  db: Sql,
  delivery: LeasedDelivery,
  outcome: {
    now: UnixMs;
    nextAttemptAt: UnixMs | null;
    status: number | null;
    error: string;
    disableReason: string | null;
  },
): Promise<RecordedFailure> {
  const { now, nextAttemptAt, status, error, disableReason } = outcome;
  const next = nextAttemptAt === null ? null : new Date(nextAttemptAt);
  const parameters = [...token(delivery), new Date(now), next, status, error, disableReason, begunAt(delivery)];
  const [row] = await db.run(recordFailedAttempt, parameters);
  return row === undefined ? { kind: 'lost' } : { kind: 'recorded', disabledReason: row.disabled_reason };
}

const giveBack = statement(
  'delivery-give-back',
  { event_id: 'uuid' },
  `update deliveries d set attempt_count = d.attempt_count - 1, next_attempt_at = $5 where ${OURS} returning d.event_id`,
);

/**
 * Undoes a lease whose attempt was not made or not finished: it does not count, and is due again at once. A millisecond later
 * than `now`, so that the row never looks as an earlier lease left it, which would revive that one's token.
 */
export async function returnDelivery(db: Sql, delivery: LeasedDelivery, now: UnixMs): Promise<boolean> {
  return (await db.run(giveBack, [...token(delivery), new Date(now + 1)])).length === 1;
}

const selectOldest = statement(
  'delivery-oldest',
  { created_at: 'timestamptz?' },
  `select min(d.created_at) as created_at
   from deliveries d join webhook_endpoints w on w.id = d.endpoint_id
   where d.status = 'pending' and w.disabled_at is null`,
);

/** When the oldest delivery that is still tried was planned, or `null` if there is none. */
export async function findOldestUndelivered(db: Sql): Promise<UnixMs | null> {
  const [row] = await db.run(selectOldest, []);
  return row?.created_at ?? null;
}

/** An attempt begins as soon as it is leased. */
function begunAt(delivery: LeasedDelivery): Date {
  return new Date(delivery.leasedUntil - LEASE_MS);
}

function token(delivery: LeasedDelivery) {
  return [delivery.eventId, delivery.endpointId, delivery.attempt, new Date(delivery.leasedUntil)] as const;
}
