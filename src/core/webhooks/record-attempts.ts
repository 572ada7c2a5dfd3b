import { newEvent } from '../domain/event.ts';
import { encodeId } from '../domain/ids.ts';
import { type EndpointHealth, hasFailedTooLong, healthAfterFailures, OUTAGE } from '../domain/retry.ts';
import { toIso, type UnixMs, unixMs } from '../domain/time.ts';
import { parseUrl } from '../domain/url.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { createLogThrottle, createTally, type LogThrottle, type Tally } from '../runtime/log-throttle.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { pooledRandom } from '../runtime/random.ts';
import { BY_ITSELF, insertOperatorActions } from '../store/access/audit-log.ts';
import { raiseAlarm } from '../store/chain/alarms.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { isOfStatement } from '../store/db/unavailable.ts';
import {
  type AttemptOutcome,
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
  lockEndpointHealth,
  saveEndpointHealth,
} from '../store/outbox/webhook-endpoints.ts';
import type { Expediter } from './expedite.ts';
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
