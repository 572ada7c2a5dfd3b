import { encodeId } from '../domain/ids.ts';
import { askedPauseMs, retryDelayMs, schedulePosition } from '../domain/retry.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { RequestShare } from '../runtime/concurrency.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { type CallbackOrder, findCallbackOrders } from '../store/outbox/adapter-orders.ts';
import { type AttemptOutcome, type LeasedDelivery, leaseDueDeliveries } from '../store/outbox/deliveries.ts';
import { findActiveSecrets, type StoredSecret } from '../store/outbox/webhook-secrets.ts';
import { sendCallback } from './adapter-dialect.ts';
import { openEndpointSecrets } from './endpoint-secrets.ts';
import { createOutcomeQueue, type Expediter, hasArrived, isOutage, namesOf } from './record-attempts.ts';
import { redactAnswer } from './redact.ts';
import { failedAttempt, type SendDeps, type SendResult, sendSigned } from './send.ts';

/**
 * Maximum number of deliveries that are waiting, in progress or not recorded yet. After a crash, they are attempted again when their leases
 * expire.
 */
const MAX_LEASED = 2048;
/**
 * A delivery that has been waiting for longer than this is returned, so that the rest of its lease is always long enough to make an attempt
 * and record it.
 */
const MAX_WAIT_MS = 2000;
const RECORD_MARGIN_MS = 3000;
/**
 * If a callback URL has no free place, its delivery is postponed for this long without counting an attempt, so that deliveries to the
 * adapter's other URLs can be leased.
 */
const PUT_OFF_MS = 5000;
/**
 * Outcomes are recorded in batches. A batch is recorded when it has this many outcomes, when nothing is in progress, or this many
 * milliseconds after the last batch.
 */
const FLUSH = { outcomes: 200, ms: 20 };
/**
 * As long as enough deliveries are waiting, leasing can happen less often, because much of its cost doesn't depend on the number of
 * deliveries.
 */
const LEASE_AT_LEAST_EVERY_MS = 100;
/** On an idle machine, 2 ms pass between the announcement and the attempt. */
const IN_TIME_MS = 10;

type DeliveryLineOptions = AttemptContext & {
  db: Database;
  /** The clock that decides whether an endpoint has failed for too long. The default is `clock`. */
  certainNow?(): UnixMs;
  metrics: Pick<Metrics, 'deliveryAttempts'>;
  keyRing: KeyRing;
  expediter: Expediter;
  concurrency: number;
  perEndpoint: number;
  timeoutMs: number;
  requestShare?: Pick<RequestShare, 'onWork'>;
  /** Makes the caller run `record` and `lease` again. */
  wake: () => void;
};

/** Handles deliveries from the lease until the attempt is recorded. Attempts start and end automatically; the caller runs the rounds. */
export function createDeliveryLine(options: DeliveryLineOptions) {
  const { db, clock, concurrency, perEndpoint, expediter, wake } = options;
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
    /** Records the attempts' outcomes. If that isn't possible at the moment, throws without losing any outcome. */
    record: async () => {
      const nowMs = performance.now();
      putOff(buffer.takeStale(nowMs));
      if (!isWorthRecording() && nowMs - flushedAtMs < FLUSH.ms) return timer.start();
      flushedAtMs = nowMs;
      await queue.flush();
    },
    /**
     * Leases as many deliveries as there's room for, and starts their attempts. Does nothing if enough deliveries are waiting and nothing
     * new was announced.
     */
    lease: async () => {
      if (await expediter.round()) announce();
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
    /** Announces that something new may be due. */
    announce,
    /** Stops starting attempts, returns waiting deliveries, and records attempts in progress once they have ended. */
    end: async () => {
      const ended = attempts.end();
      timer.stop();
      queue.giveBack(buffer.takeAll());
      await Promise.all([ended, queue.flush()]);
      await queue.flush();
    },
  };
}

/** Adds the orders to adapters' deliveries. A delivery without a valid order is never sent. */
async function addOrders(
  { db, expediter }: Pick<DeliveryLineOptions, 'db' | 'expediter'>,
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
      signable.push({ ...delivery, order, isFailing: expediter.failingSince(delivery.target) !== null });
    else orderless.push(delivery);
  }
  return { signable, orderless };
}

/** Wakes the loop once, a number of milliseconds after the first call to `start`. */
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

