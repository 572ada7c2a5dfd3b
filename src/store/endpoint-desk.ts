import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';
import { findWebhookEndpoint, type WebhookEndpoint } from './webhook-endpoints.ts';

const lock = statement(
  'endpoint-desk-lock',
  { id: 'uuid' },
  'select id from webhook_endpoints where id = $1 for no key update',
);

/** An endpoint, held until the transaction ends, so that of two operators one sees what the other did. */
export async function lockWebhookEndpoint(tx: Sql, id: string): Promise<WebhookEndpoint | null> {
  await tx.run(lock, [id]);
  return findWebhookEndpoint(tx, id);
}

/** What operators want to know of an endpoint at a glance. `waiting` counts undelivered events up to 10,000. */
export type EndpointActivity = {
  waiting: number;
  lastAttempt: null | { attemptedAt: UnixMs; latencyMs: number | null; status: number | null; error: string | null };
};

export const MAX_WAITING = 10_000;

/** The last attempt is looked for among the newest events and those that are retried, so a long history costs nothing. */
const selectActivity = statement(
  'endpoint-desk-activity',
  {
    endpoint_id: 'uuid',
    waiting: 'int8',
    attempted_at: 'timestamptz?',
    latency_ms: 'int4?',
    status: 'int4?',
    error: 'text?',
  },
  `select asked.id as endpoint_id, waiting.count as waiting, last.attempted_at, last.latency_ms, last.status, last.error
   from unnest($1::uuid[]) asked (id) join webhook_endpoints w on w.id = asked.id
   cross join lateral (
     select count(*) as count from (
       select from deliveries where endpoint_id = asked.id and status = 'pending' limit ${MAX_WAITING}) pending) waiting
   left join lateral (
     select a.attempted_at, a.latency_ms, a.status, a.error
     from (
       (select id as event_id from events where project_id = w.project_id order by position desc limit 200)
       union
       (select event_id from deliveries where endpoint_id = asked.id and status = 'pending' and attempt_count > 0 limit 1000)) d
     join delivery_attempts a on a.event_id = d.event_id and a.endpoint_id = asked.id
     order by a.attempted_at desc limit 1) last on true`,
);

/** By the id of the endpoint. */
export async function findEndpointActivity(
  db: Sql,
  endpointIds: readonly string[],
): Promise<Map<string, EndpointActivity>> {
  const rows = await db.run(selectActivity, [endpointIds]);
  return new Map(
    rows.map(({ endpoint_id, waiting, attempted_at, latency_ms, status, error }) => {
      const lastAttempt =
        attempted_at === null ? null : { attemptedAt: attempted_at, latencyMs: latency_ms, status, error };
      return [endpoint_id, { waiting: Number(waiting), lastAttempt }];
    }),
  );
}
