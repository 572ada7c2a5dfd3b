import { encodeId, uuidV7 } from '../../domain/ids.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { insertWebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import { addEndpointSecret } from '../../webhooks/endpoint-secrets.ts';
import { createWebhookSecret } from '../../webhooks/sign.ts';
import type { Actor } from '../actor.ts';
import { readGivenSecret } from '../input/read-given-secret.ts';
import { recordActions } from '../record-actions.ts';
import { selectProject } from '../select-project.ts';
import { type KeyDeps, openEncryptionKeys } from '../subjects/master-keys.ts';
import { describeEndpoint } from './describe-endpoint.ts';
import { readEventTypes, readLine } from './read-endpoint.ts';
import { readWebhookUrl, refuseSameUrl, refuseTooMany, type UrlRules } from './read-webhook-url.ts';
import type { AddedEndpointView } from './views.ts';

type Random = (size: number) => Uint8Array;

/** Reads what an endpoint is to be; without a secret one is made. Errors: `INVALID_ARGUMENT`. */
export function readNewEndpoint(input: {
  events?: readonly string[] | undefined;
  description?: string | undefined;
  secret?: string | undefined;
}) {
  return {
    eventTypes: readEventTypes('events', input.events ?? ['all']),
    description: readLine('description', input.description ?? ''),
    secret: input.secret === undefined ? null : readGivenSecret(input.secret),
  };
}

type Deps = KeyDeps & { db: Database; random: Random; config: UrlRules };
type Input = ReturnType<typeof readNewEndpoint> & { projectId: string | undefined; url: string };

/** Adds an endpoint. A secret that was made for it is shown this one time. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`, `CONFLICT`, `CONFIG_INVALID`. */
export async function addEndpoint(deps: Deps, actor: Actor, input: Input): Promise<AddedEndpointView> {
  const { db, now, random, config } = deps;
  const project = await selectProject(db, actor, input.projectId);
  const url = readWebhookUrl(input.url, project.network, config);
  const keyRing = await openEncryptionKeys(deps);
  const { description, eventTypes } = input;
  const secret = input.secret ?? createWebhookSecret(random);
  const id = uuidV7(now(), random(10));
  const endpoint = { id, projectId: project.id, url, secret, description, eventTypes };
  await db.transaction(async (tx) => {
    refuseTooMany(await refuseSameUrl(tx, project.id, url, null), true);
    await storeEndpoint(tx, { keyRing, now: now(), random }, endpoint);
    const done = { projectId: project.id, action: 'webhook.added', subject: encodeId('whe', id) } as const;
    await recordActions(tx, actor, now(), [{ ...done, detail: describeEndpoint(endpoint) }]);
  });
  return {
    ...{ endpointId: encodeId('whe', id), projectId: encodeId('prj', project.id), network: project.network },
    ...{ url, description, eventTypes, secret: input.secret === null ? secret : null },
  };
}

/** Ids are UUIDs; `secret` is `whsec_…`; `eventTypes` null stands for all. */
export type NewEndpoint = {
  id: string;
  projectId: string;
  url: string;
  secret: string;
  description?: string;
  eventTypes?: readonly string[] | null;
};

/** Adds an endpoint with its secret, sealed. `false` if one with this id exists, which stays as it is. Nobody is recorded for it. */
export async function addWebhookEndpoint(
  { db, ...deps }: StoreDeps & { db: Database },
  endpoint: NewEndpoint,
): Promise<boolean> {
  return db.transaction((tx) => storeEndpoint(tx, deps, endpoint));
}

type StoreDeps = { keyRing: KeyRing; now: UnixMs; random: Random };

async function storeEndpoint(tx: Sql, { keyRing, now, random }: StoreDeps, endpoint: NewEndpoint): Promise<boolean> {
  if (!(await insertWebhookEndpoint(tx, endpoint))) return false;
  await addEndpointSecret(tx, keyRing, { endpointId: endpoint.id, secret: endpoint.secret, now, random });
  return true;
}
