import { newEvent } from '../domain/event.ts';
import { encodeId } from '../domain/ids.ts';
import {
  type EndpointHealth,
  failurePauseMs,
  hasFailedTooLong,
  healthAfterFailures,
  OUTAGE,
  PAUSE,
} from '../domain/retry.ts';
import { toIso, type UnixMs, unixMs } from '../domain/time.ts';
import { parseUrl } from '../domain/url.ts';
import type { Clock } from '../runtime/clock.ts';
import { createLogThrottle, createTally, type Logger, type LogThrottle, type Tally } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { pooledRandom } from '../runtime/random.ts';
import { BY_ITSELF, insertOperatorActions } from '../store/access/audit-log.ts';
import { raiseAlarm } from '../store/chain/alarms.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { isOfStatement } from '../store/db/unavailable.ts';
import {
  type AttemptOutcome,
  bringDeliveriesForward,
  type LeasedDelivery,
  recordOutcomes,
  returnDeliveries,
  targetOf,
} from '../store/outbox/deliveries.ts';
import { insertEvents } from '../store/outbox/events.ts';
import {
  countUndelivered,
  disableWebhookEndpoint,
  type FailingEndpoint,
  findFailingCallbackUrls,
  findFailingEndpoints,
  lockEndpointHealth,
  saveEndpointHealth,
} from '../store/outbox/webhook-endpoints.ts';
import { quotePage } from './redact.ts';

/** The number of outcomes per statement. With more, the responses alone would be megabytes. */
const BATCH = 256;
/**
 * With the dispatcher's pauses, this many tries take half a minute. After that, the cause must be a single outcome and not the database.
 */
const MAX_TRIES = 10;

/** Attempt outcomes and leases to return, until they are written. The queue is bounded by the maximum number of leases. */
export function createOutcomeQueue(options: {
  db: Database;
  clock: Clock;
  certainNow?(): UnixMs;
  log: Logger;
  metrics: Pick<Metrics, 'deliveryAttempts'>;
  expediter: Expediter;
}) {
  const { db, clock, log } = options;
  const once = () => performance.now();
  const deps = { ...options, pages: createLogThrottle(once), outages: createTally(once) };
  const now = (): UnixMs => unixMs(clock.now());
  let outcomes: AttemptOutcome[] = [];
  let returns: { delivery: LeasedDelivery; delayMs: number }[] = [];
  const tries = new WeakMap<AttemptOutcome, number>();

  /** Records each outcome separately, so that an outcome that can't be recorded doesn't block the others. */
  const recordSingly = async (batch: readonly AttemptOutcome[]): Promise<void> => {
    let failure: unknown = null;
    for (const outcome of batch) {
      try {
        await recordAttempts(deps, [outcome], now());
        outcomes = outcomes.filter((other) => other !== outcome);
      } catch (error) {
        failure = error;
        if (isRetryable(error)) break;
        const count = (tries.get(outcome) ?? 0) + 1;
        tries.set(outcome, count);
        if (count < MAX_TRIES) continue;
        outcomes = outcomes.filter((other) => other !== outcome);
        const fields = { error, ...namesOf(outcome.delivery), outcome: outcome.kind };
        log.error(fields, 'a webhook attempt cannot be recorded; Quittance repeats it');
      }
    }
    if (failure !== null) throw failure;
  };
  const recordBatch = async (): Promise<void> => {
    const batch = outcomes.slice(0, BATCH);
    try {
      await recordAttempts(deps, batch, now());
      outcomes = outcomes.slice(batch.length);
    } catch (error) {
      if (isRetryable(error)) throw error;
      await recordSingly(batch);
    }
  };
  const returnBatch = async (): Promise<void> => {
    const delayMs = returns[0]?.delayMs;
    const batch = returns.filter((one) => one.delayMs === delayMs);
    const dueAt = unixMs(clock.now() + (delayMs ?? 0));
    await returnDeliveries(
      db,
      batch.map(({ delivery }) => delivery),
      dueAt,
    );
    returns = returns.filter((one) => !batch.includes(one));
  };
  return {
    add: (outcome: AttemptOutcome): void => {
      outcomes.push(outcome);
    },
    /** Returns leases without counting an attempt. The deliveries are due again after `delayMs`. */
    giveBack: (deliveries: readonly LeasedDelivery[], delayMs = 0): void => {
      returns.push(...deliveries.map((delivery) => ({ delivery, delayMs })));
    },
    /**
     * Writes the whole queue. If writing isn't possible at the moment, throws without losing anything, and the caller must call `flush`
     * again.
     */
    flush: async () => {
      // Outcomes that are added in the meantime wait for the next flush, so that this one terminates.
      for (let left = outcomes.length; left > 0; left -= BATCH) await recordBatch();
      while (returns.length > 0) await returnBatch();
    },
    size: () => outcomes.length + returns.length,
  };
}

