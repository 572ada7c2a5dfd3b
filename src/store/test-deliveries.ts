import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { LEASE_MS } from './deliveries.ts';
import { statement } from './statement.ts';

const insert = statement(
  'test-delivery-insert',
  {},
  `insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, attempt_count, max_attempts, next_attempt_at,
     created_at)
   select e.id, $2, e.project_id, e.invoice_id, e.sequence, 1, 1, $3, $4 from events e where e.id = $1`,
);

/** Plans the one attempt of a test and leases it to the caller, so that no dispatcher makes it as well. */
export async function insertTestDelivery(tx: Sql, eventId: string, endpointId: string, now: UnixMs): Promise<void> {
  await tx.run(insert, [eventId, endpointId, new Date(now + LEASE_MS), new Date(now)]);
}

const record = statement(
  'test-delivery-record',
  { event_id: 'uuid' },
  `with ended as (
     update deliveries set status = case when $5::text is null then 'delivered' else 'dead' end, finished_at = $3,
       last_status = $4, last_error = $5
     where event_id = $1 and endpoint_id = $2 and status = 'pending' and attempt_count = 1
     returning event_id, endpoint_id, attempt_count)
   insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at, status, error, latency_ms, answer)
   select event_id, endpoint_id, attempt_count, $6::timestamptz, $4, $5, $7, $8 from ended
   on conflict (event_id, endpoint_id, attempt) do nothing
   returning event_id`,
);

/**
 * Ends the delivery of a test and logs its attempt. That a test fails or succeeds counts for nothing at the endpoint: it is the
 * operator who draws conclusions. `error` `null`: delivered.
 */
export async function recordTestAttempt(
  db: Sql,
  ids: { eventId: string; endpointId: string },
  outcome: {
    attemptedAt: UnixMs;
    now: UnixMs;
    latencyMs: number | null;
    status: number | null;
    error: string | null;
    answer: string | null;
  },
): Promise<void> {
  const { attemptedAt, now, latencyMs, status, error, answer } = outcome;
  await db.run(record, [
    ids.eventId,
    ids.endpointId,
    new Date(now),
    status,
    error,
    new Date(attemptedAt),
    latencyMs,
    answer,
  ]);
}
