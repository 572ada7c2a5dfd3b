import { failurePauseMs, PAUSE } from '../domain/retry.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { createLogThrottle } from '../runtime/log-throttle.ts';
import type { Database } from '../store/db/database.ts';
import { bringDeliveriesForward, type LeasedDelivery, targetOf } from '../store/outbox/deliveries.ts';
import { findFailingCallbackUrls, findFailingEndpoints } from '../store/outbox/webhook-endpoints.ts';

/** Maximum number of failing and recently recovered targets. The target without news for the longest time is dropped first. */
const MAX_TARGETS = 1000;
/** The batch size per statement is limited, because sending has to wait for the statement. The others follow immediately. */
const BATCH = 20;
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
