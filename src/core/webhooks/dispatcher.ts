import { setTimeout as delay } from 'node:timers/promises';
import { isDatabaseUnavailable } from '../domain/errors.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { RequestShare } from '../runtime/concurrency.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import { createLogThrottle, type Logger } from '../runtime/log.ts';
import { backoffMs, type LoopHealth } from '../runtime/loop.ts';
import { beginAtZero, type Metrics } from '../runtime/metrics.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { findOldestUndelivered } from '../store/outbox/deliveries.ts';
import { DELIVERIES_CHANNEL } from '../store/outbox/events.ts';
import { createDeliveryLine } from './delivery-line.ts';
import { COUNTED_ATTEMPTS, createExpediter } from './record-attempts.ts';
import { ATTEMPT_TIMEOUT_MS, createWebhookSender, type WebhookSender } from './send.ts';

export type DispatcherOptions = {
  db: Database;
  /** The clock that decides when deliveries become due. Several processes share them, so it's the database's. */
  clock: Clock;
  /** The clock for webhook signatures. The default is `clock`. */
  signingClock?: Clock;
  /** The clock that decides whether an endpoint has failed for too long. The default is `clock`. */
  certainNow?(): UnixMs;
  log: Logger;
  loops?: LoopHealth;
  metrics: Pick<Metrics, 'deliveryAttempts' | 'oldestUndeliveredSeconds'>;
  /** Returns a number from 0 to 1, used for retry jitter. */
  random: () => number;
  keyRing: KeyRing;
  /** Whether test network projects' webhooks may be sent to this machine, and over http. */
  localTargets: boolean;
  /** If requests share the process, this receives the duration of each lease. */
  requestShare?: Pick<RequestShare, 'onWork'>;
  /** Maximum number of concurrent attempts, in total and per endpoint. */
  concurrency?: number;
  perEndpoint?: number;
  /** The longest time until a due retry, or a delivery whose notification was lost, is noticed. */
  pollMs?: number;
  attemptTimeoutMs?: number;
  /** Makes the attempts. The default sends them over HTTP. */
  sender?: WebhookSender;
};

/** Sockets and places are cheap, so there are enough of them that a hundred shops with slow receivers can't use all of them. */
const CONCURRENCY = 128;
/**
 * Even a small server can handle this many at the same time. At 100 ms per response, this means 160 events per second, and ten minutes for
 * a backlog of 100,000.
 */
const PER_ENDPOINT = 16;

/**
 * Delivers webhooks until it's stopped. It leases due deliveries in batches, sends them without an open transaction, and records the
 * outcomes in batches. Any number of dispatchers can run concurrently. A dispatcher survives every error, including an unreachable
 * database, and resumes automatically. `stop` gives attempts in progress 3 s to finish, returns the others for another attempt, and takes
 * at most 8 s.
 */
export function startDispatcher(options: DispatcherOptions): { stop(): Promise<void> } {
  const { db, clock, log, metrics, concurrency = CONCURRENCY, perEndpoint = PER_ENDPOINT, pollMs = 1000 } = options;
  const { attemptTimeoutMs: timeoutMs = ATTEMPT_TIMEOUT_MS } = options;
  const { sender = createWebhookSender({ connections: concurrency, timeoutMs }) } = options;
  beginAtZero(metrics.deliveryAttempts, COUNTED_ATTEMPTS);
  const stopping = new AbortController();
  const wakeup = createWakeup();
  const gauge = createUndeliveredGauge({ db, clock, log, metrics });
  const expediter = createExpediter(options);
  const line = createDeliveryLine({
    ...options,
    ...{ concurrency, perEndpoint, timeoutMs, sender, expediter, wake: wakeup.wake },
  });

  db.listen(DELIVERIES_CHANNEL, line.announce);
  const restMs = () => Math.min(pollMs, expediter.restMs());
  const loop = runLoop(line, {
    log,
    loops: options.loops,
    stopping: stopping.signal,
    wakeup,
    restMs,
    onRound: gauge.refresh,
  });
  const end = async () => {
    await loop;
    await line.end();
    await gauge.ended();
  };
  return {
    stop: async () => {
      stopping.abort();
      wakeup.wake();
      const ended = new AbortController();
      const grace = setTimeout(() => void sender.close(), STOP_GRACE_MS);
      await Promise.race([
        end().catch((error: unknown) => log.warn({ error }, NOT_RECORDED)),
        delay(STOP_LIMIT_MS, undefined, { signal: ended.signal }).then(
          () => log.warn(NOT_RECORDED),
          () => undefined,
        ),
      ]);
      ended.abort();
      clearTimeout(grace);
      await sender.close();
    },
  };
}

