import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { disableWebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import type { Actor } from '../actor.ts';
import { readLine } from './read-endpoint.ts';
import { selectEndpoint } from './select-endpoint.ts';
import type { DisabledEndpointView } from './views.ts';

/** The reason that was given, which may be none. Errors: `INVALID_ARGUMENT`. */
export const readDisableReason = (text = ''): string => readLine('reason', text);

/** Stops attempts to an endpoint: what is undelivered stays, and what happens from now on is not planned for it. Errors: `NOT_FOUND`, `CONFLICT`. */
export async function disableEndpoint(
  { db, now }: { db: Sql; now(): UnixMs },
  { name }: Actor,
  input: { endpointId: string; reason: string },
): Promise<DisabledEndpointView> {
  const { endpointId } = input;
  const { id, disabledReason: former } = await selectEndpoint(db, endpointId);
  const disabledReason = input.reason === '' ? `by ${name}` : `${input.reason} (by ${name})`;
  if (await disableWebhookEndpoint(db, id, now(), disabledReason))
    return { endpointId, status: 'disabled', disabledReason };
  throw new AppError('CONFLICT', `${endpointId} is disabled already${former === null ? '' : `: ${former}`}`);
}
