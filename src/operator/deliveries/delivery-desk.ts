import type { EventType } from '../../domain/event.ts';
import type { Sql } from '../../store/db/database.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { listColumns, type Row, statement, text } from '../../store/db/statement.ts';

export type DeliveryFilter = {
  endpointId: string | null;
  /** `failing`: pending, and the last attempt failed. `dead`: without tests, unless `type` asks for them. */
  status: 'pending' | 'failing' | 'delivered' | 'dead' | null;
  type: EventType | null;
  limit: number;
};

/** Events by their positions: from `first` on, before `end`. */
export type PositionRange = { first: bigint; end: bigint };

const listed = {
  eventId: 'uuid',
  endpointId: 'uuid',
  /** Nothing is sent until it is enabled. */
  isEndpointDisabled: 'bool',
  type: text<EventType>(),
  createdAt: 'timestamptz',
  position: 'int8',
  /** `null` where the event is about no invoice. */
  invoiceId: 'uuid?',
  externalId: 'text?',
  status: text<'pending' | 'delivered' | 'dead'>(),
  attemptCount: 'int4',
  maxAttempts: 'int4',
  nextAttemptAt: 'timestamptz',
  finishedAt: 'timestamptz?',
  lastStatus: 'int4?',
  lastError: 'text?',
} as const;

/** A delivery as operators see it. Ids are UUIDs. */
export type DeskDelivery = Row<typeof listed>;

const SHOWN = `d.event_id, d.endpoint_id,
     (select disabled_at is not null from webhook_endpoints where id = d.endpoint_id) as is_endpoint_disabled, e.type, e.created_at, e.position, d.invoice_id,
     (select external_id from invoices where project_id = e.project_id and id = e.invoice_id) as external_id,
     d.status, d.attempt_count, d.max_attempts, d.next_attempt_at, d.finished_at, d.last_status, d.last_error`;

const WANTED = `($2::uuid is null or d.endpoint_id = $2) and case $3::text
       when 'pending' then d.status = 'pending' when 'failing' then d.status = 'pending' and d.last_error is not null
       when 'delivered' then d.status = 'delivered' when 'dead' then d.status = 'dead' and ($4::text is not null or e.type <> 'ping') else true end
     and ($4::text is null or e.type = $4)`;

const fromText = (tables: string, among: string) =>
  `select ${SHOWN} from ${tables} where ${among} and ${WANTED} order by e.position desc, d.endpoint_id limit $5::int8`;
const EVENTS = 'events e join deliveries d on d.event_id = e.id';
const IN_RANGE = 'e.project_id = $1 and e.position >= $6 and e.position < $7';
// Said in the text of the statement, the status lets PostgreSQL read the index of such deliveries.
const openText = (status: 'pending' | 'dead') =>
  fromText(
    `webhook_endpoints w join deliveries d on d.endpoint_id = w.id and d.status = '${status}' join events e on e.id = d.event_id`,
    IN_RANGE.replace('e.project_id', 'w.project_id'),
  );

const selectRange = statement('delivery-desk-list', listed, fromText(EVENTS, IN_RANGE));
const selectPending = statement('delivery-desk-pending', listed, openText('pending'));
const selectDead = statement('delivery-desk-dead', listed, openText('dead'));

/** Those that are not delivered have indexes of their own, so the range of events need not be bounded. */
export function isIndexed(status: DeliveryFilter['status']): boolean {
  return status === 'dead' || status === 'pending' || status === 'failing';
}

/**
 * Deliveries of the events in a range of positions, the newest first. There is no index for every other question that may be asked,
 * so the caller bounds the range unless the status `isIndexed`.
 */
export function listRange(db: Sql, projectId: string, { first, end }: PositionRange, filter: DeliveryFilter) {
  const select = !isIndexed(filter.status) ? selectRange : filter.status === 'dead' ? selectDead : selectPending;
  return db.run(select, [...parameters(projectId, filter), first, end]);
}

type Subject = { eventId: string | null; invoiceId: string | null };

/** The same for one event, or for all events of one invoice (UUIDs). */
export const listDeliveriesOf = rowsOf(
  'delivery-desk-of-events',
  listed,
  fromText(EVENTS, 'e.project_id = $1 and (e.id = $6 or e.invoice_id = $7)'),
  (projectId: string, { eventId, invoiceId }: Subject, filter: DeliveryFilter) => [
    ...parameters(projectId, filter),
    eventId,
    invoiceId,
  ],
);

function parameters(projectId: string, { endpointId, status, type, limit }: DeliveryFilter) {
  return [projectId, endpointId, status, type, limit] as const;
}

const event = {
  id: 'uuid',
  projectId: 'uuid',
  type: text<EventType>(),
  createdAt: 'timestamptz',
  position: 'int8',
  body: 'text',
} as const;

/** An event without its deliveries. Ids are UUIDs. */
export type DeskEvent = Row<typeof event>;

/** Events by their ids, in their order within a project. Ids of no event are left out. */
export const findDeskEvents = rowsOf(
  'delivery-desk-events',
  event,
  `select ${listColumns(event)} from events where id = any($1::uuid[]) order by project_id, position`,
  (ids: readonly string[]) => [ids],
);

/** The id of the event at a position. */
export const findEventAt = answerOf(
  'delivery-desk-event-at',
  { id: 'uuid' },
  'select id from events where project_id = $1 and position = $2',
  (projectId: string, position: bigint) => [projectId, position],
  ([row]) => row?.id ?? null,
);

const attempt = {
  endpointId: 'uuid',
  attempt: 'int4',
  attemptedAt: 'timestamptz',
  latencyMs: 'int4?',
  status: 'int4?',
  error: 'text?',
  answer: 'text?',
} as const;

/** An attempt as it was recorded. `answer` is the redacted beginning of the endpoint's answer. */
export type DeskAttempt = Row<typeof attempt>;

/** The newest attempts to deliver an event to endpoints, at most `limit` to each, oldest first. */
export const findDeskAttempts = rowsOf(
  'delivery-desk-attempts',
  attempt,
  `select ${listColumns(attempt, 'a.')}
   from unnest($2::uuid[]) asked (id)
   cross join lateral (
     select * from delivery_attempts
     where event_id = $1 and endpoint_id = asked.id order by attempt desc limit $3::int8) a
   order by a.endpoint_id, a.attempt`,
  (eventId: string, endpointIds: readonly string[], limit: number) => [eventId, endpointIds, limit],
);
