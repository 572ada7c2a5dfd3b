import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import { removeNotifyChannel } from '../../store/outbox/notify-channels.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { findChannel } from './select-channel.ts';
import type { RemovedChannelView } from './views.ts';

/** Removes a channel for good: it is told nothing more, and what leads there is forgotten. Errors: `NOT_FOUND`. */
export async function removeChannel(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
  input: { channelId: string; uuid: string },
): Promise<RemovedChannelView> {
  const { channelId } = input;
  const channel = await findChannel(db, input);
  const isRemoved = await db.transaction(async (tx) => {
    if (!(await removeNotifyChannel(tx, channel, now()))) return false;
    const { kind, name, shown } = channel;
    await recordActions(tx, actor, now(), [
      { projectId: null, action: 'channel.removed', subject: channelId, detail: { kind, name, shown } },
    ]);
    return true;
  });
  if (isRemoved) return { channelId, status: 'removed' };
  throw new AppError(
    'NOT_FOUND',
    say`${channelId} was removed meanwhile: "${{ command: 'notify list' }}" shows those there are`,
  );
}
