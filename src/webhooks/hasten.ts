import { failurePauseMs, PAUSE } from '../domain/circuit.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Database } from '../store/db/database.ts';
import type { LeasedDelivery } from '../store/outbox/deliveries.ts';
import { hastenDeliveries } from '../store/outbox/delivery-hasten.ts';
import { findFailingEndpoints } from '../store/outbox/endpoint-health.ts';

/** Failing endpoints and those that were back lately. The one that was heard of longest ago is forgotten first. */
const MAX_ENDPOINTS = 1000;
/** In one statement; the others follow at once. */
const BATCH = 100;
/** What waited when more were hastened has its schedule's pause once more. */
const MAX_HASTENED = 10_000;
/** From the database: what failed in a process that has ended since, and what came back in another. */
const LEARN_EVERY_MS = 30_000;
/** An endpoint that takes one event and refuses another is back again and again. */
const RETURN_EVERY_MS = 1000;
/** An attempt that was hastened reports before that, and its failure moves the next one. */
const REPORT_MS = 25_000;
const NEVER = Number.POSITIVE_INFINITY;

/** What is known of an endpoint. `probeAtMs`: it fails, and one delivery is hastened then; `backAtMs`: all that wait are. */
type Known = { failingSince: UnixMs | null; probeAtMs: number; backAtMs: number; returnedAt: UnixMs | null };

export type Hastener = ReturnType<typeof createHastener>;

/**
 * Notices that a failing receiver is back, by deliveries that are made due before their time: one whenever the pause of its endpoint is
 * over, and all that wait once it has taken one. What stands here is lost with the process: the failing endpoints are learned from the
 * database, and an attempt of which it is not known any more when it had been due has its schedule's pause once more.
 */
export function createHastener({ db, clock }: { db: Database; clock: Clock }) {
  const endpoints = new Map<string, Known>();
  const hastened = new Map<string, { attempt: number; dueAt: UnixMs }>();
  let learnedAtMs = Number.NEGATIVE_INFINITY;

  const change = (id: string, changes: Partial<Known>) => {
    const known = endpoints.get(id) ?? { failingSince: null, probeAtMs: NEVER, backAtMs: NEVER, returnedAt: null };
    endpoints.delete(id);
    endpoints.set(id, { ...known, ...changes });
    forgetOldest(endpoints, MAX_ENDPOINTS);
  };
  const fail = (id: string, failingSince: UnixMs, now: UnixMs) =>
    change(id, { failingSince, probeAtMs: now + failurePauseMs(failingSince, now) });
  const learn = async (now: UnixMs) => {
    const failing = await findFailingEndpoints(db);
    const ids = new Set(failing.map(({ id }) => id));
    for (const [id, known] of endpoints) if (!ids.has(id)) known.probeAtMs = NEVER;
    for (const { id, failingSince } of failing.toReversed()) {
      // One that lies further off was set by a clock that was wrong.
      if ((endpoints.get(id)?.probeAtMs ?? NEVER) > now + PAUSE.mostMs) fail(id, failingSince, now);
    }
    learnedAtMs = now;
  };
  const remember = (rows: Awaited<ReturnType<typeof hastenDeliveries>>) => {
    for (const { attemptCount, dueAt, ...delivery } of rows) {
      if (attemptCount > 0) hastened.set(keyOf(delivery), { attempt: attemptCount + 1, dueAt });
    }
    forgetOldest(hastened, MAX_HASTENED);
  };
  return {
    /** An attempt has failed at an endpoint that has failed since then. */
    onFailure: fail,
    /** An endpoint that had failed has taken a delivery. */
    onReturn: (id: string, now: UnixMs) => {
      const { returnedAt = null } = endpoints.get(id) ?? {};
      change(id, {
        probeAtMs: NEVER,
        backAtMs: returnedAt !== null && Math.abs(now - returnedAt) < RETURN_EVERY_MS ? now + RETURN_EVERY_MS : now,
      });
    },
    /** Hastens what is to be hastened now. Returns whether that was anything. */
    round: async (): Promise<boolean> => {
      const now = unixMs(clock.now());
      if (Math.abs(now - learnedAtMs) >= LEARN_EVERY_MS) await learn(now);
      const due = [...endpoints].filter(([, known]) => nextMs(known) <= now).slice(0, BATCH);
      if (due.length === 0) return false;
      const asked = due.map(([endpointId, { backAtMs, returnedAt }]) => {
        return { endpointId, isBack: backAtMs <= now, returnedAt };
      });
      const rows = await hastenDeliveries(db, asked, now);
      remember(rows);
      const found = new Set(rows.map(({ endpointId }) => endpointId));
      for (const [id, { failingSince, probeAtMs, backAtMs }] of due) {
        if (backAtMs <= now) change(id, { backAtMs: NEVER, returnedAt: now });
        if (probeAtMs > now) continue;
        change(id, { probeAtMs: now + (found.has(id) ? REPORT_MS : failurePauseMs(failingSince ?? now, now)) });
      }
      return rows.length > 0;
    },
    /** In how many milliseconds there is something to do. */
    restMs: (): number =>
      Math.max(
        0,
        [...endpoints.values()].reduce((least, known) => Math.min(least, nextMs(known)), NEVER) - clock.now(),
      ),
    /** When a delivery had been due whose attempt is before its time, or `null`; it is asked once for each attempt. */
    takeDueAt: (delivery: LeasedDelivery): UnixMs | null => {
      const known = hastened.get(keyOf(delivery));
      hastened.delete(keyOf(delivery));
      return known?.attempt === delivery.attempt ? known.dueAt : null;
    },
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
