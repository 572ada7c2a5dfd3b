import { randomBytes } from 'node:crypto';
import { encodeId, uuidV7 } from '../domain/ids.ts';
import { toIso } from '../domain/time.ts';
import { systemClock } from '../runtime/clock.ts';
import { insertWebhookEndpoint, type ListedWebhookEndpoint, listWebhookEndpoints } from '../store/webhook-endpoints.ts';
import { createWebhookSecret } from '../webhooks/sign.ts';
import { CliError } from './cli-error.ts';
import { readWebhookUrl } from './read-webhook-url.ts';
import { selectProject } from './select-project.ts';
import { formatFields, formatTable, type Result, type Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';

/** Adds an endpoint and shows its signing secret this one time. */
export async function addWebhook(terminal: Terminal, options: { project?: string; url: string }): Promise<Result> {
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    const url = readWebhookUrl(options.url, project.network);
    const existing = (await listWebhookEndpoints(db, project.id)).find((endpoint) => endpoint.url === url);
    if (existing !== undefined) {
      throw new CliError(
        'CONFLICT',
        `the project has an endpoint with this URL already (${encodeId('whe', existing.id)}): every event would arrive there twice`,
      );
    }
    const id = uuidV7(systemClock.now(), randomBytes(10));
    const secret = createWebhookSecret(randomBytes);
    await insertWebhookEndpoint(db, { id, projectId: project.id, url, secret });
    const [endpointId, projectId] = [encodeId('whe', id), encodeId('prj', project.id)];
    return {
      data: { endpointId, projectId, network: project.network, url, secret },
      text: formatFields([
        ['endpoint', endpointId],
        ['project', projectId],
        ['network', project.network],
        ['url', url],
        ['secret', secret],
      ]),
      next: 'the secret is shown only now: your receiver verifies the signature of each webhook with it',
    };
  });
}

export async function listWebhooks(terminal: Terminal, options: { project?: string }): Promise<Result> {
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    const endpoints = (await listWebhookEndpoints(db, project.id)).map(describe);
    const rows = endpoints.map(({ endpointId, status, createdAt, url }) => [endpointId, status, createdAt, url]);
    return {
      data: { data: endpoints },
      text: formatTable(['ENDPOINT', 'STATUS', 'CREATED', 'URL'], rows),
      ...(rows.length === 0 ? { next: 'no endpoint yet: add one with "quittance webhook add --url …"' } : {}),
    };
  });
}

/** Without the secret. */
function describe(endpoint: ListedWebhookEndpoint) {
  return {
    endpointId: encodeId('whe', endpoint.id),
    url: endpoint.url,
    status: statusOf(endpoint),
    createdAt: toIso(endpoint.created_at),
    failingSince: endpoint.failing_since === null ? null : toIso(endpoint.failing_since),
    disabledAt: endpoint.disabled_at === null ? null : toIso(endpoint.disabled_at),
    disabledReason: endpoint.disabled_reason,
  };
}

function statusOf(endpoint: ListedWebhookEndpoint): 'active' | 'failing' | 'disabled' {
  if (endpoint.disabled_at !== null) return 'disabled';
  return endpoint.failing_since === null ? 'active' : 'failing';
}
