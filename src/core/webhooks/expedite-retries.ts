import { failurePauseMs, PAUSE } from '../domain/circuit.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { createLogThrottle } from '../runtime/log-throttle.ts';
import type { Database } from '../store/db/database.ts';
import { type LeasedDelivery, targetOf } from '../store/outbox/deliveries.ts';
import { findFailingCallbackUrls, findFailingEndpoints } from '../store/outbox/endpoint-health.ts';
import { bringDeliveriesForward } from '../store/outbox/expedite-deliveries.ts';

/** The number of failing and recently recovered targets. The one that was heard of longest ago is dropped first. */
const MAX_TARGETS = 1000;
/** Per statement, because sending waits for it. The others follow at once. */
const BATCH = 20;
/** If more deliveries are expedited, the excess ones repeat their schedule's pause. */
const MAX_HASTENED = 10_000;
/** Reads from the database: failures in a process that has ended since, and recoveries in another process. */
const LEARN_EVERY_MS = 30_000;
/** An endpoint that accepts one event and refuses another recovers again and again. */
const RETURN_EVERY_MS = 1000;
/** The pause after a failed statement. */
const RETRY_MS = 1000;
const NEVER = Number.POSITIVE_INFINITY;
const NOT_HASTENED = 'webhook retries cannot be moved forward; trying again';

/** The state of a target. At `probeAtMs` it is failing and one delivery is expedited; at `backAtMs` all waiting ones are. */
type Known = { failingSince: UnixMs | null; probeAtMs: number; backAtMs: number; returnedAt: UnixMs | null };

export type Expediter = ReturnType<typeof createExpediter>;

/**
 * Notices that a failing receiver has recovered, by expediting deliveries. Whenever the pause of its target is over, it expedites one. Once
 * the target has accepted one, it expedites all waiting ones. For an adapter, each URL of a failing shop is a target (`targetOf`), and the
 * database stores nothing about its health. This state is lost with the process. Failing targets are then learned from the database, and an
 * expedited attempt whose original due time is lost repeats its schedule's pause.
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
    /** Returns since when a target fails, as far as this process knows. */
    failingSince: watched.failingSince,
    /** Expedites what is due for it. Returns whether there was anything. Never throws, because due deliveries must not wait for it. */
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
    /** Returns in how many milliseconds there is something to do. */
    restMs: () => Math.max(0, watched.nextAtMs() - clock.now(), pausedUntilMs - performance.now()),
    /** Returns when an early attempt had been due, or `null`. Call it once per attempt. */
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
      // A time further ahead was set by a wrong clock.
      if ((targets.get(id)?.probeAtMs ?? NEVER) > now + PAUSE.mostMs) onFailure(id, failingSince, now);
    }
    learnedAtMs = now;
  };
  return {
    failingSince: (id: string) => targets.get(id)?.failingSince ?? null,
    /** Records a failed attempt to a target that has been failing since a time. */
    onFailure,
    /** Records that a failing target accepted a delivery. */
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
    /** Records that these targets were handled. `found` has those for which something was expedited. */
    asked: (due: readonly Asked[], found: ReadonlySet<string>, now: UnixMs) => {
      for (const { target: id, isBack } of due) {
        const { failingSince, probeAtMs } = targets.get(id) ?? { failingSince: null, probeAtMs: NEVER };
        if (isBack) change(id, { backAtMs: NEVER, returnedAt: now });
        if (probeAtMs > now) continue;
        // The outcome of an expedited attempt determines the next probe. If it never arrives, the database does.
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