/** Whether the database is unreachable, or temporarily unable to write. */
function isRetryable(error: unknown): boolean {
  return error instanceof Error && 'retryable' in error && error.retryable === true;
}

type RecordDeps = {
  /** The clock that decides whether an endpoint has been failing for too long. The default is the attempts' clock. */
  certainNow?(): UnixMs;
  db: Database;
  log: Logger;
  metrics: Pick<Metrics, 'deliveryAttempts'>;
  /** Counts how often each target has failed since the last log message. */
  outages: Tally;
  expediter: Pick<Expediter, 'onFailure' | 'onReturn' | 'failingSince'>;
  /** Limits warnings about web pages for each endpoint. Without this, all of them are logged. */
  pages?: LogThrottle | undefined;
};
type Disabled = { endpointId: string; reason: string };
type Failing = { id: string; failingSince: UnixMs };

/**
 * Records attempt outcomes in the order in which the attempts ended. Updates the deliveries, the attempt log and the endpoints' state, and
 * disables endpoints if necessary. An adapter has no such state, because a shop's response to the callback for one order says nothing about
 * other orders. Either everything is written or nothing is, with one exception: if only the endpoints' state can't be written, their next
 * attempts write it, so that a locked row delays the other outcomes by only a second. If the database is unreachable, nothing is written,
 * and the caller retries. Finally, updates the expediting, the metrics and the log.
 */
export async function recordAttempts(
  { db, log, metrics, outages, expediter, certainNow, pages }: RecordDeps,
  outcomes: readonly AttemptOutcome[],
  now: UnixMs,
): Promise<void> {
  const failures = failuresByEndpoint(outcomes);
  const none = { disabled: [] as Disabled[], failing: [] as Failing[] };
  const recordAlone = async () => ({ ...(await recordOutcomes(db, outcomes, now)), ...none });
  const recordAndJudge = () =>
    db.transaction(async (tx) => {
      const recorded = await recordOutcomes(tx, outcomes, now);
      return {
        ...recorded,
        ...(await judgeEndpoints(tx, failures, recorded.ours, { now, certain: certainNow?.() ?? now })),
      };
    });
  const recordAtLeast = async (error: unknown) => {
    if (!isOfStatement(error)) throw error;
    const recorded = await recordAlone();
    const endpoints = [...failures.keys()].slice(0, MAX_LOGGED).map((id) => encodeId('whe', id));
    log.warn(
      { error, endpoints },
      'could not record webhook endpoint failures; Quittance counts them at the next attempt',
    );
    return recorded;
  };
  // Successes need only one statement, because only failures affect the endpoints.
  const recorded = await (failures.size === 0 ? recordAlone() : recordAndJudge().catch(recordAtLeast));
  const { ours, back, disabled, failing } = recorded;
  for (const id of new Set([...back, ...endpointsBack(outcomes)])) expediter.onReturn(id, now);
  for (const { id, failingSince } of failing) expediter.onFailure(id, failingSince, now);
  for (const outcome of outcomes) if (isCallback(outcome)) noteCallback(expediter, outcome, now);
  for (const outcome of outcomes) logOutcome({ log, metrics, outages, pages }, outcome, ours.has(outcome), now);
  for (const endpoint of disabled) {
    log.error(endpoint, 'webhook endpoint disabled; Quittance keeps its events, and sends nothing until you enable it');
  }
}

const MAX_LOGGED = 10;

