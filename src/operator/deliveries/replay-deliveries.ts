import { AppError } from '../../domain/errors.ts';
import { REPLAYED_TYPES } from '../../domain/event.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';
import { readPeriod } from '../input/read-period.ts';
import { recordActions } from '../record-actions.ts';
import { findPositionAt, missableTypes, notifyDispatchers } from '../subjects/webhook-sending.ts';
import { readEventTypes, selectEndpoint } from '../subjects/webhooks.ts';
import {
  findReplayCandidates,
  type ReplayCandidate,
  type Replayed,
  type ReplayFilter,
  replayDeliveries,
} from './delivery-replay.ts';
import type { ReplayedPeriodView } from './views.ts';

export type ReplayDeps = { db: Database; now(): UnixMs };

const STATUSES = ['dead', 'failing', 'delivered', 'missing', 'all'] as const;

type Asked = {
  from: string;
  to?: string | undefined;
  status?: readonly string[] | undefined;
  type?: readonly string[] | undefined;
};

/** Reads which events are sent again. `failing`: pending, and the last attempt failed; `all` has every pending one. Errors: `INVALID_ARGUMENT`. */
export function readReplay({ status, type, ...period }: Asked) {
  const { from, until } = readPeriod(period);
  const names = (status ?? ['dead', 'missing']).map((text) => {
    const name = STATUSES.find((each) => each === text.trim());
    if (name !== undefined) return name;
    throw new FieldError('status', `has ${clip(text)}: choose ${STATUSES.join(', ')}`);
  });
  const statuses: ReplayFilter['statuses'] = names.includes('all')
    ? ['dead', 'pending', 'delivered', 'missing']
    : names.flatMap((name) => (name === 'failing' ? 'pending' : name === 'all' ? [] : name));
  return {
    ...{ from: from ?? unixMs(0), until, statuses, onlyFailing: names.includes('failing') && !names.includes('all') },
    isStatusGiven: status !== undefined,
    types: type === undefined ? null : readEventTypes('type', type),
  };
}

type Deps = ReplayDeps & { config: { webhooks: { retentionDays: number } } };
type Input = ReturnType<typeof readReplay> & { endpoint: string; isDryRun: boolean; isConfirmed: boolean };

/**
 * Sends events of one endpoint and time again. `waiting`: the endpoint, if it is disabled. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`, and
 * `USAGE` for many without a confirmation.
 */
export async function replayPeriod(
  { db, now, config }: Deps,
  actor: Actor,
  { endpoint: endpointId, isDryRun, isConfirmed, isStatusGiven, types, ...asked }: Input,
): Promise<{ view: ReplayedPeriodView; waiting: string[] }> {
  const endpoint = await selectEndpoint(db, actor, endpointId);
  const filter: ReplayFilter = {
    ...{ from: asked.from, until: asked.until ?? now(), statuses: asked.statuses, onlyFailing: asked.onlyFailing },
    ...{ projectId: endpoint.projectId, endpointId: endpoint.id },
    // A ping is of no use later, so it is sent again only if its type is asked for.
    types: types ?? REPLAYED_TYPES,
    missingTypes: missableTypes(endpoint).filter((type) => types?.includes(type) ?? true),
  };
  if (!isStatusGiven) refuseForgotten(filter.from, now(), config.webhooks.retentionDays);
  const counted = await countReplay(db, filter);
  if (!isDryRun) refuseMany(totalOf(counted), isConfirmed);
  const isDone = !isDryRun && totalOf(counted) > 0;
  const done = isDone ? await replayFiltered({ db, now, actor }, filter) : noneReplayed();
  const { was, outcome } = isDryRun ? counted : done;
  const view = {
    ...{ endpointId, from: toIso(filter.from), until: toIso(filter.until), isDryRun },
    found: { total: totalOf({ was }), ...was },
    ...(isDryRun ? {} : outcome),
  };
  return { view, waiting: !isDryRun && endpoint.disabledAt !== null ? [endpointId] : [] };
}

const DAY_MS = 86_400_000;

