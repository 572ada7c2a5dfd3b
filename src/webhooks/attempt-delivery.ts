import { encodeId } from '../domain/ids.ts';
import { askedPauseMs, retryDelayMs, schedulePosition } from '../domain/retry.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import type { AdapterOrder } from '../store/outbox/adapter-orders.ts';
import type { LeasedDelivery } from '../store/outbox/deliveries.ts';
import type { AttemptOutcome } from '../store/outbox/delivery-outcomes.ts';
import { namesOf } from './record-attempts.ts';
import { redactAnswer } from './redact.ts';
import { failedAttempt, type SendResult } from './send.ts';
import { sendCallback } from './send-callback.ts';
import { type SendDeps, sendSigned } from './send-signed.ts';

/** A delivery whose endpoint's secrets are open: `whsec_…`, newest first. `order`: of an adapter, which tells it in its own form. */
export type SignableDelivery = LeasedDelivery & { secrets: readonly string[]; order?: AdapterOrder };

/** `random`: 0 … 1, for the jitter of retries. */
export type AttemptContext = SendDeps & { clock: Clock; signingClock?: Clock; log: Logger; random: () => number };

/**
 * Signs and sends one delivery. Returns the outcome, or `null` if the sender was closed. Never throws. `hastenedFrom`: when it had been
 * due, if this attempt is before its time. If it fails, the next one is then, so that the schedule stays as it is.
 */
export async function attemptDelivery(
  context: AttemptContext,
  delivery: SignableDelivery,
  hastenedFrom: UnixMs | null = null,
): Promise<AttemptOutcome | null> {
  const { clock, signingClock = clock, random } = context;
  const startedAt = unixMs(clock.now());
  const result = await send(context, delivery, signingClock.now());
  if (result.kind === 'aborted') return null;
  const { status, latencyMs } = result;
  const answer = result.answer && (result.answer.length === 0 ? '' : redactAnswer(result.answer));
  const common = { delivery, startedAt, latencyMs, status, answer, isHastened: hastenedFrom !== null };
  if (result.kind === 'delivered') return { ...common, kind: 'delivered', error: null, nextAttemptAt: null };
  const { error, retryAfterMs } = result;
  if (hastenedFrom !== null) {
    const nextAttemptAt = unixMs(Math.max(hastenedFrom, clock.now() + askedPauseMs(retryAfterMs)));
    return { ...common, kind: 'failed', error, nextAttemptAt };
  }
  const position = schedulePosition(delivery.attempt, delivery.maxAttempts);
  const delayMs = retryDelayMs(position, random(), retryAfterMs);
  const nextAttemptAt = delayMs === null ? null : unixMs(clock.now() + delayMs);
  return { ...common, kind: 'failed', error, nextAttemptAt };
}

async function send(context: AttemptContext, delivery: SignableDelivery, nowMs: number): Promise<SendResult> {
  const webhook = { ...delivery, id: encodeId('evt', delivery.eventId), body: Buffer.from(delivery.body) };
  try {
    const { order } = delivery;
    if (order !== undefined) return await sendCallback(context, { ...delivery, order }, nowMs);
    return await sendSigned(context, webhook, nowMs);
  } catch (error) {
    context.log.error({ error, ...namesOf(delivery) }, 'a webhook could not be signed; give its endpoint a new secret');
    return failedAttempt(null, 'unsigned: the webhook could not be signed', 0);
  }
}
