import { randomBytes } from 'node:crypto';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Sql } from '../../store/database.ts';
import { listWebhookEndpoints } from '../../store/webhook-endpoints.ts';
import { addWebhookEndpoint } from '../../webhooks/add-endpoint.ts';
import { createWebhookSecret } from '../../webhooks/sign.ts';
import { CliError } from '../cli-error.ts';
import type { ProjectOption } from '../option-parts.ts';
import { readWebhookUrl } from '../read-webhook-url.ts';
import { selectProject } from '../select-project.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { eventTypesText } from './describe.ts';
import { readDescription, readEventTypes, readSecret, secretHint, showSecret } from './options.ts';
import { openSealingKeys } from './sealing-keys.ts';

export type AddOptions = ProjectOption & { url: string; description?: string; events?: string[]; secret?: string };

/** Adds an endpoint and shows this one time the signing secret that was made for it. */
export async function addWebhook(terminal: Terminal, options: AddOptions): Promise<Result> {
  const eventTypes = readEventTypes('--events', options.events ?? ['all']);
  const description = readDescription(options.description ?? '');
  const secret =
    options.secret === undefined ? createWebhookSecret(randomBytes) : await readSecret(options.secret, terminal.stdin);
  return withDatabase(terminal, async ({ db, config }) => {
    const project = await selectProject(db, options.project);
    const url = readWebhookUrl(options.url, { network: project.network, localTargets: config.webhooks.localTargets });
    await refuseSameUrl(db, project.id, url, null);
    const id = uuidV7(systemClock.now(), randomBytes(10));
    const keyRing = await openSealingKeys({ db, config, terminal });
    const deps = { db, keyRing, now: unixMs(systemClock.now()), random: randomBytes };
    await addWebhookEndpoint(deps, { id, projectId: project.id, url, secret, description, eventTypes });
    const shown = showSecret(secret, options.secret);
    const [endpointId, projectId] = [encodeId('whe', id), encodeId('prj', project.id)];
    return {
      data: { endpointId, projectId, network: project.network, url, description, eventTypes, secret: shown.data },
      text: formatFields([
        ['endpoint', endpointId],
        ['project', projectId],
        ['network', project.network],
        ['url', url],
        ['description', description || null],
        ['events', eventTypesText(eventTypes)],
        ['secret', shown.text],
      ]),
      next: [
        ...secretHint(
          options.secret,
          'the secret is shown only now: your receiver verifies the signature of each webhook with it',
        ),
        `see whether it arrives: quittance webhook test ${endpointId}`,
      ].join('\n'),
    };
  });
}

/** A receiver would get each event twice, with two signatures. `exceptId`: the endpoint that is changed. Errors: `CONFLICT`. */
export async function refuseSameUrl(db: Sql, projectId: string, url: string, exceptId: string | null): Promise<void> {
  const same = (await listWebhookEndpoints(db, projectId)).find(
    (endpoint) => endpoint.url === url && endpoint.id !== exceptId,
  );
  if (same === undefined) return;
  const endpointId = encodeId('whe', same.id);
  throw new CliError(
    'CONFLICT',
    `the project has an endpoint with this URL already (${endpointId}): events would arrive there twice. Change what it is told with "quittance webhook update ${endpointId} --events …", or give another URL`,
  );
}
