import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import type { Attempt } from '../../notify/attempt.ts';
import { openTarget, type Target } from '../../notify/channel-target.ts';
import type { Message } from '../../notify/message.ts';
import { ATTEMPT_MS, sendMessage } from '../../notify/send-message.ts';
import { requireKeyRing } from '../../runtime/open-key-ring.ts';
import type { Database } from '../../store/db/database.ts';
import { findSealedTarget, recordChannelFailed, recordChannelSent } from '../../store/outbox/notify-channels.ts';
import { createWebhookSender } from '../../webhooks/send.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import type { KeyDeps } from '../subjects/master-keys.ts';
import { findChannel } from './select-channel.ts';
import type { TestedChannelView } from './views.ts';

type Deps = KeyDeps & { db: Database; random(bytes: number): Uint8Array };

/** Sends a test message by a channel now, from this process, once. That it arrives ends the alarm of a channel that failed. Errors: `NOT_FOUND`. */
export async function testChannel(
  { db, now, random, config, note }: Deps,
  actor: Actor,
  input: { channelId: string; uuid: string },
): Promise<TestedChannelView> {
  const { channelId } = input;
  const channel = await findChannel(db, input);
  const keyRing = await requireKeyRing(config, note);
  const row = await findSealedTarget(db, channel.id);
  const opened = row === null ? null : await openTarget(keyRing, row);
  const message = testMessage(uuidV7(now(), random(10)), channel.name, now());
  await db.transaction((tx) =>
    recordActions(tx, actor, now(), [{ projectId: null, action: 'channel.tested', subject: channelId, detail: {} }]),
  );
  const startedMs = performance.now();
  const attempt = opened?.kind === 'ok' ? await sendOnce(opened.target, message, now) : UNOPENED;
  const latencyMs = Math.round(performance.now() - startedMs);
  if (attempt.kind === 'aborted') throw new Error('the attempt was stopped');
  const error = attempt.kind === 'failed' ? attempt.error : null;
  if (error === null) await recordChannelSent(db, channel.id, now());
  // What is to be said is due when it was.
  else await recordChannelFailed(db, channel.id, now(), { dueAt: channel.dueAt ?? unixMs(now()), error });
  return { channelId, messageId: encodeId('ntf', message.id), isDelivered: error === null, latencyMs, error };
}

const UNOPENED: Attempt = {
  ...{ kind: 'failed', retryAfterMs: null },
  error: 'secret: the target does not open with the master keys that are set here',
};

async function sendOnce(target: Target, message: Message, now: () => UnixMs): Promise<Attempt> {
  const sender = createWebhookSender({ connections: 1, timeoutMs: ATTEMPT_MS });
  try {
    return await sendMessage({ sender, now, stopping: new AbortController().signal }, target, message);
  } finally {
    await sender.close();
  }
}

function testMessage(id: string, name: string, at: UnixMs): Message {
  const title = 'Quittance: a test';
  const text = `This is a test of the channel "${name}", ${toIso(at)}. Nothing has happened.`;
  return { id, title, text, isUrgent: false, items: [{ about: 'test', phase: 'test', title }] };
}
