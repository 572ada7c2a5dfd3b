import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../domain/errors.ts';
import type { UnixMs } from '../domain/time.ts';
import { backoffMs } from '../runtime/backoff.ts';
import type { Clock } from '../runtime/clock.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import { createLogThrottle } from '../runtime/log-throttle.ts';
import type { LoopHealth } from '../runtime/loop-health.ts';
import { beginAtZero, type Metrics } from '../runtime/metrics.ts';
import type { RequestShare } from '../runtime/request-share.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { findOldestUndelivered } from '../store/outbox/deliveries.ts';
import { DELIVERIES_CHANNEL } from '../store/outbox/events.ts';
import { createDeliveryLine } from './delivery-line.ts';
import { createExpediter } from './expedite-retries.ts';
import { COUNTED_ATTEMPTS } from './record-attempts.ts';
import { ATTEMPT_TIMEOUT_MS, createWebhookSender, type WebhookSender } from './send.ts';

const isAway = (error: unknown) => error instanceof AppError && error.code === 'DATABASE_UNAVAILABLE';

export type DispatcherOptions = {
  db: Database;
  /** By which deliveries are due: that of the database, because processes share them. */
  clock: Clock;
  /** By which webhooks are signed; `clock` when absent. */
  signingClock?: Clock;
  /** By which an endpoint has failed for too long; the clock's when absent. */
  certainNow?(): UnixMs;
  log: Logger;
  loops?: LoopHealth;
  metrics: Pick<Metrics, 'deliveryAttempts' | 'oldestUndeliveredSeconds'>;
  /** 0 … 1, for the jitter of retries. */
  random: () => number;
  /** Opens the secrets of endpoints. */
  keyRing: KeyRing;
  /** Whether projects of test networks may be told on this machine itself, and by http. */
  localTargets: boolean;
  /** Is told how long a lease took, where requests share the process. */
  requestShare?: Pick<RequestShare, 'onWork'>;
  /** Attempts made at once, in all and to one endpoint. */
  concurrency?: number;
  perEndpoint?: number;
  /** How long a lost notification and a retry that has become due can go unnoticed. */
  pollMs?: number;
  attemptTimeoutMs?: number;
  /** Makes the attempts; over HTTP when absent. */
  sender?: WebhookSender;
};

/** Sockets and places cost little; slow receivers of a hundred shops must not exhaust them. */
const CONCURRENCY = 128;
/** A small server takes so many at once. At 100 ms an answer it is 160 events a second, and a backlog of 100,000 takes ten minutes. */
const PER_ENDPOINT = 16;

/**
 * Delivers webhooks until stopped: leases due deliveries in batches, sends them with no transaction open, and records the outcomes in
 * batches. Any number of dispatchers may run side by side. A dispatcher survives every error, also a database that is away, and goes on by
 * itself. `stop` lets the attempts in flight end for 3 s, gives the others back to be made again, and takes 8 s at most.
 */
export function startDispatcher(options: DispatcherOptions): { stop(): Promise<void> } {
  const { db, clock, log, metrics, concurrency = CONCURRENCY, perEndpoint = PER_ENDPOINT, pollMs = 1000 } = options;
  const { attemptTimeoutMs: timeoutMs = ATTEMPT_TIMEOUT_MS } = options;
  const { sender = createWebhookSender({ connections: concurrency, timeoutMs }) } = options;
  beginAtZero(metrics.deliveryAttempts, COUNTED_ATTEMPTS);
  const stopping = new AbortController();
  const wakeup = createWakeup();
  const gauge = createUndeliveredGauge({ db, clock, log, metrics });
  const hastener = createExpediter(options);
  const line = createDeliveryLine({
    ...options,
    ...{ concurrency, perEndpoint, timeoutMs, sender, hastener, wake: wakeup.wake },
  });

  db.listen(DELIVERIES_CHANNEL, line.announce);
  const restMs = () => Math.min(pollMs, hastener.restMs());
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

const NOT_RECORDED = 'stopped before every webhook attempt was recorded; Quittance repeats the others';
/** Ordinary receivers answer sooner, and a hanging one must not hold up Ctrl-C. */
const STOP_GRACE_MS = 3000;
/** The grace, and then the time in which a connection to a database that is away gives up. */
const STOP_LIMIT_MS = 8000;
/** Doubles from the first to the longest: a database that was away is found again soon, and the log stays short. */
const BACKOFF = { firstMs: 250, longestMs: 5000 };

type DeliveryLine = ReturnType<typeof createDeliveryLine>;

async function runLoop(
  line: DeliveryLine,
  options: {
    log: Logger;
    loops: LoopHealth | undefined;
    stopping: AbortSignal;
    wakeup: Wakeup;
    restMs: () => number;
    onRound: () => void;
  },
): Promise<void> {
  const { log, loops, stopping, wakeup, restMs, onRound } = options;
  let failures = 0;
  const seldom = createLogThrottle(() => performance.now());
  while (!stopping.aborted) {
    let step = 'recorded';
    try {
      // Before the lease, which depends on the record: order, room, and the endpoints that fail.
      await line.record();
      step = 'leased';
      await line.lease();
      if (failures > 0) log.info({ failures }, 'webhooks are leased again');
      failures = 0;
      loops?.note('webhooks', false);
      onRound();
      await wakeup.wait(restMs());
    } catch (error) {
      failures += 1;
      if (!isAway(error)) loops?.note('webhooks', true);
      const pauseMs = backoffMs(failures, BACKOFF);
      if (seldom.isDue(`${step} ${error}`))
        log.error({ error, failures, pauseMs }, `webhooks cannot be ${step}; trying again`);
      await delay(pauseMs, undefined, { signal: stopping }).catch(() => undefined);
    }
  }
}

type Wakeup = {
  /** Ends the present wait, or the next one if none is going on. */
  wake(): void;
  /** Resolves when woken, or after `ms`. Only one caller may wait at a time. */
  wait(ms: number): Promise<void>;
};

/** A pause that can be cut short; a wake that comes between two waits is not lost. */
export function createWakeup(): Wakeup {
  let isAwake = false;
  let resume: (() => void) | undefined;
  return {
    wake: () => {
      isAwake = true;
      resume?.();
    },
    wait: async (ms) => {
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

/** The query reads every undelivered row, and alarms on the gauge are in minutes. */
const REFRESH_MS = 5000;

/**
 * Keeps the age of the oldest undelivered event. `refresh` returns at once, so that neither a scrape nor the dispatcher waits for
 * the database; `ended` resolves when no query is going on.
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
