import { AppError } from '../../domain/errors.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { Sql } from '../../store/db/database.ts';
import { commandOf } from '../../store/db/rows-of.ts';
import { findWebhookEndpoint, type WebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import { type Actor, maySee } from '../actor.ts';
import { clip } from '../input/clip.ts';

/** The endpoint with this `whe_…`. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`. */
export async function selectEndpoint(db: Sql, actor: Actor, endpointId: string, find = findWebhookEndpoint) {
  const endpoint = await find(db, readEndpointId(endpointId));
  if (endpoint !== null && maySee(actor, endpoint.projectId)) return endpoint;
  throw new AppError(
    'NOT_FOUND',
    say`there is no endpoint ${endpointId}: "${{ command: 'webhook list' }}" shows those there are`,
  );
}

/** The UUID behind a `whe_…`. Errors: `INVALID_ARGUMENT`. */
export function readEndpointId(endpointId: string): string {
  const uuid = decodeId('whe', endpointId);
  if (uuid !== null) return uuid;
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${clip(endpointId)} is not an endpoint id: it is "whe_" and 26 characters, as "${{ command: 'webhook list' }}" shows it`,
  );
}

/** Refuses what makes no sense of an adapter: it has no URL of its own, and a secret of another form. Errors: `CONFLICT`. */
export function refuseAdapter({ id, adapter }: Pick<WebhookEndpoint, 'id' | 'adapter'>): void {
  if (adapter === null) return;
  throw new AppError(
    'CONFLICT',
    say`${encodeId('whe', id)} is an adapter for ${adapter}, which tells a shop where each order says so: see "${{ command: 'adapter list' }}"`,
  );
}

const lock = commandOf(
  'endpoint-desk-lock',
  'select from webhook_endpoints where id = $1 for no key update',
  (id: string) => [id],
);

/** An endpoint (UUID), held until the transaction ends, so that of two operators one sees what the other did. */
export async function lockWebhookEndpoint(tx: Sql, id: string): Promise<WebhookEndpoint | null> {
  await lock(tx, id);
  return findWebhookEndpoint(tx, id);
}
