import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { type Row, statement } from './statement.ts';

/** An event. `transaction` is what its body says of the transfer that it is about, where it is about one. */
export type ExplainedEvent = {
  id: string;
  type: string;
  sequence: number;
  transferId: string | null;
  createdAt: UnixMs;
  transaction: { txId: string; blockNumber: number; blockTime: string; from: string; amount: string } | null;
};

const columns = {
  id: 'uuid',
  type: 'text',
  sequence: 'int4',
  transfer_id: 'uuid?',
  created_at: 'timestamptz',
  body: 'text',
} as const;
const LIST = 'e.id, e.type, e.sequence, e.transfer_id, e.created_at, e.body';

const ofInvoice = statement(
  'explain-events-of-invoice',
  columns,
  `select ${LIST} from events e where e.project_id = $1 and e.invoice_id = $2 order by e.sequence desc limit $3`,
);

/** The newest events of an invoice. */
export async function findEventsOfInvoice(
  db: Sql,
  invoice: { projectId: string; id: string },
  limit: number,
): Promise<ExplainedEvent[]> {
  return (await db.run(ofInvoice, [invoice.projectId, invoice.id, limit])).map(toEvent);
}

const ofTransfers = statement(
  'explain-events-of-transfers',
  columns,
  `select ${LIST} from events e where e.transfer_id = any($1::uuid[]) order by e.created_at, e.id limit $2`,
);

/** The events that are about transfers, the oldest first. */
export async function findEventsOfTransfers(
  db: Sql,
  transferIds: readonly string[],
  limit: number,
): Promise<ExplainedEvent[]> {
  return transferIds.length === 0 ? [] : (await db.run(ofTransfers, [transferIds, limit])).map(toEvent);
}

/** Bodies are not indexed. So many of the newest events are searched, which are those of some days in a busy shop. */
export const EVENTS_SEARCHED = 20_000;

const ofTransaction = statement(
  'explain-events-of-transaction',
  { ...columns, project_id: 'uuid', invoice_id: 'uuid' },
  `select ${LIST}, e.project_id, e.invoice_id
   from (select * from events order by id desc limit ${EVENTS_SEARCHED}) e
   where e.type = 'invoice.confirming' and e.invoice_id is not null and strpos(e.body, $1) > 0
     and ($2::uuid is null or e.project_id = $2)
   order by e.id desc limit $3`,
);

/** Of the newest 20,000 events those that told of an exact transfer of this transaction (64 hex characters), the newest first. */
export async function findConfirmingOf(
  db: Sql,
  txId: string,
  projectId: string | null,
  limit: number,
): Promise<{ event: ExplainedEvent; projectId: string; invoiceId: string }[]> {
  const rows = await db.run(ofTransaction, [txId, projectId, limit]);
  return rows
    .map((row) => ({ event: toEvent(row), projectId: row.project_id, invoiceId: row.invoice_id }))
    .filter(({ event }) => event.transaction?.txId === txId);
}

function toEvent(row: Row<typeof columns>): ExplainedEvent {
  return {
    id: row.id,
    type: row.type,
    sequence: row.sequence,
    transferId: row.transfer_id,
    createdAt: row.created_at,
    transaction: readTransaction(row.body),
  };
}

/** Bodies are written by `eventBody` only. PostgreSQL refuses some texts that JSON allows, so it is not asked to look inside. */
function readTransaction(body: string): ExplainedEvent['transaction'] {
  const { data } = JSON.parse(body) as { data?: { payment?: { transaction: ExplainedEvent['transaction'] } } };
  return data?.payment?.transaction ?? null;
}

/** A delivery, and where it is to go. */
export type ExplainedDelivery = {
  eventId: string;
  endpointId: string;
  url: string;
  endpointDisabled: { at: UnixMs; reason: string } | null;
  status: 'pending' | 'delivered' | 'dead';
  attemptCount: number;
  nextAttemptAt: UnixMs;
  finishedAt: UnixMs | null;
  lastStatus: number | null;
  lastError: string | null;
};

const deliveries = statement(
  'explain-deliveries',
  {
    event_id: 'uuid',
    endpoint_id: 'uuid',
    url: 'text',
    disabled_at: 'timestamptz?',
    disabled_reason: 'text?',
    status: 'text',
    attempt_count: 'int4',
    next_attempt_at: 'timestamptz',
    finished_at: 'timestamptz?',
    last_status: 'int4?',
    last_error: 'text?',
    total: 'int8',
  },
  `select d.event_id, d.endpoint_id, w.url, w.disabled_at, w.disabled_reason, d.status, d.attempt_count, d.next_attempt_at,
     d.finished_at, d.last_status, d.last_error, count(*) over () as total
   from deliveries d join webhook_endpoints w on w.id = d.endpoint_id
   where d.event_id = any($1::uuid[]) order by d.created_at desc, d.event_id desc, d.endpoint_id limit $2`,
);

/** The newest deliveries of events, and how many there are. */
export async function findDeliveries(
  db: Sql,
  eventIds: readonly string[],
  limit: number,
): Promise<{ deliveries: ExplainedDelivery[]; total: number }> {
  const rows = eventIds.length === 0 ? [] : await db.run(deliveries, [eventIds, limit]);
  return { deliveries: rows.map(toDelivery), total: Number(rows[0]?.total ?? 0n) };
}

function toDelivery(row: Row<typeof deliveries.columns>): ExplainedDelivery {
  return {
    eventId: row.event_id,
    endpointId: row.endpoint_id,
    url: row.url,
    endpointDisabled: row.disabled_at === null ? null : { at: row.disabled_at, reason: row.disabled_reason ?? '' },
    status: row.status as ExplainedDelivery['status'],
    attemptCount: row.attempt_count,
    nextAttemptAt: row.next_attempt_at,
    finishedAt: row.finished_at,
    lastStatus: row.last_status,
    lastError: row.last_error,
  };
}

/** What became of one attempt. `status` is the HTTP status, `null` where none came. */
export type ExplainedAttempt = {
  eventId: string;
  endpointId: string;
  attempt: number;
  at: UnixMs;
  status: number | null;
  error: string | null;
};

const attempts = statement(
  'explain-attempts',
  {
    event_id: 'uuid',
    endpoint_id: 'uuid',
    attempt: 'int4',
    attempted_at: 'timestamptz',
    status: 'int4?',
    error: 'text?',
  },
  `select l.event_id, l.endpoint_id, l.attempt, l.attempted_at, l.status, l.error
   from rows from (unnest($1::uuid[]), unnest($2::uuid[])) as wanted (event_id, endpoint_id)
   join delivery_attempts l on l.event_id = wanted.event_id and l.endpoint_id = wanted.endpoint_id
   order by l.attempted_at, l.event_id, l.endpoint_id, l.attempt limit $3`,
);

/** The logged attempts of deliveries, the oldest first. */
export async function findAttempts(
  db: Sql,
  keys: readonly { eventId: string; endpointId: string }[],
  limit: number,
): Promise<ExplainedAttempt[]> {
  if (keys.length === 0) return [];
  const lists = [keys.map(({ eventId }) => eventId), keys.map(({ endpointId }) => endpointId)];
  return (await db.run(attempts, [...lists, limit])).map((row) => ({
    eventId: row.event_id,
    endpointId: row.endpoint_id,
    attempt: row.attempt,
    at: row.attempted_at,
    status: row.status,
    error: row.error,
  }));
}
