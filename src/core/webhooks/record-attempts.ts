import { randomUUID } from 'node:crypto';
import {
  type EndpointHealth,
  failurePauseMs,
  hasFailedTooLong,
  healthAfterFailures,
  PAUSE,
} from '../domain/circuit.ts';
import { newEvent } from '../domain/event.ts';
import { encodeId } from '../domain/ids.ts';
import { OUTAGE } from '../domain/retry.ts';
import { toIso, type UnixMs, unixMs } from '../domain/time.ts';
import { parseUrl } from '../domain/url.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { createLogThrottle, type LogThrottle, type Tally } from '../runtime/log-throttle.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { pooledRandom } from '../runtime/random.ts';
import { insertOperatorActions } from '../store/access/audit-log.ts';
import { BY_ITSELF } from '../store/access/service-actor.ts';
import { raiseAlarm } from '../store/chain/alarms.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { isOfStatement } from '../store/db/unavailable.ts';
import { type LeasedDelivery, targetOf } from '../store/outbox/deliveries.ts';
import { type AttemptOutcome, recordOutcomes } from '../store/outbox/delivery-outcomes.ts';
import {
  countUndelivered,
  type FailingEndpoint,
  findFailingCallbackUrls,
  findFailingEndpoints,
  lockEndpointHealth,
  saveEndpointHealth,
} from '../store/outbox/endpoint-health.ts';
import { insertEvents } from '../store/outbox/events.ts';
import { bringDeliveriesForward } from '../store/outbox/expedite-deliveries.ts';
import { disableWebhookEndpoint } from '../store/outbox/webhook-endpoints.ts';
import { quotePage } from './redact.ts';

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
 * other orders. Either everything is written or nothing is, with one exception: if only the endpoints can't be written, their next attempts
 * write them, so that a locked row delays the others by only a second. If the database is unreachable, nothing is written, and the caller
 * retries. Finally, updates the expediting, the metrics and the log.
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
    log.warn({ error, endpoints }, 'could not record webhook endpoint failures; they count at the next attempt');
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
    log.error(endpoint, 'webhook endpoint disabled; its events are kept, and nothing is sent until it is enabled');
  }
}

const MAX_LOGGED = 10;

/** Returns each endpoint's failures that weren't followed by a success, and any 410, because no other response cancels it. */
function failuresByEndpoint(outcomes: readonly AttemptOutcome[]): Map<string, AttemptOutcome[]> {
  const failures = new Map<string, AttemptOutcome[]>();
  for (const outcome of outcomes) {
    if (isCallback(outcome)) continue;
    const { endpointId } = outcome.delivery;
    const before = failures.get(endpointId) ?? [];
    const after = outcome.kind === 'delivered' ? before.filter(isGone) : [...before, outcome];
    if (after.length > 0) failures.set(endpointId, after);
    else failures.delete(endpointId);
  }
  return failures;
}

/**
 * Returns the endpoints that accepted a delivery after a failure within these outcomes. The database never recorded that these endpoints
 * had failed.
 */
function endpointsBack(outcomes: readonly AttemptOutcome[]): string[] {
  const failed = new Set<string>();
  return outcomes.flatMap((outcome) => {
    const { kind, delivery } = outcome;
    const { endpointId } = delivery;
    if (isCallback(outcome)) return [];
    if (kind === 'failed') failed.add(endpointId);
    return kind === 'delivered' && failed.has(endpointId) ? [endpointId] : [];
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

/** Records that an order's shop is down, or that the shop has responded after an outage, even if this process didn't see the outage. */
function noteCallback(expediter: RecordDeps['expediter'], outcome: AttemptOutcome, now: UnixMs): void {
  const { target, attempt } = outcome.delivery;
  const since = expediter.failingSince(target);
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
    const counted = (failures.get(endpoint.id) ?? []).filter((outcome) => ours.has(outcome));
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
    if (!isOurs) {
      log.warn(namesOf(delivery), 'webhook delivered after its lease had run out; it may arrive twice');
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
  const detail = `webhook endpoint ${endpointId} (${origin}) was disabled: ${reason}. ${undelivered} events are waiting for it: repair it, then "quittance webhook enable ${endpointId}"`;
  await raiseAlarm(tx, network, { id: randomUUID(), kind: 'webhook-disabled', subject: endpointId, detail });
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
const BATCH = 20;
/** If more deliveries are expedited, the excess ones repeat the schedule's pause. */
const MAX_HASTENED = 10_000;
/** How often the database is checked for failures in a process that has since exited, and for recoveries seen by another process. */
const LEARN_EVERY_MS = 30_000;
/** An endpoint that accepts one event and refuses another keeps recovering. */
const RETURN_EVERY_MS = 1000;
/** The pause after a failed statement. */
const RETRY_MS = 1000;
const NEVER = Number.POSITIVE_INFINITY;
const NOT_HASTENED = 'could not move webhook retries forward; retrying';

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
  const hastened = new Map<string, { attempt: number; dueAt: UnixMs }>();
  let pausedUntilMs = Number.NEGATIVE_INFINITY;

  const hastenNow = async (): Promise<boolean> => {
    const now = unixMs(clock.now());
    const due = await watched.due(now);
    if (due.length === 0) return false;
    const rows = await bringDeliveriesForward(db, due, now);
    for (const { attemptCount, dueAt, ...delivery } of rows) {
      if (attemptCount > 0) hastened.set(keyOf(delivery), { attempt: attemptCount + 1, dueAt });
    }
    forgetOldest(hastened, MAX_HASTENED);
    watched.asked(due, new Set(rows.map(({ endpointId, callbackUrl }) => targetOf(endpointId, callbackUrl))), now);
    return rows.length > 0;
  };
  return {
    onFailure: watched.onFailure,
    onReturn: watched.onReturn,
    /** Returns the time when a target started failing, as far as this process knows. */
    failingSince: watched.failingSince,
    /**
     * Expedites everything that is due. Returns whether there was anything. Never throws, because due deliveries must not have to wait for
     * this.
     */
    round: async (): Promise<boolean> => {
      if (performance.now() < pausedUntilMs) return false;
      try {
        return await hastenNow();
      } catch (error) {
        pausedUntilMs = performance.now() + RETRY_MS;
        if (throttle.isDue(NOT_HASTENED)) log.warn({ err: error }, NOT_HASTENED);
        return false;
      }
    },
    /** Returns how many milliseconds remain until there's something to do. */
    restMs: () => Math.max(0, watched.nextAtMs() - clock.now(), pausedUntilMs - performance.now()),
    /** If an attempt is early, returns the time when it would have been due, otherwise `null`. Call this once per attempt. */
    takeDueAt: (delivery: LeasedDelivery): UnixMs | null => {
      if (hastened.size === 0) return null;
      const known = hastened.get(keyOf(delivery));
      hastened.delete(keyOf(delivery));
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
      // A time that is further ahead than that was set by a wrong clock.
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
      const due = [...targets].filter(([, known]) => nextMs(known) <= now).slice(0, BATCH);
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
