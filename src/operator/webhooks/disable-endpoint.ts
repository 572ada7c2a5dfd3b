import { disabledReason, withoutName } from '../../domain/disable-reason.ts';
import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import { disableWebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { readLine } from './read-endpoint.ts';
import { refuseAdapter, selectEndpoint } from './select-endpoint.ts';
import type { DisabledEndpointView } from './views.ts';

/** The reason that was given, which may be none. Errors: `INVALID_ARGUMENT`. */
export const readDisableReason = (text = ''): string => readLine('reason', text);

/** Stops attempts to an endpoint: what is undelivered stays, and what happens from now on is not planned for it. Errors: `NOT_FOUND`, `CONFLICT`. */
export async function disableEndpoint(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
  input: { endpointId: string; reason: string },
): Promise<DisabledEndpointView> {
  const { endpointId } = input;
  const endpoint = await selectEndpoint(db, actor, endpointId);
  // An adapter is the operator's.
  if (actor.kind === 'key') refuseAdapter(endpoint);
  const { id, projectId, disabledReason: former } = endpoint;
  const why = disabledReason(input.reason, actor.name);
  const isDisabled = await db.transaction(async (tx) => {
    if (!(await disableWebhookEndpoint(tx, id, now(), why))) return false;
    const detail = { reason: input.reason };
    await recordActions(tx, actor, now(), [{ projectId, action: 'webhook.disabled', subject: endpointId, detail }]);
    return true;
  });
  if (isDisabled) return { endpointId, status: 'disabled', disabledReason: why };
  const told = former !== null && actor.kind === 'key' ? withoutName(former) : former;
  throw new AppError('CONFLICT', `${endpointId} is disabled already${told === null ? '' : `: ${told}`}`);
}
