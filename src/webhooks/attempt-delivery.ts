import { setTimeout as delay } from 'node:timers/promises';
import { assertNever } from '../domain/assert-never.ts';
import { encodeId } from '../domain/ids.ts';
import { retryDelayMs } from '../domain/retry.ts';
import { unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { Sql } from '../store/database.ts';
import { type LeasedDelivery, recordDelivered, recordFailure, returnDelivery } from '../store/deliveries.ts';
import type { SendResult, WebhookSender } from './send.ts';
import { signWebhook } from './sign.ts';

export type AttemptContext = {
  db: Sql;
  clock: Clock;
  log: Logger;
  metrics: Pick<Metrics, 'deliveryAttempts'>;
  /** 0 … 1, for the jitter of retries. */
  random: () => number;
  sender: WebhookSender;
  /** No attempt is begun, and no record is tried again, once this is aborted. */
  stopping: AbortSignal;
  /** Cuts the attempt short. */
  cut: AbortSignal;
};

/** One attempt of a leased delivery, from the signature to the record of what came of it. Never throws. */
export async function attemptDelivery(context: AttemptContext, delivery: LeasedDelivery): Promise<void> {
  const { log, stopping } = context;
  const result: SendResult = stopping.aborted ? { kind: 'aborted' } : await send(context, delivery);
  for (const pauseMs of [...RECORD_PAUSES_MS, null]) {
    try {
      return await record(context, delivery, result);
    } catch (error) {
      const fields = { error, ...names(delivery), outcome: result.kind };
      if (pauseMs === null || stopping.aborted) {
        return log.error(fields, 'a webhook attempt was not recorded; it is made again when its lease has run out');
      }
      log.warn({ ...fields, pauseMs }, 'a webhook attempt cannot be recorded; trying again');
      await delay(pauseMs, undefined, { signal: stopping }).catch(() => undefined);
    }
  }
}

/** Over 6 s in all: a delivered webhook should not be sent again because the database restarted. */
const RECORD_PAUSES_MS = [100, 200, 400, 800, 1600, 3000];

async function send({ sender, clock, log, cut }: AttemptContext, delivery: LeasedDelivery): Promise<SendResult> {
  const nowMs = clock.now();
  const body = Buffer.from(delivery.body);
  try {
    const id = encodeId('evt', delivery.eventId);
    const timestampSeconds = Math.floor(nowMs / 1000);
    const headers = signWebhook({ id, timestampSeconds, body, secrets: delivery.secrets });
    return await sender.send({ url: delivery.url, headers, body, nowMs, stop: cut });
  } catch (error) {
    log.error({ error, ...names(delivery) }, 'a webhook could not be signed; give its endpoint a new secret');
    return {
      kind: 'failed',
      status: null,
      error: 'unsigned: the secret of the endpoint is malformed',
      retryAfterMs: null,
    };
  }
}

async function record(context: AttemptContext, delivery: LeasedDelivery, result: SendResult): Promise<void> {
  const { db, clock, log, metrics } = context;
  const now = unixMs(clock.now());
  switch (result.kind) {
    case 'delivered': {
      const isOurs = await recordDelivered(db, delivery, { now, status: result.status });
      metrics.deliveryAttempts.inc({ outcome: 'delivered' });
      if (isOurs) log.debug({ ...names(delivery), status: result.status }, 'webhook delivered');
      else log.warn(names(delivery), 'webhook delivered after its lease had run out; it may arrive twice');
      return;
    }
    case 'aborted':
      await returnDelivery(db, delivery, now);
      return;
    case 'gone':
      return recordFailed(context, delivery, GONE, 'the endpoint answered 410 Gone');
    case 'failed':
      return recordFailed(context, delivery, result, null);
    default:
      assertNever(result);
  }
}

type Failure = { status: number | null; error: string; retryAfterMs: number | null };

const GONE: Failure = { status: 410, error: 'http_410: the endpoint answered 410', retryAfterMs: null };

async function recordFailed(
  { db, clock, log, metrics, random }: AttemptContext,
  delivery: LeasedDelivery,
  { status, error, retryAfterMs }: Failure,
  disableReason: string | null,
): Promise<void> {
  const now = unixMs(clock.now());
  const delayMs = retryDelayMs(delivery.attempt, random(), retryAfterMs);
  const nextAttemptAt = delayMs === null ? null : unixMs(now + delayMs);
  const recorded = await recordFailure(db, delivery, { now, nextAttemptAt, status, error, disableReason });
  metrics.deliveryAttempts.inc({ outcome: delayMs === null ? 'dead' : 'retried' });
  const fields = { ...names(delivery), reason: error, delayMs };
  if (delayMs !== null) log.info(fields, 'webhook failed; it is tried again');
  else log.error(fields, 'webhook is dead after its last attempt; replay it once its endpoint works');
  if (recorded.kind === 'recorded' && recorded.disabledReason !== null) {
    const told = { ...names(delivery), reason: recorded.disabledReason };
    log.error(told, 'webhook endpoint disabled; its events are kept, and nothing is sent until it is enabled');
  }
}

function names(delivery: LeasedDelivery) {
  return {
    eventId: encodeId('evt', delivery.eventId),
    endpointId: encodeId('whe', delivery.endpointId),
    attempt: delivery.attempt,
  };
}
