import type { Sql } from './database.ts';
import { type Row, statement } from './statement.ts';

const listColumns = {
  id: 'uuid',
  url: 'text',
  secret: 'text',
  created_at: 'timestamptz',
  failing_since: 'timestamptz?',
  disabled_at: 'timestamptz?',
  disabled_reason: 'text?',
} as const;

export type ListedWebhookEndpoint = Row<typeof listColumns>;

const insert = statement(
  'webhook-endpoint-insert',
  {},
  `insert into webhook_endpoints (id, project_id, network, url, secret)
   select $1, p.id, p.network, $3, $4 from projects p where p.id = $2
   on conflict (id) do nothing`,
);

/** Adds an endpoint to a project, on the project's network; does nothing if one with this id exists. */
export async function insertWebhookEndpoint(
  db: Sql,
  endpoint: { id: string; projectId: string; url: string; secret: string },
): Promise<void> {
  await db.run(insert, [endpoint.id, endpoint.projectId, endpoint.url, endpoint.secret]);
}

const list = statement(
  'webhook-endpoint-list',
  listColumns,
  `select ${Object.keys(listColumns).join(', ')} from webhook_endpoints
   where project_id = $1 order by created_at, id limit 1000`,
);

/** The oldest 1,000 endpoints of a project. `secret` signs its webhooks: show it to its owner only, and never log it. */
export async function listWebhookEndpoints(db: Sql, projectId: string): Promise<ListedWebhookEndpoint[]> {
  return db.run(list, [projectId]);
}

const updateUrl = statement(
  'webhook-endpoint-update-url',
  { id: 'uuid' },
  `update webhook_endpoints set url = $2, failing_since = null, disabled_at = null, disabled_reason = null
   where id = $1 returning id`,
);

/**
 * Points an endpoint at a URL and enables it: what failed before says nothing about the new receiver. Its undelivered
 * events go there when they are next due. `false` if there is none with this id.
 */
export async function updateWebhookEndpointUrl(db: Sql, id: string, url: string): Promise<boolean> {
  return (await db.run(updateUrl, [id, url])).length === 1;
}
