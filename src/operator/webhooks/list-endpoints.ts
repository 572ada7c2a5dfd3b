import { toIso, type UnixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { rowsOf } from '../../store/db/rows-of.ts';
import { count, maybe } from '../../store/db/statement.ts';
import { listWebhookEndpoints, type WebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import { findActiveSecrets } from '../../store/outbox/webhook-secrets.ts';
import { quotePage } from '../../webhooks/web-page.ts';
import type { Actor } from '../actor.ts';
import { selectProject } from '../select-project.ts';
import { viewEndpoint } from './view-endpoint.ts';
import type { EndpointListView, ListedEndpointView } from './views.ts';

/** The endpoints of a project with how they do, without their secrets, the oldest first; at most 1,000. */
export async function listEndpoints(
  { db, now }: { db: Sql; now(): UnixMs },
  actor: Actor,
  { projectId }: { projectId: string | undefined },
): Promise<EndpointListView> {
  const project = await selectProject(db, actor, projectId);
  return { data: await viewListed(db, await listWebhookEndpoints(db, project.id), now()) };
}

/** Endpoints with how they do at a time. */
export async function viewListed(
  db: Sql,
  endpoints: readonly WebhookEndpoint[],
  at: UnixMs,
): Promise<ListedEndpointView[]> {
  const ids = endpoints.map(({ id }) => id);
  const activities = await findActivity(db, ids);
  const secrets = await findActiveSecrets(db, ids, at);
  return endpoints.map((endpoint) => {
    const { waiting = 0, last = null } = activities.find(({ endpointId }) => endpointId === endpoint.id) ?? {};
    const own = secrets.filter(({ endpointId }) => endpointId === endpoint.id);
    return {
      ...viewEndpoint(endpoint, at),
      ...{ undelivered: waiting, isUndeliveredMore: waiting >= MAX_WAITING },
      lastAttempt: last && viewAttempt(last),
      secrets: own.map(({ createdAt, endsAt }) => ({ createdAt: toIso(createdAt), endsAt: endsAt && toIso(endsAt) })),
    };
  });
}

function viewAttempt({ answer, ...attempt }: NonNullable<Activity['last']>) {
  return { ...attempt, attemptedAt: toIso(attempt.attemptedAt), webPage: quotePage(answer) };
}

/** Undelivered events are counted up to so many. */
const MAX_WAITING = 10_000;

/** The last attempt is looked for among the newest events and those that are retried, so a long history costs nothing. */
const findActivity = rowsOf(
  'endpoint-desk-activity',
  {
    endpointId: 'uuid',
    waiting: count,
    last: maybe({ attemptedAt: 'timestamptz', latencyMs: 'int4?', status: 'int4?', error: 'text?', answer: 'text?' }),
  },
  `select asked.id as endpoint_id, waiting.count as waiting, last.attempted_at as last_attempted_at,
     last.latency_ms as last_latency_ms, last.status as last_status, last.error as last_error, last.answer as last_answer
   from unnest($1::uuid[]) asked (id) join webhook_endpoints w on w.id = asked.id
   cross join lateral (
     select count(*) as count from (
       select from deliveries where endpoint_id = asked.id and status = 'pending' limit ${MAX_WAITING}) pending) waiting
   left join lateral (
     select a.attempted_at, a.latency_ms, a.status, a.error, a.answer
     from (
       (select id as event_id from events where project_id = w.project_id order by position desc limit 200)
       union
       (select event_id from deliveries where endpoint_id = asked.id and status = 'pending' and attempt_count > 0 limit 1000)) d
     join delivery_attempts a on a.event_id = d.event_id and a.endpoint_id = asked.id
     order by a.attempted_at desc limit 1) last on true`,
  (endpointIds: readonly string[]) => [endpointIds],
);

type Activity = Awaited<ReturnType<typeof findActivity>>[number];