/** Attempts deliveries as long as the buffer returns any. Calls `onEnd` after each attempt. */
function createAttempts(options: DeliveryLineOptions, { buffer, queue, putOff }: Held, onEnd: () => void) {
  const { clock, timeoutMs, expediter } = options;
  const underWay = new Set<Promise<void>>();
  let isEnding = false;
  const attempt = async (delivery: SignableDelivery) => {
    const outcome = await attemptDelivery(options, delivery, expediter.takeDueAt(delivery));
    putOff(buffer.end(delivery.target, outcome && (isOutage(outcome) || (hasArrived(outcome) ? false : null))));
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
    /** Starts no more attempts. Resolves when the attempts in progress have ended. */
    end: async () => {
      isEnding = true;
      await Promise.all(underWay);
    },
  };
}

/** If an endpoint's secrets can't be decrypted, its delivery is due again after this pause. No attempt was made, so none is counted. */
const UNSIGNABLE_PAUSE_MS = 60_000;

/**
 * Decrypts the endpoint secrets of a leased batch, and keeps them only for that batch. This way, a rotation takes effect with the next
 * batch, and no secret stays in memory. A delivery requires its endpoint's current secret; a previous secret that can't be decrypted is
 * left out.
 */
function createSecretOpener({ db, keyRing, log }: { db: Sql; keyRing: KeyRing; log: Logger }) {
  let loggedAt = Number.NEGATIVE_INFINITY;
  const report = (unopened: readonly StoredSecret[], unsigned: readonly string[], now: UnixMs) => {
    if (unopened.length + unsigned.length === 0 || Math.abs(now - loggedAt) < UNSIGNABLE_PAUSE_MS) return;
    loggedAt = now;
    const reported = unopened
      .slice(0, MAX_LOGGED)
      .map((row) => ({ endpointId: encodeId('whe', row.endpointId), masterKeyId: row.masterKeyId }));
    const endpoints = unsigned.slice(0, MAX_LOGGED).map((id) => encodeId('whe', id));
    log.error(
      { unopened: reported, waitingEndpoints: endpoints },
      'webhook endpoint secrets cannot be decrypted, so events for these endpoints are waiting: give this process the master keys that encrypted them (quittance master-key status), or rotate the secrets',
    );
  };
  return async (deliveries: readonly LeasedDelivery[], now: UnixMs) => {
    const ids = [...new Set(deliveries.map(({ endpointId }) => endpointId))];
    const rows = await findActiveSecrets(db, ids, now);
    const opened = await openEndpointSecrets(keyRing, rows);
    const secrets = new Map<string, string[]>();
    for (const [index, row] of rows.entries()) {
      const each = opened[index];
      // Each endpoint's first row is its current secret.
      if (each?.kind !== 'ok') continue;
      if (row.endsAt === null) secrets.set(row.endpointId, [each.secret]);
      else secrets.get(row.endpointId)?.push(each.secret);
    }
    const unopened = rows.filter((_, index) => opened[index]?.kind !== 'ok');
    report(
      unopened,
      ids.filter((id) => !secrets.has(id)),
      now,
    );
    const signable = deliveries.flatMap((delivery) => {
      const of = secrets.get(delivery.endpointId);
      return of === undefined ? [] : [{ ...delivery, secrets: of }];
    });
    return { signable, unsignable: deliveries.filter(({ endpointId }) => !secrets.has(endpointId)) };
  };
}

const MAX_LOGGED = 10;

/**
 * A delivery with its endpoint's decrypted secrets (`whsec_…`), newest first. `order` is set for an adapter, because its callback has a
 * different form.
 */
type SignableDelivery = LeasedDelivery & { secrets: readonly string[]; order?: CallbackOrder };

/** `random` returns a number from 0 to 1, used for retry jitter. */
type AttemptContext = SendDeps & { clock: Clock; signingClock?: Clock; log: Logger; random: () => number };

/**
 * Signs and sends one delivery. Returns the outcome, or `null` if the sender was closed. Never throws. If the attempt is early,
 * `hastenedFrom` is the time when the delivery would have been due; after a failure, the next attempt is made at that time, to keep to the
 * schedule.
 */
async function attemptDelivery(
  context: AttemptContext,
  delivery: SignableDelivery,
  hastenedFrom: UnixMs | null,
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
    context.log.error(
      { error, ...namesOf(delivery) },
      'could not sign a webhook; create a new secret for its endpoint',
    );
    return failedAttempt(null, 'unsigned: the webhook could not be signed', 0);
  }
}

