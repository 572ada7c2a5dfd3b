import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { statement } from '../db/statement.ts';
import { IS_PENDING, type LeasedDelivery, tokens } from './deliveries.ts';

/**
 * An attempt's outcome. `nextAttemptAt` is set after a failure; null means that this was the last attempt. `status` is the HTTP status.
 * `error` is null if the attempt succeeded. `answer` is the beginning of the endpoint's response.
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