/**
 * Returns each endpoint's failures that weren't followed by a success at the same URL, and every 410 response, because no other response
 * cancels it.
 */
function failuresByEndpoint(outcomes: readonly AttemptOutcome[]): Map<string, AttemptOutcome[]> {
  const failures = new Map<string, AttemptOutcome[]>();
  for (const outcome of outcomes) {
    if (isCallback(outcome)) continue;
    const { endpointId, url } = outcome.delivery;
    const before = failures.get(endpointId) ?? [];
    const isKept = (failure: AttemptOutcome) => isGone(failure) || failure.delivery.url !== url;
    const after = outcome.kind === 'delivered' ? before.filter(isKept) : [...before, outcome];
    if (after.length > 0) failures.set(endpointId, after);
    else failures.delete(endpointId);
  }
  return failures;
}

/**
 * Returns the endpoints that accepted a delivery after a failure at the same URL within these outcomes. The database never recorded that
 * these endpoints had failed.
 */
function endpointsBack(outcomes: readonly AttemptOutcome[]): string[] {
  const failed = new Set<string>();
  return outcomes.flatMap((outcome) => {
    const { kind, delivery } = outcome;
    const { endpointId, url } = delivery;
    if (isCallback(outcome)) return [];
    if (kind === 'failed') failed.add(targetOf(endpointId, url));
    return kind === 'delivered' && failed.has(targetOf(endpointId, url)) ? [endpointId] : [];
  });
}

function isCallback({ delivery }: AttemptOutcome): boolean {
  return delivery.adapter !== null;
}

const AWAY = new RegExp(OUTAGE);

/** Whether an attempt shows that its target is down. For a callback, that's only the case if the shop didn't respond at all. */
export function isOutage(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'failed' && (!isCallback(outcome) || AWAY.test(outcome.error ?? ''));
}

/** Whether the target accepted the attempt. Returns false for a callback that was no longer needed: it's `delivered`, but was never sent. */
export function hasArrived({ kind, status }: AttemptOutcome): boolean {
  return kind === 'delivered' && status !== null;
}

/** Records that an order's shop is down, or that the shop has responded after an outage, even if this process didn't see the outage. */
function noteCallback(expediter: RecordDeps['expediter'], outcome: AttemptOutcome, now: UnixMs): void {
  const { target, attempt } = outcome.delivery;
  const since = expediter.failingSince(target);
  // A callback that wasn't sent shows nothing about the shop. If it was a probe, the next one must be scheduled.
  if (outcome.kind === 'delivered' && !hasArrived(outcome)) {
    if (since !== null) expediter.onFailure(target, since, now);
    return;
  }
  if (isOutage(outcome)) expediter.onFailure(target, since ?? now, now);
  else if (since !== null || (outcome.kind === 'delivered' && attempt > 1)) expediter.onReturn(target, now);
}

function isGone({ status }: AttemptOutcome): boolean {
  return status === 410;
}

async function judgeEndpoints(
  tx: Sql,
  failures: ReadonlyMap<string, AttemptOutcome[]>,
  ours: ReadonlySet<AttemptOutcome>,
  { now, certain }: { now: UnixMs; certain: UnixMs },
): Promise<{ disabled: Disabled[]; failing: Failing[] }> {
  const disabled: Disabled[] = [];
  const failing: Failing[] = [];
  for (const endpoint of await lockEndpointHealth(tx, [...failures.keys()])) {
    // What was sent to the previous URL says nothing about this one.
    const counted = (failures.get(endpoint.id) ?? []).filter(
      (outcome) => ours.has(outcome) && outcome.delivery.url === endpoint.url,
    );
    if (counted.length === 0) continue;
    const probes = counted.filter(({ delivery }) => delivery.isProbe).length;
    // If an event is refused because of its content, expediting it must not pause the endpoint.
    const others = counted.filter(({ delivery, isHastened }) => !delivery.isProbe && !isHastened).length;
    const health = healthAfterFailures(endpoint, { probes, others }, now);
    await saveEndpointHealth(tx, endpoint.id, health);
    if (health.failingSince !== null) failing.push({ id: endpoint.id, failingSince: health.failingSince });
    const reason = reasonToDisable(health, counted, certain);
    if (reason !== null && (await disableEndpoint(tx, endpoint, { now, reason }))) {
      disabled.push({ endpointId: encodeId('whe', endpoint.id), reason });
    }
  }
  return { disabled, failing };
}

