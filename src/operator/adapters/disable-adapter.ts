import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { revokeKey } from '../subjects/keys.ts';
import { selectEndpoint } from '../webhooks/select-endpoint.ts';
import type { DisabledAdapterView } from './views.ts';

/** Lets an adapter take no more orders, for ever. What is paid of those that it took is still told. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`. */
export async function disableAdapter(
  deps: { db: Database; now(): UnixMs },
  actor: Actor,
  { adapterId }: { adapterId: string },
): Promise<DisabledAdapterView> {
  const { id, adapter } = await selectEndpoint(deps.db, actor, adapterId);
  if (adapter === null) {
    throw new AppError(
      'NOT_FOUND',
      say`${adapterId} is an endpoint and no adapter: "${{ command: 'adapter list' }}" shows those there are`,
    );
  }
  await revokeKey.run(deps, actor, { uuid: id });
  return { adapterId: encodeId('whe', id) };
}
