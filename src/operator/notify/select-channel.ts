import { AppError } from '../../domain/errors.ts';
import { decodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { Sql } from '../../store/db/database.ts';
import { findNotifyChannel, type NotifyChannel } from '../../store/outbox/notify-channels.ts';
import { clip } from '../input/clip.ts';

/** The UUID behind a `chn_…`. Errors: `INVALID_ARGUMENT`. */
export function readChannelId(channelId: string): string {
  const uuid = decodeId('chn', channelId);
  if (uuid !== null) return uuid;
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${clip(channelId)} is not the id of a channel: it is "chn_" and 26 characters, as "${{ command: 'notify list' }}" shows it`,
  );
}

/** Errors: `NOT_FOUND`, for one that was removed too. */
export async function findChannel(
  db: Sql,
  { channelId, uuid }: { channelId: string; uuid: string },
): Promise<NotifyChannel> {
  const channel = await findNotifyChannel(db, uuid);
  if (channel !== null) return channel;
  throw new AppError(
    'NOT_FOUND',
    say`there is no channel ${channelId}: "${{ command: 'notify list' }}" shows those there are`,
  );
}
