import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { listColumns, type Row, statement, text } from '../db/statement.ts';

const columns = {
  id: 'uuid',
  projectId: 'uuid',
  network: text<Network>(),
  url: 'text',
  description: 'text',
  eventTypes: 'text[]?',
  createdAt: 'timestamptz',
  failingSince: 'timestamptz?',
  consecutiveFailures: 'int4',
  openUntil: 'timestamptz?',
  disabledAt: 'timestamptz?',
  disabledReason: 'text?',
} as const;

/** `eventTypes` null: all. `openUntil`: no attempt before, because attempts kept failing. */
export type WebhookEndpoint = Row<typeof columns>;

const COLUMNS = listColumns(columns);

const insert = statement(
  'webhook-endpoint-insert',
  { id: 'uuid' },
  `insert into webhook_endpoints (id, project_id, network, url, description, event_types)
   select $1, p.id, p.network, $3, $4, $5 from projects p where p.id = $2
   on conflict (id) do nothing returning id`,
);

/** Adds an endpoint to a project, on the project's network; `false` if one with this id exists. It needs a secret before it is of use. */
export async function insertWebhookEndpoint(
  db: Sql,
  endpoint: { id: string; projectId: string; url: string; description?: string; eventTypes?: readonly string[] | null },
): Promise<boolean> {
  const { id, projectId, url, description = '', eventTypes = null } = endpoint;
  return (await db.run(insert, [id, projectId, url, description, eventTypes])).length === 1;
}

const list = statement(
  'webhook-endpoint-list',
  columns,
  `select ${COLUMNS} from webhook_endpoints where project_id = $1 order by created_at, id limit 1000`,
);

/** The oldest 1,000 endpoints of a project. */
export function listWebhookEndpoints(db: Sql, projectId: string): Promise<WebhookEndpoint[]> {
  return db.run(list, [projectId]);
}

const find = statement('webhook-endpoint-find', columns, `select ${COLUMNS} from webhook_endpoints where id = $1`);

export async function findWebhookEndpoint(db: Sql, id: string): Promise<WebhookEndpoint | null> {
  return (await db.run(find, [id]))[0] ?? null;
}

const change = statement(
  'webhook-endpoint-change',
  { id: 'uuid' },
  `update webhook_endpoints set url = $2, description = $3, event_types = $4,
     failing_since = case when url = $2 then failing_since end,
     consecutive_failures = case when url = $2 then consecutive_failures else 0 end,
     open_until = case when url = $2 then open_until end
   where id = $1 returning id`,
);

/**
 * Changes an endpoint. A failure at another URL says nothing about this one. Undelivered events go to the new URL when they are
 * next due; types count for events from now on. `false` if there is none with this id.
 */
export async function changeWebhookEndpoint(
  db: Sql,
  id: string,
  to: { url: string; description: string; eventTypes: readonly string[] | null },
): Promise<boolean> {
  return (await db.run(change, [id, to.url, to.description, to.eventTypes])).length === 1;
}

const enable = statement(
  'webhook-endpoint-enable',
  { id: 'uuid' },
  `update webhook_endpoints
   set disabled_at = null, disabled_reason = null, failing_since = null, consecutive_failures = 0, open_until = null
   where id = $1 returning id`,
);

/** Lets an endpoint be attempted, and forgets its failures. `false` if there is none with this id. */
export async function enableWebhookEndpoint(db: Sql, id: string): Promise<boolean> {
  return (await db.run(enable, [id])).length === 1;
}

const disable = statement(
  'webhook-endpoint-disable',
  { id: 'uuid' },
  `update webhook_endpoints set disabled_at = $2, disabled_reason = $3 where id = $1 and disabled_at is null returning id`,
);

/** Stops attempts to an endpoint. `false` if it is disabled already, or there is none. Its deliveries stay as they are. */
export async function disableWebhookEndpoint(db: Sql, id: string, now: UnixMs, reason: string): Promise<boolean> {
  return (await db.run(disable, [id, new Date(now), reason])).length === 1;
}
