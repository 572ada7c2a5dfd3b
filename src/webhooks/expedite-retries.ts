import { failurePauseMs, PAUSE } from '../domain/circuit.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { createLogThrottle } from '../runtime/log-throttle.ts';
import type { Database } from '../store/db/database.ts';
import { type LeasedDelivery, targetOf } from '../store/outbox/deliveries.ts';
import { findFailingCallbackUrls, findFailingEndpoints } from '../store/outbox/endpoint-health.ts';
import { expediteDeliveries } from '../store/outbox/expedite-deliveries.ts';

/** Failing targets and those that were back lately. The one that was heard of longest ago is forgotten first. */
const MAX_TARGETS = 1000;
/** In one statement, which the sending waits for; the others follow at once. */
const BATCH = 20;
/** What waited when more were hastened has its schedule's pause once more. */
const MAX_HASTENED = 10_000;
/** From the database: what failed in a process that has ended since, and what came back in another. */
const LEARN_EVERY_MS = 30_000;
/** An endpoint that takes one event and refuses another is back again and again. */
const RETURN_EVERY_MS = 1000;
/** After a statement that failed. */
const RETRY_MS = 1000;
const NEVER = Number.POSITIVE_INFINITY;
const NOT_HASTENED = 'webhook retries cannot be moved forward; trying again';

/** What is known of a target. `probeAtMs`: it fails, and one delivery is hastened then; `backAtMs`: all that wait are. */
type Known = { failingSince: UnixMs | null; probeAtMs: number; backAtMs: number; returnedAt: UnixMs | null };

export type Expediter = ReturnType<typeof createExpediter>;

/**
 * Notices that a failing receiver is back, by deliveries that are made due before their time: one whenever the pause of its target is
 * over, and all that wait once it has taken one. Of an adapter, whose shop is away, each URL is a target (`targetOf`), and the database keeps
 * nothing of its health. What stands here is lost with the process: the failing targets are learned from the database, and an attempt of which it is not known any more when it had been due has its schedule's pause once more.
 */
export function createExpediter({ db, clock, log }: { db: Database; clock: Clock; log: Logger }) {
  const watched = watchTargets(db);
  const seldom = createLogThrottle(() => performance.now());
  const hastened = new Map<string, { attempt: number; dueAt: UnixMs }>();
  let pausedUntilMs = Number.NEGATIVE_INFINITY;

  const hastenNow = async (): Promise<boolean> => {
    const now = unixMs(clock.now());
    const due = await watched.due(now);
    if (due.length === 0) return false;
    const rows = await expediteDeliveries(db, due, now);
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
    /** Since when a target fails, as far as it is known here. */
    failingSince: watched.failingSince,
    /** Hastens what is to be hastened now. Returns whether that was anything. Never throws: what is due must not wait for it. */
    round: async (): Promise<boolean> => {
      if (performance.now() < pausedUntilMs) return false;
      try {
        return await hastenNow();
      } catch (error) {
        pausedUntilMs = performance.now() + RETRY_MS;
        if (seldom.isDue(NOT_HASTENED)) log.warn({ err: error }, NOT_HASTENED);
        return false;
      }
    },
    /** In how many milliseconds there is something to do. */
    restMs: () => Math.max(0, watched.nextAtMs() - clock.now(), pausedUntilMs - performance.now()),
    /** When a delivery had been due whose attempt is before its time, or `null`; it is asked once for each attempt. */
    takeDueAt: (delivery: LeasedDelivery): UnixMs | null => {
      if (hastened.size === 0) return null;
      const known = hastened.get(keyOf(delivery));
      hastened.delete(keyOf(delivery));
      return known?.attempt === delivery.attempt ? known.dueAt : null;
    },
  };
}

type Asked = { target: string; isBack: boolean; returnedAt: UnixMs | null };

/** Targets that fail, and when each is to be asked. */
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
      // One that lies further off was set by a clock that was wrong.
      if ((targets.get(id)?.probeAtMs ?? NEVER) > now + PAUSE.mostMs) onFailure(id, failingSince, now);
    }
    learnedAtMs = now;
  };
  return {
    failingSince: (id: string) => targets.get(id)?.failingSince ?? null,
    /** An attempt has failed at a target that has failed since then. */
    onFailure,
    /** A target that had failed has taken a delivery. */
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
    /** These were asked, and of those in `found` something was hastened. */
    asked: (due: readonly Asked[], found: ReadonlySet<string>, now: UnixMs) => {
      for (const { target: id, isBack } of due) {
        const { failingSince, probeAtMs } = targets.get(id) ?? { failingSince: null, probeAtMs: NEVER };
        if (isBack) change(id, { backAtMs: NEVER, returnedAt: now });
        if (probeAtMs > now) continue;
        // An attempt that was hastened says when the next one is; if it never reports, the database does.
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
