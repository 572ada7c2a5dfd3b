import { unixMs } from '../domain/time.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { RequestShare } from '../runtime/request-share.ts';
import type { Database } from '../store/db/database.ts';
import { findCallbackOrders } from '../store/outbox/adapter-orders.ts';
import { leaseDueDeliveries } from '../store/outbox/deliveries.ts';
import { type AttemptContext, attemptDelivery, type SignableDelivery } from './attempt-delivery.ts';
import { createSecretOpener, UNSIGNABLE_PAUSE_MS } from './decrypt-secrets.ts';
import { createDeliveryBuffer, DEFAULT_ROOM, type DeliveryBuffer } from './delivery-buffer.ts';
import type { Hastener } from './hasten.ts';
import { createOutcomeQueue } from './outcome-queue.ts';
import { isOutage } from './record-attempts.ts';

/**
 * The most deliveries waiting, under way and unrecorded together. Those that a crash leaves are attempted again when their leases run out.
 */
const MAX_LEASED = 2048;
/** A delivery that has waited for longer is given back, so that the rest of its lease is always enough for an attempt and its record. */
const MAX_WAIT_MS = 2000;
const RECORD_MARGIN_MS = 3000;
/** A callback for which its URL has no place is put off for so long, uncounted, so that those to other URLs of the adapter are leased. */
const PUT_OFF_MS = 5000;
/** Outcomes are recorded together: at this number, when nothing is under way, or this many milliseconds after the last were. */
const FLUSH = { outcomes: 200, ms: 20 };
/** While enough deliveries wait, leasing can wait too: much of its cost does not depend on how many it takes. */
const LEASE_AT_LEAST_EVERY_MS = 100;
/** From an announcement to the attempt it takes 2 ms on a machine that has nothing else to do. */
const IN_TIME_MS = 10;

export type DeliveryLineOptions = AttemptContext & {
  db: Database;
  metrics: Pick<Metrics, 'deliveryAttempts'>;
  keyRing: KeyRing;
  hastener: Hastener;
  concurrency: number;
  perEndpoint: number;
  timeoutMs: number;
  requestShare?: Pick<RequestShare, 'onWork'>;
  /** Asks for the next `record` and `lease`. */
  wake: () => void;
};

/** From the lease of a delivery to the record of its attempt. Attempts begin and end by themselves; the caller makes the rounds. */
export function createDeliveryLine(options: DeliveryLineOptions): {
  /** Records the outcomes of attempts. Throws if that is not possible now, and loses nothing. */
  record(): Promise<void>;
  /**
   * Leases as many deliveries as there is room for and begins the attempts, unless there is enough already and nothing new was announced.
   */
  lease(): Promise<void>;
  /** Something new may be due. */
  announce(): void;
  /** Begins no more attempts, gives back what waits, and records what is under way when it has ended. */
  end(): Promise<void>;
} {
  const { db, clock, concurrency, perEndpoint, hastener, wake } = options;
  const buffer = createDeliveryBuffer<SignableDelivery>({ concurrency, perEndpoint, maxWaitMs: MAX_WAIT_MS });
  const queue = createOutcomeQueue(options);
  const openSecrets = createSecretOpener(options);
  const isWorthRecording = () => queue.size() >= FLUSH.outcomes || buffer.underWay() === 0;
  const timer = createFlushTimer(wake);
  const putOff = (deliveries: readonly SignableDelivery[]) => {
    queue.giveBack(deliveries.filter(({ adapter }) => adapter === null));
    queue.giveBack(
      deliveries.filter(({ adapter }) => adapter !== null),
      PUT_OFF_MS,
    );
  };
  const attempts = createAttempts(options, { buffer, queue, putOff }, () =>
    isWorthRecording() ? wake() : timer.start(),
  );
  let isAnnounced = true;
  let announcedAtMs = performance.now();
  let leasedAtMs = Number.NEGATIVE_INFINITY;
  let flushedAtMs = Number.NEGATIVE_INFINITY;

  const announce = () => {
    if (!isAnnounced) announcedAtMs = performance.now();
    isAnnounced = true;
    wake();
  };
  return {
    record: async () => {
      const nowMs = performance.now();
      putOff(buffer.takeStale(nowMs));
      if (!isWorthRecording() && nowMs - flushedAtMs < FLUSH.ms) return timer.start();
      flushedAtMs = nowMs;
      await queue.flush();
    },
    lease: async () => {
      if (await hastener.round()) announce();
      const limit = MAX_LEASED - buffer.held() - queue.size();
      const isTime = isAnnounced || performance.now() - leasedAtMs > LEASE_AT_LEAST_EVERY_MS || buffer.isLow();
      if (limit <= 0 || !isTime) return;
      leasedAtMs = performance.now();
      const dueAtMs = isAnnounced ? announcedAtMs : leasedAtMs;
      isAnnounced = false;
      const now = unixMs(clock.now());
      const room = buffer.room();
      const { deliveries, isMore } = await leaseDueDeliveries(db, { now, limit, defaultRoom: DEFAULT_ROOM, room });
      const sound = deliveries.filter(({ isEventSound, isEndpointSound }) => isEventSound && isEndpointSound);
      const opened = sound.length === 0 ? { signable: [], unsignable: [] } : await openSecrets(sound, now);
      const { unsignable } = opened;
      const { signable, orderless } = await addOrders(options, opened.signable);
      const unsound = deliveries.filter((delivery) => !sound.includes(delivery));
      queue.giveBack([...unsignable, ...orderless, ...unsound], UNSIGNABLE_PAUSE_MS);
      if (deliveries.length > 0) options.requestShare?.onWork(performance.now() - dueAtMs, IN_TIME_MS);
      const rest = buffer.add(signable, performance.now());
      putOff(rest);
      attempts.begin();
      if (isMore || rest.length > 0) announce();
    },
    announce,
    end: async () => {
      const ended = attempts.end();
      timer.stop();
      queue.giveBack(buffer.takeAll());
      await Promise.all([ended, queue.flush()]);
      await queue.flush();
    },
  };
}