function reasonToDisable(health: EndpointHealth, failures: readonly AttemptOutcome[], now: UnixMs): string | null {
  if (failures.some(isGone)) return 'the endpoint returned 410 Gone';
  return hasFailedTooLong(health, now) ? 'every attempt has failed for 5 days' : null;
}

function logOutcome(
  { log, metrics, outages, pages }: Pick<RecordDeps, 'log' | 'metrics' | 'outages' | 'pages'>,
  outcome: AttemptOutcome,
  isOurs: boolean,
  now: UnixMs,
): void {
  const { delivery, kind, status, nextAttemptAt, latencyMs } = outcome;
  if (kind === 'delivered') {
    metrics.deliveryAttempts.inc(DELIVERED);
    const page = quotePage(outcome.answer);
    if (page !== null && pages?.isDue(delivery.endpointId) !== false) {
      log.warn(
        { ...namesOf(delivery), status, page },
        'the endpoint returned a web page; the receiver may never see the webhook',
      );
    }
    if (!isOurs && hasArrived(outcome)) {
      log.warn(namesOf(delivery), 'webhook delivered after its lease expired; the endpoint may receive it twice');
    } else if (log.isLevelEnabled('debug')) {
      log.debug({ ...namesOf(delivery), status, latencyMs }, 'webhook delivered');
    }
    return;
  }
  metrics.deliveryAttempts.inc(nextAttemptAt === null ? DEAD : RETRIED);
  const fields = { ...namesOf(delivery), status, latencyMs, reason: outcome.error };
  if (nextAttemptAt === null) {
    log.error(fields, 'webhook is dead after its last attempt; replay it once its endpoint works');
    return;
  }
  const retried = { ...fields, delayMs: nextAttemptAt - now };
  // During an outage, hundreds of attempts fail within minutes for the same reason.
  const failures = outages.note(targetOf(delivery.endpointId, delivery.callbackUrl));
  if (failures === null) log.debug(retried, 'webhook failed again; Quittance retries it');
  else log.info({ ...retried, failures }, 'webhook failed; Quittance retries it');
}

const DELIVERED = { outcome: 'delivered' } as const;
const RETRIED = { outcome: 'retried' } as const;
const DEAD = { outcome: 'dead' } as const;
/** The label values for the metric `quittance_webhook_attempts_total`. */
export const COUNTED_ATTEMPTS = [DELIVERED, RETRIED, DEAD];

/** The log fields that identify an attempt. */
export function namesOf(delivery: LeasedDelivery) {
  return {
    eventId: encodeId('evt', delivery.eventId),
    endpointId: encodeId('whe', delivery.endpointId),
    attempt: delivery.attempt,
  };
}

/**
 * Disables a failing endpoint in the caller's transaction. Sends an event to the project's other endpoints and raises an alarm for the
 * operator. Its deliveries don't change. Returns `false` if the endpoint is already disabled.
 */
async function disableEndpoint(
  tx: Sql,
  endpoint: FailingEndpoint,
  { now, reason }: { now: UnixMs; reason: string },
): Promise<boolean> {
  if (!(await disableWebhookEndpoint(tx, endpoint.id, now, reason))) return false;
  const { projectId, network, description } = endpoint;
  const endpointId = encodeId('whe', endpoint.id);
  // The URL's path and query may contain a token, so only its origin is used.
  const origin = parseUrl(endpoint.url)?.origin ?? 'invalid URL';
  const undelivered = await countUndelivered(tx, endpoint.id);
  const data = { endpointId, description, reason, disabledAt: toIso(now), undelivered, origin };
  const told = { type: 'endpoint.disabled', projectId, invoiceId: null, transferId: null, sequence: 1, data } as const;
  await insertEvents(tx, network, [newEvent(told, { timestamp: now, random: pooledRandom })], now);
  const detail = `webhook endpoint ${endpointId} (${origin}) was disabled: ${reason}. ${undelivered} events are waiting: repair the receiver, then "quittance webhook enable ${endpointId}"`;
  await raiseAlarm(tx, network, { kind: 'webhook-disabled', subject: endpointId, detail });
  const action = {
    projectId,
    action: 'webhook.disabled',
    subject: endpointId,
    detail: { reason },
    actedAt: now,
  } as const;
  await insertOperatorActions(tx, [{ ...BY_ITSELF, ...action }]);
  return true;
}

