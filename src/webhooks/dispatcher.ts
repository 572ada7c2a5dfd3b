import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { Database } from '../store/database.ts';
import { leaseDueDeliveries } from '../store/deliveries.ts';
import { DELIVERIES_CHANNEL } from '../store/events.ts';
import { type AttemptContext, attemptDelivery } from './attempt-delivery.ts';
import { createWebhookSender } from './send.ts';
import { createUndeliveredGauge } from './undelivered-gauge.ts';
import { createWakeup, type Wakeup } from './wakeup.ts';

export type DispatcherOptions = {
  db: Database;
  clock: Clock;
  log: Logger;
  metrics: Pick<Metrics, 'deliveryAttempts' | 'oldestUndeliveredSeconds'>;
  /** 0 … 1, for the jitter of retries. */
  random: () => number;
  /** Attempts made at once, in all and to one endpoint. */
  concurrency?: number;
  perEndpoint?: number;
  /** How long a lost notification and a retry that has become due can go unnoticed. */
  pollMs?: number;
  attemptTimeoutMs?: number;
};

/**
 * Delivers webhooks until stopped: leases what is due, sends it with no transaction open, and records what came of it. Any number
 * of dispatchers may run side by side. It survives every error, also a database that is away, and goes on by itself.
 * `stop` lets the attempts in flight end for 3 s, gives the others back to be made again, and takes 8 s at most.
 */
export function startDispatcher(options: DispatcherOptions): { stop(): Promise<void> } {
  const { db, clock, log, metrics, random, concurrency = 32, perEndpoint = 4, pollMs = 1000 } = options;
  const { attemptTimeoutMs: timeoutMs } = options;
  const sender = createWebhookSender({ connections: concurrency, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
  const stopping = new AbortController();
  const cut = new AbortController();
  // Each attempt in flight listens to both, and the pause of the loop to the first.
  setMaxListeners(concurrency + 1, stopping.signal, cut.signal);
  const wakeup = createWakeup();
  const gauge = createUndeliveredGauge({ db, clock, log, metrics });
  const places: Places = { concurrency, perEndpoint, attempts: new Set(), byEndpoint: new Map() };
  const context = { db, clock, log, metrics, random, sender, stopping: stopping.signal, cut: cut.signal };

  db.listen(DELIVERIES_CHANNEL, wakeup.wake);
  const loop = runLoop(context, { places, wakeup, pollMs, onRound: gauge.refresh });
  return {
    stop: async () => {
      stopping.abort();
      wakeup.wake();
      const ended = new AbortController();
      const grace = setTimeout(() => cut.abort(), STOP_GRACE_MS);
      await Promise.race([
        loop.then(() => Promise.all(places.attempts)).then(gauge.ended),
        delay(STOP_LIMIT_MS, undefined, { signal: ended.signal }).then(
          () => log.warn('stopped before every webhook attempt was recorded; those are made again'),
          () => undefined,
        ),
      ]);
      ended.abort();
      clearTimeout(grace);
      cut.abort();
      await sender.close();
    },
  };
}

/** Ordinary receivers answer sooner, and a hanging one must not hold up Ctrl-C. */
const STOP_GRACE_MS = 3000;
/** The grace, and then the time in which a connection to a database that is away gives up. */
const STOP_LIMIT_MS = 8000;
/** Doubles from the first to the longest: a database that was away is found again soon, and the log stays short. */
const BACKOFF_MS = { first: 250, longest: 5000 };

/** The attempts in flight. `byEndpoint` counts them by endpoint id; an endpoint with none has no entry. */
type Places = {
  concurrency: number;
  perEndpoint: number;
  attempts: Set<Promise<void>>;
  byEndpoint: Map<string, number>;
};

async function runLoop(
  context: AttemptContext,
  options: { places: Places; wakeup: Wakeup; pollMs: number; onRound: () => void },
): Promise<void> {
  const { places, wakeup, pollMs, onRound } = options;
  const { log, stopping } = context;
  let failures = 0;
  while (!stopping.aborted) {
    try {
      await leaseAndAttempt(context, places, wakeup);
      if (failures > 0) log.info({ failures }, 'webhooks are leased again');
      failures = 0;
      onRound();
      await wakeup.wait(pollMs);
    } catch (error) {
      const pauseMs = Math.min(BACKOFF_MS.first * 2 ** Math.min(failures, 10), BACKOFF_MS.longest);
      failures += 1;
      log.error({ error, failures, pauseMs }, 'webhooks cannot be leased; trying again');
      await delay(pauseMs, undefined, { signal: stopping }).catch(() => undefined);
    }
  }
}

/** Leases no more than can be attempted at once, because a lease that waits runs out. */
async function leaseAndAttempt(context: AttemptContext, places: Places, wakeup: Wakeup): Promise<void> {
  const { attempts, byEndpoint, perEndpoint } = places;
  const limit = places.concurrency - attempts.size;
  if (limit === 0) return;
  const now = unixMs(context.clock.now());
  const leased = await leaseDueDeliveries(context.db, { now, limit, perEndpoint, inFlight: byEndpoint });
  for (const delivery of leased) {
    const { endpointId } = delivery;
    byEndpoint.set(endpointId, (byEndpoint.get(endpointId) ?? 0) + 1);
    const attempt = attemptDelivery(context, delivery).finally(() => {
      attempts.delete(attempt);
      const others = (byEndpoint.get(endpointId) ?? 0) - 1;
      if (others > 0) byEndpoint.set(endpointId, others);
      else byEndpoint.delete(endpointId);
      // A place is free, and the next event of the same invoice may be due.
      wakeup.wake();
    });
    attempts.add(attempt);
  }
}