/** Adds what adapters tell their shops. What has no order any more, or one that somebody changed, is told to nobody. */
async function addOrders(
  { db, hastener }: Pick<DeliveryLineOptions, 'db' | 'hastener'>,
  deliveries: readonly SignableDelivery[],
) {
  const adapted = deliveries.filter(({ adapter }) => adapter !== null);
  if (adapted.length === 0) return { signable: [...deliveries], orderless: [] };
  const orders = await findCallbackOrders(
    db,
    adapted.map(({ eventId }) => eventId),
  );
  const signable: SignableDelivery[] = [];
  const orderless: SignableDelivery[] = [];
  for (const delivery of deliveries) {
    const order = orders.get(delivery.eventId);
    if (delivery.adapter === null) signable.push(delivery);
    else if (order?.endpointId === delivery.endpointId && order.notifyUrl === delivery.callbackUrl)
      signable.push({ ...delivery, order, isFailing: hastener.failingSince(delivery.target) !== null });
    else orderless.push(delivery);
  }
  return { signable, orderless };
}

/** Wakes once, so many milliseconds after it was started first. */
function createFlushTimer(wake: () => void): { start(): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  return {
    start: () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        wake();
      }, FLUSH.ms);
    },
    stop: () => clearTimeout(timer),
  };
}

type Held = {
  buffer: DeliveryBuffer<SignableDelivery>;
  queue: ReturnType<typeof createOutcomeQueue>;
  putOff(deliveries: readonly SignableDelivery[]): void;
};

/** Attempts deliveries as long as the buffer gives any; `onEnd` is called after each. */
function createAttempts(options: DeliveryLineOptions, { buffer, queue, putOff }: Held, onEnd: () => void) {
  const { clock, timeoutMs, hastener } = options;
  const underWay = new Set<Promise<void>>();
  let isEnding = false;
  const attempt = async (delivery: SignableDelivery) => {
    const outcome = await attemptDelivery(options, delivery, hastener.takeDueAt(delivery));
    putOff(
      buffer.end(delivery.target, outcome && (isOutage(outcome) || (outcome.kind === 'delivered' ? false : null))),
    );
    if (outcome === null) queue.giveBack([delivery]);
    else queue.add(outcome);
  };
  const begin = () => {
    while (!isEnding) {
      const delivery = buffer.next();
      if (delivery === undefined) return;
      if (delivery.leasedUntil < clock.now() + timeoutMs + RECORD_MARGIN_MS) {
        buffer.end(delivery.target, null);
        queue.giveBack([delivery]);
        continue;
      }
      const made = attempt(delivery).then(() => {
        underWay.delete(made);
        begin();
        onEnd();
      });
      underWay.add(made);
    }
  };
  return {
    begin,
    /** Begins no more, and resolves when those under way have ended. */
    end: async () => {
      isEnding = true;
      await Promise.all(underWay);
    },
  };
}
