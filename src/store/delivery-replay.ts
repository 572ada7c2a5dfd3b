import type { EventType } from '../domain/event.ts';
import { MAX_ATTEMPTS } from '../domain/retry.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { LEASE_MS } from './deliveries.ts';
import type { PositionRange } from './delivery-desk.ts';
import { DELIVERIES_CHANNEL } from './events.ts';
import { statement } from './statement.ts';

type DeliveryStatus = 'pending' | 'delivered' | 'dead';

/** Which events are sent to one endpoint again. `statuses`: what their deliveries are; `missing`: there is none. */
export type ReplayFilter = {
  projectId: string;
  endpointId: string;
  statuses: readonly (DeliveryStatus | 'missing')[];
  /** Of those that are pending, only those whose last attempt failed. */
  onlyFailing: boolean;
  types: readonly EventType[];
  /** Types of which an event counts as missing. */
  missingTypes: readonly EventType[];
  /** By the time of the event: at or after `from`, before `until`. */
  from: UnixMs;
  until: UnixMs;
};

/** An event that is to be sent again, and what its delivery was. */
export type ReplayCandidate = { eventId: string; was: DeliveryStatus | 'missing' };

// Lateral, so that PostgreSQL looks up the delivery of each event, however small it believes the table to be.
const selectCandidates = statement(
  'replay-candidates',
  { event_id: 'uuid', was: 'text' },
  `select e.id as event_id, coalesce(d.status, 'missing') as was
   from events e
   left join lateral (
     select status, last_error from deliveries where event_id = e.id and endpoint_id = $2 limit 1) d on true
   where e.project_id = $1 and e.position >= $3 and e.position < $4 and e.created_at >= $5 and e.created_at < $6
     and coalesce(d.status, 'missing') = any($7::text[])
     and e.type = any(case when d.status is null then $9::text[] else $8::text[] end)
     and (not $10::bool or d.status is distinct from 'pending' or d.last_error is not null)
   order by e.position`,
);

/** The events of a range of positions, which bounds the work, that fit the filter, in their order. */
export async function findReplayCandidates(
  db: Sql,
  filter: ReplayFilter,
  { first, end }: PositionRange,
): Promise<ReplayCandidate[]> {
  const rows = await db.run(selectCandidates, [
    filter.projectId,
    filter.endpointId,
    first,
    end,
    new Date(filter.from),
    new Date(filter.until),
    filter.statuses,
    filter.types,
    filter.missingTypes,
    filter.onlyFailing,
  ]);
  return rows.map((row) => ({ eventId: row.event_id, was: row.was as ReplayCandidate['was'] }));
}

const countMissing = statement(
  'replay-count-missing',
  { count: 'int8' },
  `select count(*) as count from (
     select from events e
     where e.project_id = $1 and e.position >= $3 and e.type = any($4::text[])
       and not exists (select from deliveries d where d.event_id = e.id and d.endpoint_id = $2)
     limit $5::int8) missing`,
);

/** How many events from a position on were never planned for the endpoint, counted up to `limit`. */
export async function countUnplanned(
  db: Sql,
  options: { endpoint: { id: string; project_id: string }; first: bigint; types: readonly EventType[]; limit: number },
): Promise<number> {
  const { endpoint, first, types, limit } = options;
  const [row] = await db.run(countMissing, [endpoint.project_id, endpoint.id, first, types, limit]);
  return Number(row?.count ?? 0n);
}

/** Commands and dispatchers may run on machines whose clocks differ by so much. */
const CLOCKS_DIFFER_MS = 60_000;

/**
 * Whether a pending delivery `d` waits for an attempt that is not soon, and is not under way: that one is shows in that its attempt
 * was counted and is not logged, until its lease has run out.
 */
const isLate = (now: string) => `(
  d.next_attempt_at > ${now}::timestamptz + interval '${LEASE_MS} milliseconds'
  and (d.attempt_count = 0 or d.next_attempt_at > ${now}::timestamptz + interval '${LEASE_MS + CLOCKS_DIFFER_MS} milliseconds'
    or exists (select from delivery_attempts a
      where a.event_id = d.event_id and a.endpoint_id = d.endpoint_id and a.attempt = d.attempt_count)))`;

/** An endpoint that needs more attempts has another problem; and the log of one delivery must have an end. */
export const MAX_REPLAYED_ATTEMPTS = 1000;

/**
 * A new schedule begins with the attempts that were made. The delivery counts as planned now, so that events of one invoice
 * wait for each other again; microseconds put those of one batch in the order of their events. A pending one that is due soon or may be
 * under way is attempted anyway.
 */
