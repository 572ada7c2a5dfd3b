import { encodeId } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Database, Sql } from '../store/database.ts';
import { findPositionAt } from '../store/delivery-desk.ts';
import {
  findReplayCandidates,
  notifyDispatchers,
  type ReplayCandidate,
  type Replayed,
  type ReplayFilter,
  replayDeliveries,
} from '../store/delivery-replay.ts';
import { insertOperatorActions } from '../store/operator-actions.ts';

type Deps = { db: Database; now: () => UnixMs; operator: string };

/** A transaction takes so many, in some ten milliseconds. */
const BATCH = 500;
/** Positions that one query looks through. */
const STRIDE = 2000n;
/** Events of one time are at positions that differ by what their transactions took. */
const MARGIN_MS = 60_000;

/** How many events there were, by what their deliveries were before, and by what became of them. */
export type ReplayCount = { was: Record<ReplayCandidate['was'], number>; outcome: Record<Replayed['outcome'], number> };

export function noneReplayed(): ReplayCount {
  return {
    was: { missing: 0, pending: 0, delivered: 0, dead: 0 },
    outcome: { replayed: 0, due: 0, exhausted: 0 },
  };
}

/** Counts what `replayFiltered` would send again. */
export async function countReplay(db: Sql, filter: ReplayFilter): Promise<ReplayCount> {
  const count = noneReplayed();
  for await (const candidates of walk(db, filter)) for (const { was } of candidates) count.was[was] += 1;
  return count;
}

/**
 * Sends what fits a filter again, in the order of the events: in batches, each of which is a transaction, so that one that is cut
 * short can be run again. What was asked for is recorded with the first.
 */
export async function replayFiltered(deps: Deps, filter: ReplayFilter): Promise<ReplayCount> {
  const count = noneReplayed();
  const { projectId, endpointId, statuses, onlyFailing, types } = filter;
  const detail = { from: filter.from, until: filter.until, statuses, onlyFailing, types };
  let isRecorded = false;
  for await (const candidates of walk(deps.db, filter)) {
    for (let start = 0; start < candidates.length; start += BATCH) {
      const eventIds = candidates.slice(start, start + BATCH).map(({ eventId }) => eventId);
      const replayed = await deps.db.transaction(async (tx) => {
        if (!isRecorded) await recordAction(tx, deps, { projectId, endpointId, detail });
        return replayDeliveries(tx, { endpointId, eventIds, now: deps.now(), statuses });
      });
      isRecorded = true;
      add(count, replayed);
      await notifyDispatchers(deps.db);
    }
  }
  return count;
}

/** Sends events to endpoints again, all or none. Returns what became of each, endpoint by endpoint. */
export async function replayNamed(
  deps: Deps,
  targets: readonly { projectId: string; endpointId: string; eventIds: readonly string[] }[],
): Promise<(Replayed & { endpointId: string })[]> {
  const replayed = await deps.db.transaction(async (tx) => {
    const all: (Replayed & { endpointId: string })[] = [];
    for (const { projectId, endpointId, eventIds } of targets) {
      const detail = { events: eventIds.map((id) => encodeId('evt', id)) };
      await recordAction(tx, deps, { projectId, endpointId, detail });
      const results = await replayDeliveries(tx, { endpointId, eventIds, now: deps.now() });
      all.push(...results.map((result) => ({ ...result, endpointId })));
    }
    return all;
  });
  await notifyDispatchers(deps.db);
  return replayed;
}

function add(count: ReplayCount, replayed: readonly Replayed[]): void {
  for (const { was, outcome } of replayed) {
    count.was[was] += 1;
    count.outcome[outcome] += 1;
  }
}

/** The candidates in the order of their events. What is committed while this goes on is after the end, and is planned by itself. */
async function* walk(db: Sql, filter: ReplayFilter): AsyncGenerator<ReplayCandidate[]> {
  const { projectId, from, until } = filter;
  const end = await findPositionAt(db, projectId, (until + MARGIN_MS) as UnixMs);
  let first = await findPositionAt(db, projectId, Math.max(0, from - MARGIN_MS) as UnixMs);
  for (; first < end; first += STRIDE) {
    const stop = first + STRIDE < end ? first + STRIDE : end;
    const candidates = await findReplayCandidates(db, filter, { first, end: stop });
    if (candidates.length > 0) yield candidates;
  }
}

async function recordAction(
  tx: Sql,
  { now, operator }: Deps,
  { projectId, endpointId, detail }: { projectId: string; endpointId: string; detail: object },
): Promise<void> {
  const subject = encodeId('whe', endpointId);
  await insertOperatorActions(tx, [
    { projectId, action: 'deliveries.replayed', subject, detail, actedBy: operator, actedAt: now() },
  ]);
}
