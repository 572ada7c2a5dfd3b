import { encodeId } from '../../domain/ids.ts';
import { toIso } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { type ChannelSettings, listNotifyChannels } from '../../store/outbox/notify-channels.ts';
import type { Actor } from '../actor.ts';
import { timeOfMinute } from './read-times.ts';
import type { AddedChannelView, ChannelListView } from './views.ts';

/** The channels with how they do, without what leads there, the oldest first. */
export async function listChannels({ db }: { db: Sql }, _actor: Actor): Promise<ChannelListView> {
  const data = (await listNotifyChannels(db)).map((channel) => {
    const { createdAt, lastSentAt, failingSince, lastError } = channel;
    return {
      ...{ ...viewSettings(channel), createdAt: toIso(createdAt), lastSentAt: lastSentAt && toIso(lastSentAt) },
      ...{ failingSince: failingSince && toIso(failingSince), lastError },
    };
  });
  return { data };
}

export function viewSettings({ id, kind, name, shown, ...times }: ChannelSettings): Omit<AddedChannelView, 'secret'> {
  const { quietFrom, quietTo, summaryAt, timeZone } = times;
  return {
    ...{ channelId: encodeId('chn', id), kind, name, shown },
    quiet: quietFrom === null || quietTo === null ? null : `${timeOfMinute(quietFrom)}-${timeOfMinute(quietTo)}`,
    summary: summaryAt === null ? null : timeOfMinute(summaryAt),
    timeZone,
  };
}
