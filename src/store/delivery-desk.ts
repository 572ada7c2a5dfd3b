import type { EventType } from '../domain/event.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { type Row, statement } from './statement.ts';

/** A delivery as operators see it. Ids are UUIDs; `invoiceId` is `null` where the event is about no invoice. */
export type DeskDelivery = {
  eventId: string;
  endpointId: string;
  /** Nothing is sent until it is enabled. */
  isEndpointDisabled: boolean;
  type: EventType;
  createdAt: UnixMs;
  position: bigint;
  invoiceId: string | null;
  externalId: string | null;
  status: 'pending' | 'delivered' | 'dead';
  attemptCount: number;
  maxAttempts: number;
  nextAttemptAt: UnixMs;
  finishedAt: UnixMs | null;
  lastStatus: number | null;
  lastError: string | null;
};

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
  event_id: 'uuid',
  endpoint_id: 'uuid',
  is_disabled: 'bool?',
  type: 'text',
  created_at: 'timestamptz',
  position: 'int8',
  invoice_id: 'uuid?',
  external_id: 'text?',
  status: 'text',
  attempt_count: 'int4',
  max_attempts: 'int4',
  next_attempt_at: 'timestamptz',
  finished_at: 'timestamptz?',
  last_status: 'int4?',
  last_error: 'text?',
} as const;

const SHOWN = `d.event_id, d.endpoint_id,
     (select disabled_at is not null from webhook_endpoints where id = d.endpoint_id) as is_disabled, e.type, e.created_at, e.position, d.invoice_id,
     (select external_id from invoices where project_id = e.project_id and id = e.invoice_id) as external_id,
     d.status, d.attempt_count, d.max_attempts, d.next_attempt_at, d.finished_at, d.last_status, d.last_error`;

const WANTED = `($2::uuid is null or d.endpoint_id = $2) and case $3::text
       when 'pending' then d.status = 'pending' when 'failing' then d.status = 'pending' and d.last_error is not null
       when 'delivered' then d.status = 'delivered' when 'dead' then d.status = 'dead' and ($4::text is not null or e.type <> 'ping') else true end
     and ($4::text is null or e.type = $4)`;

const NEWEST_FIRST = 'order by e.position desc, d.endpoint_id limit $5::int8';

const listRange = statement(
  'delivery-desk-list',
  listed,
  `select ${SHOWN} from events e join deliveries d on d.event_id = e.id
   where e.project_id = $1 and e.position >= $6 and e.position < $7 and ${WANTED} ${NEWEST_FIRST}`,
);

/**
 * Deliveries of the events in a range of positions, the newest first. There is no index for every question that may be asked, so
 * the caller bounds the range.
 */
export async function listDeliveries(
  db: Sql,
  projectId: string,
  { first, end }: PositionRange,
  filter: DeliveryFilter,
): Promise<DeskDelivery[]> {
  return (await db.run(listRange, [...parameters(projectId, filter), first, end])).map(toDeskDelivery);
}

// Said in the text of the statement, the status lets PostgreSQL read the index of such deliveries.
const openText = (status: string) => `select ${SHOWN}
   from webhook_endpoints w
   join deliveries d on d.endpoint_id = w.id and d.status = '${status}'
   join events e on e.id = d.event_id
   where w.project_id = $1 and e.position >= $6 and e.position < $7 and ${WANTED} ${NEWEST_FIRST}`;

const listPending = statement('delivery-desk-pending', listed, openText('pending'));
const listDead = statement('delivery-desk-dead', listed, openText('dead'));

/** The same for those that are not delivered, which have indexes of their own: the range need not be bounded. */
export async function listUndelivered(
  db: Sql,
  projectId: string,
  { first, end }: PositionRange,
  filter: DeliveryFilter & { status: 'pending' | 'failing' | 'dead' },
): Promise<DeskDelivery[]> {
  const select = filter.status === 'dead' ? listDead : listPending;
  return (await db.run(select, [...parameters(projectId, filter), first, end])).map(toDeskDelivery);
}

const listOfEvents = statement(
  'delivery-desk-of-events',
  listed,
  `select ${SHOWN} from events e join deliveries d on d.event_id = e.id
   where e.project_id = $1 and (e.id = $6 or e.invoice_id = $7) and ${WANTED} ${NEWEST_FIRST}`,
);

