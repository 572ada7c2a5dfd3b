import { encodeId } from '../domain/ids.ts';
import { keyMode } from '../domain/network.ts';
import { retryDelayMs, schedulePosition } from '../domain/retry.ts';
import { unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import type { LeasedDelivery } from '../store/deliveries.ts';
import type { AttemptOutcome } from '../store/delivery-outcomes.ts';
import { namesOf } from './record-attempts.ts';
import { redactAnswer } from './redact.ts';
import type { SendResult, WebhookSender } from './send.ts';
import { signWebhook } from './sign.ts';

/** A delivery whose endpoint's secrets are open: `whsec_…`, newest first. */
export type SignableDelivery = LeasedDelivery & { secrets: readonly string[] };

export type AttemptContext = {
  clock: Clock;
  log: Logger;
  /** 0 … 1, for the jitter of retries. */
  random: () => number;
  sender: WebhookSender;
  /** Whether projects of test networks may be told on this machine itself, and by http. */
  localTargets: boolean;
};

/** Signs and sends one delivery. Returns what came of it, or `null` if the sender was closed. Never throws. */
export async function attemptDelivery(
  context: AttemptContext,
  delivery: SignableDelivery,
): Promise<AttemptOutcome | null> {
  const { clock, random } = context;
  const startedAt = unixMs(clock.now());
  const result = await send(context, delivery, startedAt);
  if (result.kind === 'aborted') return null;
  const { status, latencyMs } = result;
  const answer = result.answer && (result.answer.length === 0 ? '' : redactAnswer(result.answer));
  const common = { delivery, startedAt, latencyMs, status, answer };
  if (result.kind === 'delivered') return { ...common, kind: 'delivered', error: null, nextAttemptAt: null };
  const position = schedulePosition(delivery.attempt, delivery.maxAttempts);
  const delayMs = retryDelayMs(position, random(), result.retryAfterMs);
  const nextAttemptAt = delayMs === null ? null : unixMs(clock.now() + delayMs);
  return { ...common, kind: 'failed', error: result.error, nextAttemptAt };
}

async function send(
  { sender, log, localTargets }: AttemptContext,
  delivery: SignableDelivery,
  nowMs: number,
): Promise<SendResult> {
  const { url, network, secrets } = delivery;
  const body = Buffer.from(delivery.body);
  try {
    const id = encodeId('evt', delivery.eventId);
    const headers = signWebhook({ id, timestampSeconds: Math.floor(nowMs / 1000), body, secrets });
    const rule = localTargets && keyMode(network) === 'test' ? 'local' : 'public';
    return await sender.send({ url, rule, headers, body, nowMs });
  } catch (error) {
    log.error({ error, ...namesOf(delivery) }, 'a webhook could not be signed; give its endpoint a new secret');
    const unsigned = 'unsigned: the webhook could not be signed';
    return {
      kind: 'failed',
      status: null,
      error: unsigned,
      retryAfterMs: null,
      latencyMs: 0,
      answer: null,
      date: null,
    };
  }
}