/** Maximum number of failing and recently recovered targets. The target without news for the longest time is dropped first. */
const MAX_TARGETS = 1000;
/** The batch size per statement is limited, because sending has to wait for the statement. The others follow immediately. */
const MAX_DUE = 20;
/** If more deliveries than this are expedited, the others repeat the schedule's pause. */
const MAX_EXPEDITED = 10_000;
/** How often the database is checked for failures in a process that has since exited, and for recoveries seen by another process. */
const LEARN_EVERY_MS = 30_000;
/** An endpoint that accepts one event and refuses another seems to recover again and again. */
const RETURN_EVERY_MS = 1000;
/** The pause after a failed statement. */
const RETRY_MS = 1000;
const NEVER = Number.POSITIVE_INFINITY;
const NOT_EXPEDITED = 'could not move webhook retries forward; retrying';

/**
 * A target's state. While the target is failing, one delivery is expedited at `probeAtMs`. After it has recovered, all waiting ones are
 * expedited at `backAtMs`.
 */
type Known = { failingSince: UnixMs | null; probeAtMs: number; backAtMs: number; returnedAt: UnixMs | null };

export type Expediter = ReturnType<typeof createExpediter>;

/**
 * Notices that a failing receiver has recovered, by expediting deliveries. Whenever a target's pause is over, it expedites one delivery. As
 * soon as the target has accepted one, it expedites all waiting deliveries. For an adapter, each URL of a failing shop is a separate target
 * (`targetOf`), whose health isn't stored in the database. This state is lost when the process exits. Failing targets are then read from
 * the database. If an expedited attempt's original due time is lost, the schedule's pause is repeated.
 */
export function createExpediter({ db, clock, log }: { db: Database; clock: Clock; log: Logger }) {
  const watched = watchTargets(db);
  const throttle = createLogThrottle(() => performance.now());
  const expedited = new Map<string, { attempt: number; dueAt: UnixMs }>();
  let pausedUntilMs = Number.NEGATIVE_INFINITY;

  const expediteNow = async (): Promise<boolean> => {
    const now = unixMs(clock.now());
    const due = await watched.due(now);
    if (due.length === 0) return false;
    const rows = await bringDeliveriesForward(db, due, now);
    for (const { attemptCount, dueAt, ...delivery } of rows) {
      if (attemptCount > 0) expedited.set(keyOf(delivery), { attempt: attemptCount + 1, dueAt });
    }
    forgetOldest(expedited, MAX_EXPEDITED);
    watched.asked(due, new Set(rows.map(({ endpointId, callbackUrl }) => targetOf(endpointId, callbackUrl))), now);
    return rows.length > 0;
  };
  return {
    onFailure: watched.onFailure,
    onReturn: watched.onReturn,
    /** Returns the time when a target started failing, as far as this process knows. */
    failingSince: watched.failingSince,
    /**
     * Expedites everything that is due. Returns whether there was anything. Never throws, because a failure here must not delay deliveries
     * that are due.
     */
    round: async (): Promise<boolean> => {
      if (performance.now() < pausedUntilMs) return false;
      try {
        return await expediteNow();
      } catch (error) {
        pausedUntilMs = performance.now() + RETRY_MS;
        if (throttle.isDue(NOT_EXPEDITED)) log.warn({ err: error }, NOT_EXPEDITED);
        return false;
      }
    },
    /** Returns how many milliseconds remain until there's something to do. */
    restMs: () => Math.max(0, watched.nextAtMs() - clock.now(), pausedUntilMs - performance.now()),
    /** If an attempt is early, returns the time when it would have been due, otherwise `null`. Call this once per attempt. */
    takeDueAt: (delivery: LeasedDelivery): UnixMs | null => {
      if (expedited.size === 0) return null;
      const known = expedited.get(keyOf(delivery));
      expedited.delete(keyOf(delivery));
      return known?.attempt === delivery.attempt ? known.dueAt : null;
    },
  };
}

