import { randomBytes } from 'node:crypto';
import { encodeId, uuidV7 } from '../domain/ids.ts';
import { keyMode, type Network } from '../domain/network.ts';
import { toIso } from '../domain/time.ts';
import { systemClock } from '../runtime/clock.ts';
import { insertWebhookEndpoint, type ListedWebhookEndpoint, listWebhookEndpoints } from '../store/webhook-endpoints.ts';
import { createWebhookSecret } from '../webhooks/sign.ts';
import { CliError } from './cli-error.ts';
import { selectProject } from './select-project.ts';
import { formatFields, formatTable, type Result, type Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';

/** Adds an endpoint and shows its signing secret this one time. */
export async function addWebhook(terminal: Terminal, options: { project?: string; url: string }): Promise<Result> {
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    const url = readUrl(options.url, project.network);
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

/** The bound of the schema. */
const MAX_URL_LENGTH = 2048;

/** The URL as it will be called. Its query may hold a token of the receiver, so messages do not repeat it. */
function readUrl(text: string, network: Network): string {
  const refuse = (reason: string) => new CliError('INVALID_ARGUMENT', `--url ${reason}; the endpoint was not added`);
  const url = URL.canParse(text) && /^https?:\/\/[^/\\\s]/i.test(text) ? new URL(text) : null;
  if (url === null)
    throw refuse('is not an http:// or https:// URL: write for example https://shop.example.com/webhooks');
  const shown = JSON.stringify(url.origin);
  if (url.username !== '' || url.password !== '') throw refuse(`(${shown}) holds a user name or password: remove it`);
  if (url.hash !== '')
    throw refuse(`(${shown}) has a fragment, which is never sent: remove everything from the "#" on`);
  if (url.protocol === 'http:' && keyMode(network) === 'live') {
    throw refuse(`(${shown}) must start with https://, for this is a project on ${network} with real money`);
  }
  if (url.href.length > MAX_URL_LENGTH) throw refuse(`has ${url.href.length} characters: at most ${MAX_URL_LENGTH}`);
  return url.href;
}
