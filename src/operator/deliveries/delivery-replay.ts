import type { EventType } from '../../domain/event.ts';
import { MAX_ATTEMPTS } from '../../domain/retry.ts';
import type { UnixMs } from '../../domain/time.ts';
import { rowsOf } from '../../store/db/rows-of.ts';
import { type Row, text } from '../../store/db/statement.ts';
import { WANTS_EVENT } from '../../store/outbox/adapter-orders.ts';
import { isLate } from '../subjects/webhook-sending.ts';
import type { PositionRange } from './delivery-desk.ts';

/** Selects the events that are sent to an endpoint again. `statuses`: of their deliveries; `missing`: there is no delivery. */
export type ReplayFilter = {
  projectId: string;
  endpointId: string;
  statuses: readonly ReplayCandidate['was'][];
  /** Takes a pending delivery only if its last attempt failed. */
  onlyFailing: boolean;
  types: readonly EventType[];
  /** Types of which an event counts as missing. */
  missingTypes: readonly EventType[];
  /** By the time of the event: at or after `from`, before `until`. */
  from: UnixMs;
  until: UnixMs;
};

const candidate = { eventId: 'uuid', was: text<'missing' | 'pending' | 'delivered' | 'dead'>() } as const;

/** An event that is to be sent again, and what its delivery was. */
export type ReplayCandidate = Row<typeof candidate>;

// Lateral, so that PostgreSQL looks up the delivery of each event, however small it believes the table to be.
/** The events of a range of positions, which bounds the work, that fit the filter, in their order. */
export const findReplayCandidates = rowsOf(
  'replay-candidates',
  candidate,
  `select e.id as event_id, coalesce(d.status, 'missing') as was
   from events e
   left join lateral (
     select status, last_error from deliveries where event_id = e.id and endpoint_id = $2 limit 1) d on true
   where e.project_id = $1 and e.position >= $3 and e.position < $4 and e.created_at >= $5 and e.created_at < $6
     and coalesce(d.status, 'missing') = any($7::text[])
     and e.type = any(case when d.status is null then $9::text[] else $8::text[] end)
     and (not $10::bool or d.status is distinct from 'pending' or d.last_error is not null)
   order by e.position`,
  (filter: ReplayFilter, { first, end }: PositionRange) => [
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
  ],
);

/** An endpoint that needs more attempts has another problem; and the log of one delivery must have an end. */
export const MAX_REPLAYED_ATTEMPTS = 1000;

/** `due`: it is attempted within seconds anyway. `exhausted`: it was attempted 1,000 times. */
const replayed = { ...candidate, outcome: text<'replayed' | 'due' | 'exhausted'>() } as const;
export type Replayed = Row<typeof replayed>;

// A new schedule begins with the attempts that were made. The delivery counts as planned now, so that events of one invoice wait for
// each other again; microseconds put those of one batch in the order of their events. A pending one that is due soon or may be under
// way is attempted anyway.
/**
 * Makes events due at an endpoint now, each with a whole schedule of attempts, whatever became of them before; with `statuses` only
 * those whose deliveries are such now. Returns one result an event, in their order; one that is passed over, or is of another project
 * than the endpoint's, has none.
 */
export const replayDeliveries = rowsOf(
  'delivery-replay',
  replayed,
  `with chosen as (
     select e.id, e.project_id, e.invoice_id, e.sequence,
       $3::timestamptz + row_number() over (order by e.position) * interval '1 microsecond' as planned_at
     from events e join webhook_endpoints w on w.id = $2 and w.project_id = e.project_id
     where e.id = any($1::uuid[]) and (w.adapter is null or ${WANTS_EVENT})),
   locked as (
     select d.event_id, d.status, case
         when d.status <> all($4::text[]) then 'passed over'
         when d.status = 'pending' and not ${isLate('$3')} then 'due'
         when d.attempt_count >= ${MAX_REPLAYED_ATTEMPTS} then 'exhausted' else 'replayed' end as outcome
     from (select id from chosen order by id) chosen
     cross join lateral (
       select d.* from deliveries d where d.event_id = chosen.id and d.endpoint_id = $2 limit 1 for update) d),
   renewed as (
     update deliveries d set status = 'pending', next_attempt_at = least($3, now()), created_at = chosen.planned_at, finished_at = null,
       max_attempts = d.attempt_count + ${MAX_ATTEMPTS}
     from locked join chosen on chosen.id = locked.event_id
     where d.event_id = locked.event_id and d.endpoint_id = $2 and locked.outcome = 'replayed'),
   planned as (
     insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, next_attempt_at, created_at)
     select id, $2, project_id, invoice_id, sequence, least($3, now()), planned_at from chosen
     where not exists (select from locked where locked.event_id = chosen.id)
     on conflict do nothing)
   select chosen.id as event_id, coalesce(locked.status, 'missing') as was, coalesce(locked.outcome, 'replayed') as outcome
   from chosen left join locked on locked.event_id = chosen.id
   where locked.outcome is distinct from 'passed over'
   order by chosen.planned_at`,
  (order: { endpointId: string; eventIds: readonly string[]; now: UnixMs; statuses?: ReplayFilter['statuses'] }) => [
    order.eventIds,
    order.endpointId,
    new Date(order.now),
    order.statuses ?? null,
  ],
);

/** The deliveries of events (UUIDs), at one endpoint or at all of them. */
export const findPlanned = rowsOf(
  'replay-planned',
  { ...candidate, endpointId: 'uuid' },
  `select event_id, status as was, endpoint_id from deliveries
   where event_id = any($1::uuid[]) and ($2::uuid is null or endpoint_id = $2)
   order by event_id, endpoint_id limit 10000`,
  (eventIds: readonly string[], endpointId: string | null) => [eventIds, endpointId],
);
