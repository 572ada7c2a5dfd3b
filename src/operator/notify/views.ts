import { type Static, Type } from '../../runtime/type.ts';
import { CHANNEL_KINDS } from '../../store/outbox/notify-channels.ts';
import { nullable, Time } from '../view.ts';

const [text, flag] = [Type.String(), Type.Boolean()];

/** `shown`: what is shown of the target. `quiet`: `22:00-07:00`; `summary`: `08:00`; both in the time zone. */
const CHANNEL = {
  ...{ channelId: text, kind: Type.Enum(CHANNEL_KINDS), name: text, shown: text },
  ...{ quiet: nullable(text), summary: nullable(text), timeZone: text },
};

/** `secret`: one that was made to sign with, which is shown this one time. */
export const AddedChannelView = Type.Object({ ...CHANNEL, secret: nullable(text) });
export type AddedChannelView = Static<typeof AddedChannelView>;

/** A channel without what leads there. `failingSince`: every attempt since failed. */
export const ChannelView = Type.Object({
  ...{
    ...CHANNEL,
    createdAt: Time,
    lastSentAt: nullable(Time),
    failingSince: nullable(Time),
    lastError: nullable(text),
  },
});
export type ChannelView = Static<typeof ChannelView>;

export const ChannelListView = Type.Object({ data: Type.Array(ChannelView) });
export type ChannelListView = Static<typeof ChannelListView>;

export const TestedChannelView = Type.Object({
  ...{ channelId: text, messageId: text, isDelivered: flag, latencyMs: Type.Integer(), error: nullable(text) },
});
export type TestedChannelView = Static<typeof TestedChannelView>;

export const RemovedChannelView = Type.Object({ channelId: text, status: Type.Literal('removed') });
export type RemovedChannelView = Static<typeof RemovedChannelView>;
