import { AppError } from '../../domain/errors.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { storeChannel } from '../../notify/channel-target.ts';
import type { Database } from '../../store/db/database.ts';
import { listNotifyChannels, MAX_CHANNELS } from '../../store/outbox/notify-channels.ts';
import { createWebhookSecret } from '../../webhooks/sign.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { type KeyDeps, openEncryptionKeys } from '../subjects/master-keys.ts';
import { viewSettings } from './list-channels.ts';
import type { readNewChannel } from './read-channel.ts';
import type { AddedChannelView } from './views.ts';

type Deps = KeyDeps & { db: Database; random(bytes: number): Uint8Array };

/** Adds a channel: it is told what is open, and what happens from now on. Errors: `CONFLICT`, `CONFIG_INVALID`. */
export async function addChannel(
  deps: Deps,
  actor: Actor,
  { kind, name, target: given, shown, needsSecret, times }: ReturnType<typeof readNewChannel>,
): Promise<AddedChannelView> {
  const { db, now, random } = deps;
  if ((await listNotifyChannels(db)).length >= MAX_CHANNELS)
    throw new AppError('CONFLICT', `there are ${MAX_CHANNELS} channels, and no more are told: remove one first`);
  const keyRing = await openEncryptionKeys(deps);
  const secret = needsSecret ? createWebhookSecret(random) : null;
  const target = given.kind === 'webhook' && secret !== null ? { ...given, secret } : given;
  const createdAt = now();
  const channel = { id: uuidV7(createdAt, random(10)), kind, name, shown, ...times, createdAt, removedAt: null };
  const view = viewSettings(channel);
  const isAdded = await db.transaction(async (tx) => {
    if (!(await storeChannel(tx, keyRing, { channel, target }))) return false;
    const { channelId, ...detail } = view;
    await recordActions(tx, actor, createdAt, [
      { projectId: null, action: 'channel.added', subject: encodeId('chn', channel.id), detail },
    ]);
    return true;
  });
  if (isAdded) return { ...view, secret };
  throw new AppError(
    'CONFLICT',
    say`there is a channel of this name already: give another ${{ field: 'name' }}, or see "${{ command: 'notify list' }}"`,
  );
}