const NOT_RECORDED = 'stopped before all webhook attempts were recorded; Quittance repeats the unrecorded attempts';
/** Most receivers respond faster than this, and a receiver that hangs must not delay Ctrl-C. */
const STOP_GRACE_MS = 3000;
/** The grace period, plus the time until an attempt to connect to an unreachable database is given up. */
const STOP_LIMIT_MS = 8000;
/**
 * The pause doubles from the first to the longest value, so that the dispatcher soon notices when the database is back, and the log stays
 * short.
 */
const BACKOFF = { firstMs: 250, longestMs: 5000 };

type DeliveryLine = ReturnType<typeof createDeliveryLine>;

async function runLoop(
  line: DeliveryLine,
  options: {
    log: Logger;
    loops: LoopHealth | undefined;
    stopping: AbortSignal;
    wakeup: ReturnType<typeof createWakeup>;
    restMs: () => number;
    onRound: () => void;
  },
): Promise<void> {
  const { log, loops, stopping, wakeup, restMs, onRound } = options;
  let failures = 0;
  const throttle = createLogThrottle(() => performance.now());
  while (!stopping.aborted) {
    let step = 'recorded';
    try {
      // Record before leasing, because the lease depends on these records: the order of events, the room, and the failing endpoints.
      await line.record();
      step = 'leased';
      await line.lease();
      if (failures > 0) log.info({ failures }, 'webhooks can be leased again');
      failures = 0;
      loops?.note('webhooks', false);
      onRound();
      await wakeup.wait(restMs());
    } catch (error) {
      failures += 1;
      if (!isDatabaseUnavailable(error)) loops?.note('webhooks', true);
      const pauseMs = backoffMs(failures, BACKOFF);
      if (throttle.isDue(`${step} ${error}`))
        log.error({ error, failures, pauseMs }, `webhooks could not be ${step}; retrying`);
      await delay(pauseMs, undefined, { signal: stopping }).catch(() => undefined);
    }
  }
}

/** Returns a pause that can be interrupted. A call to `wake` between two waits isn't lost. */
export function createWakeup() {
  let isAwake = false;
  let resume: (() => void) | undefined;
  return {
    /** Ends the current wait or, if there's none, the next one. */
    wake: () => {
      isAwake = true;
      resume?.();
    },
    /** Resolves when `wake` is called, or after `ms`. Only one caller may wait at a time. */
    wait: async (ms: number) => {
      if (!isAwake) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          resume = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        resume = undefined;
      }
      isAwake = false;
    },
  };
}

/** The query reads every undelivered row, and alerts on this gauge react within minutes, not seconds. */
const REFRESH_MS = 5000;

/**
 * Updates the oldest undelivered event's age. `refresh` returns immediately, so that neither a scrape nor the dispatcher has to wait for
 * the database. `ended` resolves when no query is in progress.
 */
function createUndeliveredGauge({
  db,
  clock,
  log,
  metrics,
}: {
  db: Sql;
  clock: Clock;
  log: Logger;
  metrics: Pick<Metrics, 'oldestUndeliveredSeconds'>;
}): { refresh(): void; ended(): Promise<void> } {
  let readAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | null = null;
  const read = async (now: number) => {
    const oldest = await findOldestUndelivered(db);
    metrics.oldestUndeliveredSeconds.set(oldest === null ? 0 : Math.max(0, now - oldest) / 1000);
  };
  return {
    refresh: () => {
      const now = clock.now();
      if (reading !== null || Math.abs(now - readAt) < REFRESH_MS) return;
      readAt = now;
      reading = read(now)
        .catch((error: unknown) => log.warn({ error }, 'the age of the oldest undelivered event is not known'))
        .finally(() => {
          reading = null;
        });
    },
    ended: async () => {
      await reading;
    },
  };
}