/**
 * The leased deliveries that are waiting for their turn, and the number of attempts in progress. The buffer decides which delivery is next.
 * Targets take turns. Each endpoint may have at most `perEndpoint` attempts in progress, and must leave at least as many places free for
 * the others. A failing target gets one place, and all failing targets together get half of the places. A target is an endpoint, or a
 * single callback URL of an adapter. All of an adapter's targets together must leave as many places for the others as a single endpoint
 * does. The buffer itself uses neither the database nor the network.
 */
type DeliveryBuffer<Item> = {
  /**
   * Adds deliveries that were leased at `nowMs`. Returns those that don't fit, because no URL of an adapter may block the adapter's other
   * URLs.
   */
  add(items: readonly Item[], nowMs: number): Item[];
  /** Returns the next delivery to attempt. The attempt counts as in progress until `end` is called. */
  next(): Item | undefined;
  /**
   * Ends an attempt to a target. If it failed, removes and returns the target's waiting deliveries. `null` means that the attempt says
   * nothing about the target.
   */
  end(target: string, isFailure: boolean | null): Item[];
  /** Removes and returns deliveries that have been waiting too long. */
  takeStale(nowMs: number): Item[];
  /** Removes and returns all waiting deliveries. */
  takeAll(): Item[];
  /** Returns how many more deliveries may be leased for each known endpoint. */
  room(): ReadonlyMap<string, number>;
  /** Whether a target has so few waiting deliveries that it may soon be idle. */
  isLow(): boolean;
  /** Returns the number of waiting deliveries plus attempts in progress. */
  held(): number;
  underWay(): number;
};

/** How many deliveries may be leased for an unknown endpoint. */
const DEFAULT_ROOM = 16;
/** How many of an adapter's deliveries may wait, across all of its URLs. */
const ADAPTER_ROOM = 128;

type Leased = { endpointId: string; target: string; isFailing: boolean };
type Target<Item> = {
  endpointId: string;
  /** Whether the endpoint has other targets as well. */
  isShared: boolean;
  waiting: { item: Item; sinceMs: number }[];
  underWay: number;
  isFailing: boolean;
  /**
   * How many deliveries may wait in addition to those in progress. This number doubles when none is left, and halves when one has waited
   * too long.
   */
  lookAhead: number;
};

const LOOK_AHEAD = { least: 8, most: 1024 };

type Limits = { concurrency: number; perEndpoint: number; maxWaitMs: number };

export function createDeliveryBuffer<Item extends Leased>(limits: Limits): DeliveryBuffer<Item> {
  const { concurrency, perEndpoint, maxWaitMs } = limits;
  const targets = new Map<string, Target<Item>>();
  /**
   * The targets in the order of their turns. Failing targets have their own list and come first, because they have only half of the places.
   */
  const turns = { failing: new Set<string>(), healthy: new Set<string>() };
  const attempts = createAttemptCount(limits);

  const takeTurn = (id: string, target: Target<Item>) => {
    turns[target.isFailing ? 'healthy' : 'failing'].delete(id);
    turns[target.isFailing ? 'failing' : 'healthy'].add(id);
  };
  const nextOf = (inTurn: Set<string>): Item | undefined => {
    for (const id of inTurn) {
      const target = targets.get(id);
      inTurn.delete(id);
      // If a target uses all of its places, it gets its next turn when an attempt ends.
      if (target === undefined || !attempts.isRoomFor(target)) continue;
      const first = target.waiting.shift();
      if (first === undefined) continue;
      attempts.count(target, 1);
      if (target.waiting.length > 0) inTurn.add(id);
      return first.item;
    }
    return undefined;
  };
  /** Adds a delivery if there's room for it. */
  const add = (item: Item, nowMs: number): boolean => {
    const { endpointId, target: id, isFailing } = item;
    const isShared = id !== endpointId;
    const fresh = { endpointId, isShared, waiting: [], underWay: 0, isFailing, lookAhead: LOOK_AHEAD.least };
    const target = targets.get(id) ?? fresh;
    attempts.judge(target, isFailing);
    const most = isFailing ? 1 : 2 * perEndpoint;
    if (isShared && target.waiting.length + target.underWay >= most) return false;
    targets.set(id, target);
    target.waiting.push({ item, sinceMs: nowMs });
    takeTurn(id, target);
    return true;
  };
  return {
    add: (items, nowMs) => {
      const rest = items.filter((item) => !add(item, nowMs));
      for (const [id, target] of targets) {
        if (target.waiting.length + target.underWay === 0) targets.delete(id);
      }
      return rest;
    },
    next: () => {
      if (attempts.underWay() >= concurrency) return undefined;
      return (attempts.isRoomForFailing() ? nextOf(turns.failing) : undefined) ?? nextOf(turns.healthy);
    },
    end: (id, isFailure) => {
      const target = targets.get(id);
      if (target === undefined) return [];
      attempts.count(target, -1);
      attempts.judge(target, isFailure ?? target.isFailing);
      const out = isFailure === true ? takeOut(target, () => true) : [];
      if (target.waiting.length > 0) takeTurn(id, target);
      // The adapter's other URLs may have been waiting for this place.
      for (const [otherId, other] of target.isShared ? targets : []) {
        if (other.endpointId === target.endpointId && other.waiting.length > 0) takeTurn(otherId, other);
      }
      return out;
    },
    takeStale: (nowMs) =>
      [...targets.values()].flatMap((target) => {
        const stale = takeOut(target, (sinceMs) => nowMs - sinceMs > maxWaitMs);
        if (stale.length > 0) target.lookAhead = Math.max(LOOK_AHEAD.least, target.lookAhead / 2);
        return stale;
      }),
    takeAll: () => [...targets.values()].flatMap((target) => takeOut(target, () => true)),
    room: () => {
      const room = new Map<string, number>();
      for (const target of targets.values()) {
        const { endpointId, isShared, waiting } = target;
        const own = isShared
          ? Math.max(0, (room.get(endpointId) ?? ADAPTER_ROOM) - waiting.length)
          : roomOf(target, perEndpoint);
        room.set(endpointId, own);
      }
      return room;
    },
    isLow: () => targets.size === 0 || [...targets.values()].some(isLow),
    held: () => [...targets.values()].reduce((sum, { waiting }) => sum + waiting.length, attempts.underWay()),
    underWay: attempts.underWay,
  };
}