/** The same for one event, or for all events of one invoice (UUIDs). */
export async function listDeliveriesOf(
  db: Sql,
  projectId: string,
  of: { eventId: string | null; invoiceId: string | null },
  filter: DeliveryFilter,
): Promise<DeskDelivery[]> {
  return (await db.run(listOfEvents, [...parameters(projectId, filter), of.eventId, of.invoiceId])).map(toDeskDelivery);
}

function parameters(projectId: string, { endpointId, status, type, limit }: DeliveryFilter) {
  return [projectId, endpointId, status, type, limit] as const;
}

/**
 * Positions have no gap and follow the time, so a time is found among them in as many steps as the count has bits. Transactions
 * that were under way together are in the order of their commits, so the answer is right to the time that those take.
 */
const searchPosition = statement(
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
);

/** The position of the first event of a project at or after a time; of none, the position that the next event takes. */
export async function findPositionAt(db: Sql, projectId: string, time: UnixMs): Promise<bigint> {
  const [row] = await db.run(searchPosition, [projectId, new Date(time)]);
  return row?.position ?? 1n;
}

function toDeskDelivery(row: Row<typeof listed>): DeskDelivery {
  return {
    eventId: row.event_id,
    endpointId: row.endpoint_id,
    isEndpointDisabled: row.is_disabled === true,
    type: row.type as EventType,
    createdAt: row.created_at,
    position: row.position,
    invoiceId: row.invoice_id,
    externalId: row.external_id,
    status: row.status as DeskDelivery['status'],
    attemptCount: row.attempt_count,
    maxAttempts: row.max_attempts,
    nextAttemptAt: row.next_attempt_at,
    finishedAt: row.finished_at,
    lastStatus: row.last_status,
    lastError: row.last_error,
  };
}

/** An event without its deliveries. Ids are UUIDs. */
export type DeskEvent = {
  id: string;
  projectId: string;
  type: EventType;
  createdAt: UnixMs;
  position: bigint;
  body: string;
};

const selectEvents = statement(
  'delivery-desk-events',
  { id: 'uuid', project_id: 'uuid', type: 'text', created_at: 'timestamptz', position: 'int8', body: 'text' },
  'select id, project_id, type, created_at, position, body from events where id = any($1::uuid[]) order by project_id, position',
);

/** Events by their ids, in their order within a project. One that does not exist is left out. */
export async function findDeskEvents(db: Sql, ids: readonly string[]): Promise<DeskEvent[]> {
  return (await db.run(selectEvents, [ids])).map((row) => ({
    id: row.id,
    projectId: row.project_id,
    type: row.type as EventType,
    createdAt: row.created_at,
    position: row.position,
    body: row.body,
  }));
}

const selectEventAt = statement(
  'delivery-desk-event-at',
  { id: 'uuid' },
  'select id from events where project_id = $1 and position = $2',
);

/** The id of the event at a position. */
export async function findEventAt(db: Sql, projectId: string, position: bigint): Promise<string | null> {
  const [row] = await db.run(selectEventAt, [projectId, position]);
  return row?.id ?? null;
}

/** One attempt as it was recorded. `answer` is the redacted beginning of what the endpoint answered. */
export type DeskAttempt = {
  endpointId: string;
  attempt: number;
  attemptedAt: UnixMs;
  latencyMs: number | null;
  status: number | null;
  error: string | null;
  answer: string | null;
};

const selectAttempts = statement(
  'delivery-desk-attempts',
  {
    endpoint_id: 'uuid',
    attempt: 'int4',
    attempted_at: 'timestamptz',
    latency_ms: 'int4?',
    status: 'int4?',
    error: 'text?',
    answer: 'text?',
  },
  `select a.endpoint_id, a.attempt, a.attempted_at, a.latency_ms, a.status, a.error, a.answer
   from unnest($2::uuid[]) asked (id)
   cross join lateral (
     select * from delivery_attempts
     where event_id = $1 and endpoint_id = asked.id order by attempt desc limit $3::int8) a
   order by a.endpoint_id, a.attempt`,
);

/** The newest attempts to deliver an event to endpoints, at most `limit` to each, oldest first. */
export async function findDeskAttempts(
  db: Sql,
  eventId: string,
  endpointIds: readonly string[],
  limit: number,
): Promise<DeskAttempt[]> {
  return (await db.run(selectAttempts, [eventId, endpointIds, limit])).map((row) => ({
    endpointId: row.endpoint_id,
    attempt: row.attempt,
    attemptedAt: row.attempted_at,
    latencyMs: row.latency_ms,
    status: row.status,
    error: row.error,
    answer: row.answer,
  }));
}