const replay = statement(
  'delivery-replay',
  { event_id: 'uuid', was: 'text', outcome: 'text' },
  `with chosen as (
     select e.id, e.project_id, e.invoice_id, e.sequence,
       $3::timestamptz + row_number() over (order by e.position) * interval '1 microsecond' as planned_at
     from events e join webhook_endpoints w on w.id = $2 and w.project_id = e.project_id
     where e.id = any($1::uuid[])),
   locked as (
     select d.event_id, d.status, case
         when d.status <> all($4::text[]) then 'passed over'
         when d.status = 'pending' and not ${isLate('$3')} then 'due'
         when d.attempt_count >= ${MAX_REPLAYED_ATTEMPTS} then 'exhausted' else 'replayed' end as outcome
     from (select id from chosen order by id) chosen
     cross join lateral (
       select d.* from deliveries d where d.event_id = chosen.id and d.endpoint_id = $2 limit 1 for update) d),
   renewed as (
     update deliveries d set status = 'pending', next_attempt_at = $3, created_at = chosen.planned_at, finished_at = null,
       max_attempts = d.attempt_count + ${MAX_ATTEMPTS}
     from locked join chosen on chosen.id = locked.event_id
     where d.event_id = locked.event_id and d.endpoint_id = $2 and locked.outcome = 'replayed'),
   planned as (
     insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, next_attempt_at, created_at)
     select id, $2, project_id, invoice_id, sequence, $3, planned_at from chosen
     where not exists (select from locked where locked.event_id = chosen.id)
     on conflict do nothing)
   select chosen.id as event_id, coalesce(locked.status, 'missing') as was, coalesce(locked.outcome, 'replayed') as outcome
   from chosen left join locked on locked.event_id = chosen.id
   where locked.outcome is distinct from 'passed over'
   order by chosen.planned_at`,
);

/** `due`: it is attempted within seconds anyway. `exhausted`: it was attempted 1,000 times. */
export type Replayed = ReplayCandidate & { outcome: 'replayed' | 'due' | 'exhausted' };

/**
 * Makes events due at an endpoint now, each with a whole schedule of attempts, whatever became of them before; with `statuses` only
 * those whose deliveries are such now. Returns one result an event, in their order; one that is passed over, or is of another project
 * than the endpoint's, has none.
 */
export async function replayDeliveries(
  tx: Sql,
  options: { endpointId: string; eventIds: readonly string[]; now: UnixMs; statuses?: ReplayFilter['statuses'] },
): Promise<Replayed[]> {
  const { endpointId, eventIds, now, statuses = null } = options;
  return (await tx.run(replay, [eventIds, endpointId, new Date(now), statuses])).map((row) => ({
    eventId: row.event_id,
    was: row.was as Replayed['was'],
    outcome: row.outcome as Replayed['outcome'],
  }));
}

const hasten = statement(
  'delivery-hasten',
  { event_id: 'uuid' },
  `with late as (
     select event_id from deliveries d
     where d.endpoint_id = $1 and d.status = 'pending' and d.event_id > $3 and ${isLate('$2')}
     order by d.event_id limit $4::int8 for update),
   placed as (select event_id, row_number() over (order by event_id) as place from late)
   update deliveries d set next_attempt_at = $2, created_at = $2::timestamptz + placed.place * interval '1 microsecond'
   from placed where d.event_id = placed.event_id and d.endpoint_id = $1
   returning d.event_id`,
);

/** Makes what waits for its next attempt at an endpoint due now, in the order of the events behind `after`. Returns their ids. */
export async function hastenDeliveries(
  tx: Sql,
  endpointId: string,
  now: UnixMs,
  page: { after: string; limit: number },
): Promise<string[]> {
  return (await tx.run(hasten, [endpointId, new Date(now), page.after, page.limit])).map((row) => row.event_id);
}

const selectPlanned = statement(
  'replay-planned',
  { event_id: 'uuid', endpoint_id: 'uuid', status: 'text' },
  `select event_id, endpoint_id, status from deliveries
   where event_id = any($1::uuid[]) and ($2::uuid is null or endpoint_id = $2)
   order by event_id, endpoint_id limit 10000`,
);

/** The deliveries of events (UUIDs), at one endpoint or at all of them. */
export async function findPlanned(
  db: Sql,
  eventIds: readonly string[],
  endpointId: string | null,
): Promise<(ReplayCandidate & { endpointId: string })[]> {
  return (await db.run(selectPlanned, [eventIds, endpointId])).map((row) => ({
    eventId: row.event_id,
    endpointId: row.endpoint_id,
    was: row.status as DeliveryStatus,
  }));
}

const notify = statement(
  'delivery-notify',
  { notified: 'text?' },
  `select pg_notify('${DELIVERIES_CHANNEL}', '')::text as notified`,
);

/** Tells the dispatchers to look for what is due. */
export async function notifyDispatchers(db: Sql): Promise<void> {
  await db.run(notify, []);
}