/** Deliveries that ended long ago are deleted, so that their events look as if they had never been planned. */
function refuseForgotten(from: UnixMs, now: UnixMs, retentionDays: number): void {
  const kept = now - retentionDays * DAY_MS;
  if (from >= kept) return;
  throw new FieldError(
    'from',
    say`is more than ${retentionDays} days ago (QUITTANCE_DELIVERY_RETENTION_DAYS), and what was delivered then is not known any more: begin at ${toIso(unixMs(Math.ceil(kept / 1000) * 1000))}, or say ${{ field: 'status' }} dead or ${{ field: 'status' }} missing if you mean it`,
  );
}

const MANY = 100;

/** Errors: `USAGE`. */
export function refuseMany(total: number, isConfirmed: boolean): void {
  if (total <= MANY || isConfirmed) return;
  throw new AppError(
    'USAGE',
    say`this sends ${total} webhooks again: look with ${{ field: 'isDryRun' }}, and run the command again with ${{ field: 'isConfirmed' }} if that is meant`,
  );
}

/** Notes who sent what to an endpoint (UUID) again. */
export async function recordReplay(
  tx: Sql,
  { now, actor }: { now(): UnixMs; actor: Actor },
  { projectId, endpointId, detail }: { projectId: string; endpointId: string; detail: object },
): Promise<void> {
  const subject = encodeId('whe', endpointId);
  await recordActions(tx, actor, now(), [{ projectId, action: 'deliveries.replayed', subject, detail }]);
}

/** A transaction takes so many, in some ten milliseconds. */
const BATCH = 500;
/** Positions that one query looks through. */
const STRIDE = 2000n;
/** Events of one time are at positions that differ by what their transactions took. */
const MARGIN_MS = 60_000;

/** How many events there were, by what their deliveries were before, and by what became of them. */
type ReplayCount = { was: Record<ReplayCandidate['was'], number>; outcome: Record<Replayed['outcome'], number> };

function noneReplayed(): ReplayCount {
  return {
    was: { missing: 0, pending: 0, delivered: 0, dead: 0 },
    outcome: { replayed: 0, due: 0, exhausted: 0 },
  };
}

function totalOf({ was }: Pick<ReplayCount, 'was'>): number {
  return Object.values(was).reduce((total, count) => total + count, 0);
}

/** Counts what `replayFiltered` would send again. */
async function countReplay(db: Sql, filter: ReplayFilter): Promise<ReplayCount> {
  const count = noneReplayed();
  for await (const candidates of walk(db, filter)) for (const { was } of candidates) count.was[was] += 1;
  return count;
}

/**
 * Sends the events that fit a filter again, in their order. Each batch is a transaction, so that a replay that is cut short can be
 * run again. The first batch records the request.
 */
export async function replayFiltered(deps: ReplayDeps & { actor: Actor }, filter: ReplayFilter): Promise<ReplayCount> {
  const count = noneReplayed();
  const { projectId, endpointId, statuses, onlyFailing, types } = filter;
  const detail = { from: filter.from, until: filter.until, statuses, onlyFailing, types };
  let isRecorded = false;
  for await (const candidates of walk(deps.db, filter)) {
    for (let start = 0; start < candidates.length; start += BATCH) {
      const eventIds = candidates.slice(start, start + BATCH).map(({ eventId }) => eventId);
      const replayed = await deps.db.transaction(async (tx) => {
        const results = await replayDeliveries(tx, { endpointId, eventIds, now: deps.now(), statuses });
        if (!isRecorded) await recordReplay(tx, deps, { projectId, endpointId, detail });
        return results;
      });
      isRecorded = true;
      add(count, replayed);
      await notifyDispatchers(deps.db);
    }
  }
  return count;
}

function add(count: ReplayCount, replayed: readonly Replayed[]): void {
  for (const { was, outcome } of replayed) {
    count.was[was] += 1;
    count.outcome[outcome] += 1;
  }
}

/** The candidates in the order of their events. Events committed meanwhile stand after the end, and are planned without a replay. */
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
