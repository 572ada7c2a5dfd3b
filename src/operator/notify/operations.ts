import { Type } from '../../runtime/type.ts';
import { CHANNEL_KINDS } from '../../store/outbox/notify-channels.ts';
import { Flag, Line, Lines } from '../input/given.ts';
import { operation } from '../operation.ts';
import { addChannel } from './add-channel.ts';
import { listChannels } from './list-channels.ts';
import { readNewChannel } from './read-channel.ts';
import { removeChannel } from './remove-channel.ts';
import { readChannelId } from './select-channel.ts';
import { testChannel } from './test-channel.ts';
import { AddedChannelView, ChannelListView, RemovedChannelView, TestedChannelView } from './views.ts';

const ChannelId = Type.Object({ channelId: Type.String({ description: 'chn_…' }) });
const readId = ({ channelId }: { channelId: string }) => ({ channelId, uuid: readChannelId(channelId) });

export const listChannelsOperation = operation({
  action: 'listChannels',
  summary: 'The channels by which operators are told what happens, without what leads there',
  ...{ method: 'GET', path: '/notify', input: Type.Object({}), output: ChannelListView },
  read: () => ({}),
  run: listChannels,
});

export const addChannelOperation = operation({
  action: 'addChannel',
  summary: 'Add a channel by which operators are told what happens; a secret that is made for it is shown once',
  ...{ method: 'POST', path: '/notify', output: AddedChannelView },
  input: Type.Object({
    ...{ kind: Type.Enum(CHANNEL_KINDS), name: Line, url: Line, from: Line, to: Lines, token: Line, chat: Line },
    ...{ secret: Line, isOwnNetwork: Flag, quiet: Line, summary: Line, timeZone: Line },
  }),
  read: ({ kind, name, quiet, summary, timeZone, isOwnNetwork = false, url, from, to, token, chat, secret }) =>
    readNewChannel({
      ...{ kind, name, quiet, summary, timeZone, isOwnNetwork },
      ...{ url, from, to, token, chat, secret },
    }),
  run: addChannel,
});

export const testChannelOperation = operation({
  action: 'testChannel',
  summary: 'Send a test message by a channel now',
  ...{ method: 'POST', path: '/notify/:channelId/test', input: ChannelId, output: TestedChannelView },
  read: readId,
  run: testChannel,
});

export const removeChannelOperation = operation({
  action: 'removeChannel',
  summary: 'Remove a channel for good: it is told nothing more',
  ...{ method: 'POST', path: '/notify/:channelId/remove', input: ChannelId, output: RemovedChannelView },
  read: readId,
  run: removeChannel,
});