/** Counts the attempts in progress: per target, per adapter, for failing targets, and in total. */
function createAttemptCount({ concurrency, perEndpoint }: Limits) {
  let underWay = 0;
  let failingUnderWay = 0;
  const ofAdapters = new Map<string, number>();
  // Failing targets get only half, so that the adapter's other targets always find a place.
  const isRoomAtAdapter = ({ endpointId, isShared, isFailing }: Target<unknown>) =>
    !isShared || (ofAdapters.get(endpointId) ?? 0) < (concurrency - underWay) / (isFailing ? 2 : 1);
  return {
    underWay: () => underWay,
    isRoomFor: (target: Target<unknown>) =>
      target.underWay < Math.min(target.isFailing ? 1 : perEndpoint, concurrency - underWay) && isRoomAtAdapter(target),
    isRoomForFailing: () => failingUnderWay < concurrency / 2,
    count: (target: Target<unknown>, change: 1 | -1) => {
      underWay += change;
      target.underWay += change;
      if (target.isFailing) failingUnderWay += change;
      if (!target.isShared) return;
      const ofAdapter = (ofAdapters.get(target.endpointId) ?? 0) + change;
      if (ofAdapter > 0) ofAdapters.set(target.endpointId, ofAdapter);
      else ofAdapters.delete(target.endpointId);
    },
    judge: (target: Target<unknown>, isFailing: boolean) => {
      if (target.isFailing !== isFailing) failingUnderWay += isFailing ? target.underWay : -target.underWay;
      target.isFailing = isFailing;
    },
  };
}

function takeOut<Item>(target: Target<Item>, isOut: (sinceMs: number) => boolean): Item[] {
  const out = target.waiting.filter(({ sinceMs }) => isOut(sinceMs));
  target.waiting = target.waiting.filter(({ sinceMs }) => !isOut(sinceMs));
  return out.map(({ item }) => item);
}

/** Returns how many more of an endpoint's deliveries may be leased. The look-ahead grows as soon as none is waiting. */
function roomOf(target: Target<unknown>, perEndpoint: number): number {
  const { isFailing, waiting, underWay } = target;
  if (waiting.length === 0 && !isFailing) target.lookAhead = Math.min(LOOK_AHEAD.most, target.lookAhead * 2);
  const most = isFailing ? 1 : perEndpoint + target.lookAhead;
  return Math.max(0, most - waiting.length - underWay);
}

function isLow({ isFailing, waiting, lookAhead }: Target<unknown>): boolean {
  return !isFailing && waiting.length < lookAhead / 2;
}
