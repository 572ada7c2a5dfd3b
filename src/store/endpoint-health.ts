import type { EndpointHealth } from '../domain/circuit.ts';
import type { Network } from '../domain/network.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** An endpoint as far as failures concern it. */
export type FailingEndpoint = EndpointHealth & {
  id: string;
  projectId: string;
  network: Network;
  url: string;
  description: string;
};

const lock = statement(
  'endpoint-health-lock',
  {
    id: 'uuid',
    project_id: 'uuid',
    network: 'text',
    url: 'text',
    description: 'text',
    failing_since: 'timestamptz?',
    consecutive_failures: 'int4',
    open_until: 'timestamptz?',
  },
  `select id, project_id, network, url, description, failing_since, consecutive_failures, open_until
   from webhook_endpoints where id = any($1::uuid[]) and disabled_at is null order by project_id, id for no key update`,
);

const beImpatient = statement(
  'endpoint-health-patience',
  { lock_timeout: 'text' },
  "select set_config('lock_timeout', '1s', true) as lock_timeout",
);

/**
 * The enabled ones of these endpoints, locked until the transaction ends. In the order of their projects, in which all events are
 * written, for one of them may be disabled, and that is an event. The transaction waits a second at most for any lock, from now on.
 */
export async function lockEndpointHealth(tx: Sql, ids: readonly string[]): Promise<FailingEndpoint[]> {
  await tx.run(beImpatient, []);
  return (await tx.run(lock, [ids])).map((row) => ({
    id: row.id,
    projectId: row.project_id,
    network: row.network as Network,
    url: row.url,
    description: row.description,
    failingSince: row.failing_since,
    consecutiveFailures: row.consecutive_failures,
    openUntil: row.open_until,
  }));
}

const save = statement(
  'endpoint-health-save',
  {},
  'update webhook_endpoints set failing_since = $2, consecutive_failures = $3, open_until = $4 where id = $1',
);

/** Stores how attempts to an endpoint have fared. */
export async function saveEndpointHealth(tx: Sql, id: string, health: EndpointHealth): Promise<void> {
  const { failingSince, consecutiveFailures, openUntil } = health;
  const at = (time: number | null) => (time === null ? null : new Date(time));
  await tx.run(save, [id, at(failingSince), consecutiveFailures, at(openUntil)]);
}

const count = statement(
  'endpoint-undelivered-count',
  { count: 'int8' },
  "select count(*) as count from deliveries where endpoint_id = $1 and status = 'pending'",
);

/** How many events wait to be delivered to an endpoint. */
export async function countUndelivered(db: Sql, endpointId: string): Promise<number> {
  const [row] = await db.run(count, [endpointId]);
  return Number(row?.count ?? 0);
}
