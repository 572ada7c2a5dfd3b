import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import { changeWebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { describeChange } from './describe-endpoint.ts';
import { readEventTypes, readLine } from './read-endpoint.ts';
import { readWebhookUrl, refuseSameUrl, type UrlRules } from './read-webhook-url.ts';
import { refuseAdapter, selectEndpoint } from './select-endpoint.ts';
import { viewEndpoint } from './view-endpoint.ts';
import type { EndpointView } from './views.ts';

type Change = { url?: string | undefined; description?: string | undefined; events?: readonly string[] | undefined };

/** Reads what is to change of an endpoint: what is left out stays. Errors: `USAGE`, `INVALID_ARGUMENT`. */
export function readChange({ url, description, events }: Change) {
  if (url === undefined && description === undefined && events === undefined) {
    throw new AppError(
      'USAGE',
      say`nothing to change was given: use ${{ field: 'url' }}, ${{ field: 'description' }} or ${{ field: 'events' }}`,
    );
  }
  return {
    url,
    ...(events === undefined ? {} : { eventTypes: readEventTypes('events', events) }),
    ...(description === undefined ? {} : { description: readLine('description', description) }),
  };
}

/** Changes what is given of an endpoint. Its secret stays. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`, `CONFLICT`. */
export async function updateEndpoint(
  { db, now, config }: { db: Database; now(): UnixMs; config: UrlRules },
  actor: Actor,
  { endpointId, ...change }: ReturnType<typeof readChange> & { endpointId: string },
): Promise<{ view: EndpointView; isMoved: boolean }> {
  const before = await selectEndpoint(db, actor, endpointId);
  refuseAdapter(before);
  const url = change.url === undefined ? before.url : readWebhookUrl(change.url, before.network, config);
  const after = { ...before, ...change, url };
  const changed = describeChange(before, after);
  await db.transaction(async (tx) => {
    await refuseSameUrl(tx, before.projectId, url, before.id);
    await changeWebhookEndpoint(tx, before, after);
    if (changed === null) return;
    const { projectId } = before;
    await recordActions(tx, actor, now(), [
      { projectId, action: 'webhook.changed', subject: endpointId, detail: changed },
    ]);
  });
  return { view: viewEndpoint(after, now()), isMoved: url !== before.url };
}
