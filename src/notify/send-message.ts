import type { UnixMs } from '../domain/time.ts';
import type { WebhookSender } from '../webhooks/send.ts';
import type { Attempt } from './attempt.ts';
import type { Target } from './channel-target.ts';
import type { Message } from './message.ts';
import { sendHttp } from './send-http.ts';
import { sendMail } from './send-mail.ts';

/** Ordinary servers answer in a second. Three attempts fit into the minute in which a message is to arrive. */
export const ATTEMPT_MS = 10_000;

export type SendDeps = {
  /** Its attempts must not take longer than `ATTEMPT_MS`. */
  sender: WebhookSender;
  now(): UnixMs;
  /** Ends all attempts. */
  stopping: AbortSignal;
  attemptMs?: number;
};

/** Sends a message to a target, once, within the time of an attempt. Never throws. */
export async function sendMessage(
  { sender, now, stopping, attemptMs = ATTEMPT_MS }: SendDeps,
  target: Target,
  message: Message,
): Promise<Attempt> {
  if (target.kind !== 'email') return sendHttp(sender, target, message, now());
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(attemptMs)]);
  const attempt = await sendMail(target, message, { signal });
  return stopping.aborted && attempt.kind === 'failed' ? { kind: 'aborted' } : attempt;
}
