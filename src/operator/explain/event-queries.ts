import type { EventType } from '../../domain/event.ts';
import { rowsOf } from '../../store/db/rows-of.ts';
import { count, maybe, type Row, text } from '../../store/db/statement.ts';
import type { Actor } from '../actor.ts';

const shape = {
  id: 'uuid',
  type: text<EventType>(),
  sequence: 'int4',
  transferId: 'uuid?',
  createdAt: 'timestamptz',
  body: 'text',
} as const;
export type ExplainedEvent = Row<typeof shape>;

const LIST = 'e.id, e.type, e.sequence, e.transfer_id, e.created_at, e.body';

/** The newest events of an invoice. */
export const findEventsOfInvoice = rowsOf(
  'explain-events-of-invoice',
  shape,
  `select ${LIST} from events e where e.project_id = $1 and e.invoice_id = $2 order by e.sequence desc limit $3`,
  (invoice: { projectId: string; id: string }, limit: number) => [invoice.projectId, invoice.id, limit],
);

/** The events that are about transfers, the oldest first. */
export const findEventsOfTransfers = rowsOf(
  'explain-events-of-transfers',
  shape,
  `select ${LIST} from events e where e.transfer_id = any($1::uuid[]) order by e.created_at, e.id limit $2`,
  (transferIds: readonly string[], limit: number) => [transferIds, limit],
);

/** Bodies are not indexed. So many of the newest events are searched, which are those of some days in a busy shop. */
export const EVENTS_SEARCHED = 20_000;

/** Those of the newest 20,000 events that hold this id, and so may tell of an exact transfer of this transaction; the newest first. */
export const findConfirmingOf = rowsOf(
  'explain-events-of-transaction',
  { ...shape, projectId: 'uuid', invoiceId: 'uuid' },
  `select ${LIST}, e.project_id, e.invoice_id
   from (select * from events order by id desc limit ${EVENTS_SEARCHED}) e
   where e.type = 'invoice.confirming' and e.invoice_id is not null and strpos(e.body, $1) > 0
     and ($2::uuid[] is null or e.project_id = any($2))
   order by e.id desc limit $3`,
  (txId: string, projects: Actor['projects'], limit: number) => [txId, projects, limit],
);

type ToldTransaction = { txId: string; blockNumber: number; blockTime: string; from: string; amount: string };

/**
 * The transfer that an event tells of; `null` if it tells of none. Only `eventBody` writes bodies.
 * PostgreSQL refuses some texts that JSON allows, so no query looks inside.
 */
export function transactionOf({ body }: Pick<ExplainedEvent, 'body'>): ToldTransaction | null {
  const { data } = JSON.parse(body) as { data?: { payment?: { transaction: ToldTransaction | null } } };
  return data?.payment?.transaction ?? null;
}

const deliveryShape = {
  eventId: 'uuid',
  endpointId: 'uuid',
  url: 'text',
  endpointDisabled: maybe({ at: 'timestamptz', reason: 'text' }),
  status: text<'pending' | 'delivered' | 'dead'>(),
  attemptCount: 'int4',
  nextAttemptAt: 'timestamptz',
  finishedAt: 'timestamptz?',
  lastStatus: 'int4?',
  lastError: 'text?',
  /** The number of all deliveries that fit, also beyond the limit. */
  total: count,
} as const;
/** A delivery, and where it is to go. */
export type ExplainedDelivery = Row<typeof deliveryShape>;

/** The newest deliveries of events. */
export const findDeliveries = rowsOf(
  'explain-deliveries',
  deliveryShape,
  `select d.event_id, d.endpoint_id, w.url, w.disabled_at as endpoint_disabled_at,
     coalesce(w.disabled_reason, '') as endpoint_disabled_reason, d.status, d.attempt_count, d.next_attempt_at,
     d.finished_at, d.last_status, d.last_error, count(*) over () as total
   from deliveries d join webhook_endpoints w on w.id = d.endpoint_id
   where d.event_id = any($1::uuid[]) order by d.created_at desc, d.event_id desc, d.endpoint_id limit $2`,
  (eventIds: readonly string[], limit: number) => [eventIds, limit],
);

const attemptShape = {
  eventId: 'uuid',
  endpointId: 'uuid',
  attempt: 'int4',
  at: 'timestamptz',
  status: 'int4?',
  error: 'text?',
} as const;
/** The result of an attempt. `status` is the HTTP status, `null` if none came. */
export type ExplainedAttempt = Row<typeof attemptShape>;

/** The newest attempts of each delivery that were logged, at most so many, the oldest first. */
export const findAttempts = rowsOf(
  'explain-attempts',
  attemptShape,
  `select l.event_id, l.endpoint_id, l.attempt, l.attempted_at as at, l.status, l.error
   from rows from (unnest($1::uuid[]), unnest($2::uuid[])) as wanted (event_id, endpoint_id)
   cross join lateral (
     select * from delivery_attempts
     where event_id = wanted.event_id and endpoint_id = wanted.endpoint_id order by attempt desc limit $3::int8) l
   order by l.attempted_at, l.event_id, l.endpoint_id, l.attempt`,
  (of: readonly { eventId: string; endpointId: string }[], limit: number) => [
    of.map(({ eventId }) => eventId),
    of.map(({ endpointId }) => endpointId),
    limit,
  ],
);