type Asked = { target: string; isBack: boolean; returnedAt: UnixMs | null };

/** Tracks failing targets, and when to probe each. */
function watchTargets(db: Database) {
  const targets = new Map<string, Known>();
  let learnedAtMs = Number.NEGATIVE_INFINITY;

  const change = (id: string, changes: Partial<Known>) => {
    const known = targets.get(id) ?? { failingSince: null, probeAtMs: NEVER, backAtMs: NEVER, returnedAt: null };
    targets.delete(id);
    targets.set(id, { ...known, ...changes });
    forgetOldest(targets, MAX_TARGETS);
  };
  const onFailure = (id: string, failingSince: UnixMs, now: UnixMs) =>
    change(id, { failingSince, probeAtMs: now + failurePauseMs(failingSince, now) });
  const learn = async (now: UnixMs) => {
    const endpoints = await findFailingEndpoints(db);
    const callbacks = await findFailingCallbackUrls(db);
    const failing = [
      ...endpoints,
      ...callbacks.map(({ endpointId, url, failingSince }) => ({ id: targetOf(endpointId, url), failingSince })),
    ];
    const ids = new Set(failing.map(({ id }) => id));
    for (const [id, known] of targets) if (!ids.has(id)) Object.assign(known, { failingSince: null, probeAtMs: NEVER });
    for (const { id, failingSince } of failing.toReversed()) {
      // If the time is further ahead than the longest pause, it was set while the clock was wrong.
      if ((targets.get(id)?.probeAtMs ?? NEVER) > now + PAUSE.mostMs) onFailure(id, failingSince, now);
    }
    learnedAtMs = now;
  };
  return {
    failingSince: (id: string) => targets.get(id)?.failingSince ?? null,
    /** Records a failed attempt to a target, and the time when the target started failing. */
    onFailure,
    /** Records that a previously failing target has accepted a delivery. */
    onReturn: (id: string, now: UnixMs) => {
      const { returnedAt = null } = targets.get(id) ?? {};
      const isSoon = returnedAt !== null && Math.abs(now - returnedAt) < RETURN_EVERY_MS;
      change(id, { failingSince: null, probeAtMs: NEVER, backAtMs: isSoon ? now + RETURN_EVERY_MS : now });
    },
    due: async (now: UnixMs): Promise<Asked[]> => {
      if (Math.abs(now - learnedAtMs) >= LEARN_EVERY_MS) await learn(now);
      const due = [...targets].filter(([, known]) => nextMs(known) <= now).slice(0, MAX_DUE);
      return due.map(([target, { backAtMs, returnedAt }]) => ({ target, isBack: backAtMs <= now, returnedAt }));
    },
    /** Records that these targets were handled. `found` contains the targets that have expedited deliveries. */
    asked: (due: readonly Asked[], found: ReadonlySet<string>, now: UnixMs) => {
      for (const { target: id, isBack } of due) {
        const { failingSince, probeAtMs } = targets.get(id) ?? { failingSince: null, probeAtMs: NEVER };
        if (isBack) change(id, { backAtMs: NEVER, returnedAt: now });
        if (probeAtMs > now) continue;
        // The next probe depends on the expedited attempt's outcome. If the outcome never arrives, it depends on the database.
        change(id, { probeAtMs: found.has(id) ? NEVER : now + failurePauseMs(failingSince ?? now, now) });
      }
    },
    nextAtMs: () => [...targets.values()].reduce((least, known) => Math.min(least, nextMs(known)), NEVER),
  };
}

function nextMs({ probeAtMs, backAtMs }: Known): number {
  return Math.min(probeAtMs, backAtMs);
}

function keyOf({ eventId, endpointId }: Pick<LeasedDelivery, 'eventId' | 'endpointId'>): string {
  return `${eventId} ${endpointId}`;
}

function forgetOldest(map: Map<string, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return;
    map.delete(key);
  }
}
