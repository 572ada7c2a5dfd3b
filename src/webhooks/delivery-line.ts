import { unixMs } from '../domain/time.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { Database } from '../store/database.ts';
import { leaseDueDeliveries } from '../store/deliveries.ts';
import { type AttemptContext, attemptDelivery, type SignableDelivery } from './attempt-delivery.ts';
import { createDeliveryBuffer, DEFAULT_ROOM } from './delivery-buffer.ts';
import { createSecretOpener, UNSIGNABLE_PAUSE_MS } from './open-secrets.ts';
import { createOutcomeQueue } from './outcome-queue.ts';

/** Waiting, under way and unrecorded together. What a crash leaves is attempted again when the leases run out. */
const MAX_LEASED = 2048;
/** What has waited for longer is given back, so that what is left of its lease is always enough for an attempt and its record. */
const MAX_WAIT_MS = 2000;
const RECORD_MARGIN_MS = 3000;
/** Outcomes are recorded together: when so many are there, when nothing is under way, or so many milliseconds after the last were. */
const FLUSH = { outcomes: 200, ms: 20 };
/** While enough waits, leasing can wait as well, for much of its cost does not depend on how many it takes. */
const LEASE_AT_LEAST_EVERY_MS = 100;

export type DeliveryLineOptions = AttemptContext & {
  db: Database;
  metrics: Pick<Metrics, 'deliveryAttempts'>;
  keyRing: KeyRing;
  concurrency: number;
  perEndpoint: number;
  timeoutMs: number;
  /** Asks for the next `record` and `lease`. */
  wake: () => void;
};

/** From the lease of a delivery to the record of its attempt. Attempts begin and end by themselves; the caller makes the rounds. */
export function createDeliveryLine(options: DeliveryLineOptions): {
  /** Writes what attempts came to. Throws if that is not possible now, and loses nothing. */
  record(): Promise<void>;
  /** Leases what there is room for and begins the attempts; unless there is enough already and nothing new was announced. */
  lease(): Promise<void>;
  /** Something new may be due. */
  announce(): void;
  /** Begins no more attempts, gives back what waits, and records what is under way when it has ended. */
  end(): Promise<void>;
} {
  const { db, clock, concurrency, perEndpoint, timeoutMs, wake } = options;
  const buffer = createDeliveryBuffer<SignableDelivery>({ concurrency, perEndpoint, maxWaitMs: MAX_WAIT_MS });
  const queue = createOutcomeQueue(options);
  const openSecrets = createSecretOpener(options);
  const attempts = new Set<Promise<void>>();
  let isEnding = false;
  let isAnnounced = true;
  let leasedAtMs = Number.NEGATIVE_INFINITY;
  let flushedAtMs = Number.NEGATIVE_INFINITY;
  let flushing: NodeJS.Timeout | undefined;

  const announce = () => {
    isAnnounced = true;
    wake();
  };
  const isEnough = (nowMs: number) =>
    queue.size() >= FLUSH.outcomes || buffer.underWay() === 0 || nowMs - flushedAtMs >= FLUSH.ms;
  const wakeLater = () => {
    flushing ??= setTimeout(wakeByTimer, FLUSH.ms);
  };
  const wakeSoon = () => {
    if (queue.size() >= FLUSH.outcomes || buffer.underWay() === 0) wake();
    else wakeLater();
  };
  const wakeByTimer = () => {
    flushing = undefined;
    wake();
  };
  const attempt = async (delivery: SignableDelivery) => {
    const outcome = await attemptDelivery(options, delivery);
    queue.giveBack(buffer.end(delivery.endpointId, outcome && outcome.kind === 'failed'));
    if (outcome === null) queue.giveBack([delivery]);
    else queue.add(outcome);
  };
  const begin = () => {
    while (!isEnding) {
      const delivery = buffer.next();
      if (delivery === undefined) return;
      if (delivery.leasedUntil < clock.now() + timeoutMs + RECORD_MARGIN_MS) {
        buffer.end(delivery.endpointId, null);
        queue.giveBack([delivery]);
        continue;
      }
      const made = attempt(delivery).then(() => {
        attempts.delete(made);
        begin();
        wakeSoon();
      });
      attempts.add(made);
    }
  };
  return {
    record: async () => {
      const nowMs = performance.now();
      queue.giveBack(buffer.takeStale(nowMs));
      if (!isEnough(nowMs)) return wakeLater();
      flushedAtMs = nowMs;
      await queue.flush();
    },
    lease: async () => {
      const limit = MAX_LEASED - buffer.held() - queue.size();
      const isTime = isAnnounced || performance.now() - leasedAtMs > LEASE_AT_LEAST_EVERY_MS || buffer.isLow();
      if (limit <= 0 || !isTime) return;
      isAnnounced = false;
      leasedAtMs = performance.now();
      const now = unixMs(clock.now());
      const room = buffer.room();
      const { deliveries, isMore } = await leaseDueDeliveries(db, { now, limit, defaultRoom: DEFAULT_ROOM, room });
      const { signable, unsignable } =
        deliveries.length === 0 ? { signable: [], unsignable: [] } : await openSecrets(deliveries, now);
      queue.giveBack(unsignable, UNSIGNABLE_PAUSE_MS);
      buffer.add(signable, performance.now());
      begin();
      if (isMore) announce();
    },
    announce,
    end: async () => {
      isEnding = true;
      clearTimeout(flushing);
      queue.giveBack(buffer.takeAll());
      await Promise.all([...attempts, queue.flush()]);
      await queue.flush();
    },
  };
}
