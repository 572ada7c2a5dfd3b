import { AppError, type FieldProblem, invalidArgument, usageError } from '../../../core/domain/errors.ts';
import { type EventType, REPLAYED_TYPES } from '../../../core/domain/event.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { say } from '../../../core/domain/message.ts';
import { MAX_ATTEMPTS } from '../../../core/domain/retry.ts';
import { DAY_MS, toIso, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { Type } from '../../../core/runtime/type.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { rowsOf } from '../../../core/store/db/rows-of.ts';
import { text as column, type Row } from '../../../core/store/db/statement.ts';
import { WANTS_EVENT } from '../../../core/store/outbox/adapter-orders.ts';
import { findWebhookEndpoint, type WebhookEndpoint } from '../../../core/store/outbox/webhook-endpoints.ts';
import { type Actor, maySee } from '../actor.ts';
import { columnsText, fieldsText } from '../command-words.ts';
import { choice, id, list, maybe, part, type Shown, schemaOf, show, text, time, whole, yes } from '../fields.ts';
import { clip, FieldError } from '../input/problems.ts';
import { readId, readPeriod } from '../input/readers.ts';
import { operation } from '../operation.ts';
import { period } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { type DeskEvent, findDeskEvents, type PositionRange } from './deliveries.ts';
import { findNextPosition, findPositionAt, isLateSql, missableTypes, notifyDispatchers } from './webhook-sending.ts';
import { readEventTypes, selectEndpoint } from './webhooks.ts';

/**
 * Selects the events to send to an endpoint again. `statuses` are their deliveries' statuses; `missing` means that there is no delivery.
 */
type ReplayFilter = {
  projectId: string;
  endpointId: string;
  statuses: readonly ReplayCandidate['was'][];
  /** Includes a pending delivery only if its last attempt failed. */
  onlyFailing: boolean;
  types: readonly EventType[];
  /** The event types that count as missing if they have no delivery. */
  missingTypes: readonly EventType[];
  /** The time of the event: at or after `from`, before `until`. */
  from: UnixMs;
  until: UnixMs;
};

const candidate = { eventId: 'uuid', was: column<'missing' | 'pending' | 'delivered' | 'dead'>() } as const;

/** An event to send again, and the previous state of its delivery. */
type ReplayCandidate = Row<typeof candidate>;

/**
 * Finds the events in a range of positions that match the filter, in order. The range limits the work. The join is lateral so that
 * PostgreSQL looks up the delivery of each event, however small it believes the table to be.
 */
const findReplayCandidates = rowsOf(
  'replay-candidates',
  candidate,
  `select e.id as event_id, coalesce(d.status, 'missing') as was
   from events e
   left join lateral (
     select status, last_error from deliveries where event_id = e.id and endpoint_id = $2 limit 1) d on true
   where e.project_id = $1 and e.position >= $3 and e.position < $4 and e.created_at >= $5 and e.created_at < $6
     and coalesce(d.status, 'missing') = any($7::text[])
     and e.type = any(case when d.status is null then $9::text[] else $8::text[] end)
     and (not $10::bool or d.status is distinct from 'pending' or d.last_error is not null)
   order by e.position`,
  (filter: ReplayFilter, { first, end }: PositionRange) => [
    ...[filter.projectId, filter.endpointId, first, end, new Date(filter.from), new Date(filter.until)],
    ...[filter.statuses, filter.types, filter.missingTypes, filter.onlyFailing],
  ],
);

/** If an endpoint needs more attempts than this, more retries won't help. A delivery's log also needs a limit. */
const MAX_REPLAYED_ATTEMPTS = 1000;

/** A `due` delivery will be attempted within seconds anyway. An `exhausted` delivery has had 1,000 attempts. */
const replayedRow = { ...candidate, outcome: column<'replayed' | 'due' | 'exhausted'>() } as const;
type Replayed = Row<typeof replayedRow>;
type ReplayOrder = Pick<ReplayFilter, 'endpointId'> &
  Partial<Pick<ReplayFilter, 'statuses'>> & { eventIds: readonly string[]; now: UnixMs };

/**
 * Makes events due at an endpoint now, whatever their previous result, each with a full schedule of further attempts. With `statuses`, only
 * events whose delivery has one of those statuses now. Returns one result for each event, in order, but none for an event that is skipped
 * or belongs to another project. Each delivery gets the current time as its planning time, so that one invoice's events wait for each other
 * again. Microseconds keep the order of the events in a batch. A pending delivery that is due soon or may be in progress isn't changed,
 * because it's attempted anyway.
 */
export const replayDeliveries = rowsOf(
  'delivery-replay',
  replayedRow,
  `with chosen as (
     select e.id, e.project_id, e.invoice_id, e.sequence,
       $3::timestamptz + row_number() over (order by e.position) * interval '1 microsecond' as planned_at
     from events e join webhook_endpoints w on w.id = $2 and w.project_id = e.project_id
     where e.id = any($1::uuid[]) and (w.adapter is null or ${WANTS_EVENT})),
   locked as (
     select d.event_id, d.status, case
         when d.status <> all($4::text[]) then 'passed over'
         when d.status = 'pending' and not ${isLateSql('$3')} then 'due'
         when d.attempt_count >= ${MAX_REPLAYED_ATTEMPTS} then 'exhausted' else 'replayed' end as outcome
     from (select id from chosen order by id) chosen
     cross join lateral (
       select d.* from deliveries d where d.event_id = chosen.id and d.endpoint_id = $2 limit 1 for update) d),
   renewed as (
     update deliveries d set status = 'pending', next_attempt_at = least($3, now()), created_at = chosen.planned_at, finished_at = null,
       max_attempts = d.attempt_count + ${MAX_ATTEMPTS}
     from locked join chosen on chosen.id = locked.event_id
     where d.event_id = locked.event_id and d.endpoint_id = $2 and locked.outcome = 'replayed'),
   planned as (
     insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, next_attempt_at, created_at)
     select id, $2, project_id, invoice_id, sequence, least($3, now()), planned_at from chosen
     where not exists (select from locked where locked.event_id = chosen.id)
     on conflict do nothing)
   select chosen.id as event_id, coalesce(locked.status, 'missing') as was, coalesce(locked.outcome, 'replayed') as outcome
   from chosen left join locked on locked.event_id = chosen.id
   where locked.outcome is distinct from 'passed over'
   order by chosen.planned_at`,
  ({ endpointId, eventIds, now, statuses }: ReplayOrder) => [eventIds, endpointId, new Date(now), statuses ?? null],
);

/** Finds the deliveries of events (UUIDs), at one endpoint or at all of them. */
const findPlanned = rowsOf(
  'replay-planned',
  { ...candidate, endpointId: 'uuid' },
  `select event_id, status as was, endpoint_id from deliveries
   where event_id = any($1::uuid[]) and ($2::uuid is null or endpoint_id = $2)
   order by event_id, endpoint_id limit 10000`,
  (eventIds: readonly string[], endpointId: string | null) => [eventIds, endpointId],
);

type ReplayDeps = { db: Database; now(): UnixMs };

const Lines = Type.Optional(Type.Array(Type.String()));
const Flag = Type.Optional(Type.Boolean());

const STATUSES = ['dead', 'failing', 'delivered', 'missing', 'all'] as const;

/** The number of events found, by the previous state of their delivery. */
const found = { total: whole, missing: whole, pending: whole, delivered: whole, dead: whole };
const replayedPeriod = { endpointId: text, from: time, until: time, isDryRun: yes, found: part(found) };
/** A dry run has no outcome. */
export type ReplayedPeriodView = Shown<typeof replayedPeriod> & Partial<Record<Replayed['outcome'], number>>;

/**
 * Sends a period's events to an endpoint again. `failing` selects pending deliveries whose last attempt failed; `all` includes every
 * pending delivery. `waiting` is the endpoint if it's disabled, because its deliveries then wait. Throws `INVALID_ARGUMENT`, `NOT_FOUND`,
 * or `USAGE` for many events without a confirmation.
 */
export const replayPeriod = operation({
  action: 'replayPeriod',
  summary: 'Send the events from a period to an endpoint again',
  route: 'POST /webhooks/:endpoint/replay',
  output: schemaOf(replayedPeriod, {
    ...{ replayed: Type.Optional(whole.schema), due: Type.Optional(whole.schema) },
    exhausted: Type.Optional(whole.schema),
  }),
  input: Type.Object({
    ...{ endpoint: Type.String(), from: Type.String(), to: period().to, status: Lines, type: Lines },
    ...{ isDryRun: Flag, isConfirmed: Flag },
  }),
  read: ({ endpoint, isDryRun = false, isConfirmed = false, status, type, ...given }) => {
    const { from, until } = readPeriod(given);
    const names = (status ?? ['dead', 'missing']).map((text) => {
      const name = STATUSES.find((each) => each === text.trim());
      if (name !== undefined) return name;
      throw new FieldError('status', `has ${clip(text)}: choose ${STATUSES.join(', ')}`);
    });
    const statuses: ReplayFilter['statuses'] = names.includes('all')
      ? ['dead', 'pending', 'delivered', 'missing']
      : names.flatMap((name) => (name === 'failing' ? 'pending' : name === 'all' ? [] : name));
    return {
      ...{ endpoint, isDryRun, isConfirmed, from: from ?? unixMs(0), until, statuses },
      ...{ onlyFailing: names.includes('failing') && !names.includes('all'), isStatusGiven: status !== undefined },
      types: type === undefined ? null : readEventTypes('type', type),
    };
  },
  run: async (
    { db, now, config }: ReplayDeps & { config: { webhooks: { retentionDays: number } } },
    actor,
    { endpoint: endpointId, isDryRun, isConfirmed, isStatusGiven, types, ...asked },
  ) => {
    const endpoint = await selectEndpoint(db, actor, endpointId);
    const filter: ReplayFilter = {
      ...{ from: asked.from, until: asked.until ?? now(), statuses: asked.statuses, onlyFailing: asked.onlyFailing },
      ...{ projectId: endpoint.projectId, endpointId: endpoint.id },
      // A ping has no later use, so it's sent again only if its type is requested.
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
  },
  print: ({ view, waiting }) => {
    const { found, replayed = 0, due = 0, exhausted = 0, isDryRun } = view;
    const { total, ...was } = found;
    const parts = Object.entries(was).flatMap(([name, count]) => (count === 0 ? [] : [`${count} ${name}`]));
    return {
      text: fieldsText(view, [
        ['endpoint', 'endpointId'],
        ['from', 'from'],
        ['to', 'until'],
        [isDryRun ? 'would be sent' : 'found', () => (total === 0 ? 'nothing' : `${total}: ${parts.join(', ')}`)],
        ['due now', () => (isDryRun ? null : String(replayed))],
        ['already due', () => (due === 0 ? null : `${due}, within seconds`)],
        ['not sent', () => (exhausted === 0 ? null : exhaustedText(exhausted))],
      ]),
      next: waiting.map(waitNote),
    };
  },
});

function exhaustedText(count: number): string {
  return `${count}, because Quittance gave up after ${MAX_REPLAYED_ATTEMPTS} attempts: read these events from the feed (GET /v1/events)`;
}

const waitNote = (id: string) =>
  say`${id} is disabled, so the events wait until you run "${{ command: 'webhook enable', args: [id] }}"`;

/** Old finished deliveries are deleted, so their events would look as if they had never been planned. */
function refuseForgotten(from: UnixMs, now: UnixMs, retentionDays: number): void {
  const kept = now - retentionDays * DAY_MS;
  if (from >= kept) return;
  throw new FieldError(
    'from',
    say`is more than ${retentionDays} days ago (QUITTANCE_DELIVERY_RETENTION_DAYS), and the deliveries of that time have been deleted: begin at ${toIso(unixMs(Math.ceil(kept / 1000) * 1000))}, or use ${{ field: 'status' }} dead to send only events that were given up. With ${{ field: 'status' }} missing, events whose deliveries have been deleted are sent again as well`,
  );
}

const MANY = 100;

/** Throws `USAGE`. */
function refuseMany(total: number, isConfirmed: boolean): void {
  if (total <= MANY || isConfirmed) return;
  throw usageError`this would send ${total} webhooks again: check them with ${{ field: 'isDryRun' }}, then confirm with ${{ field: 'isConfirmed' }}`;
}

/** Records who sent which events to an endpoint (UUID) again. */
function recordReplay(
  tx: Sql,
  { now, actor }: { now(): UnixMs; actor: Actor },
  { projectId, endpointId, detail }: { projectId: string; endpointId: string; detail: object },
) {
  const subject = encodeId('whe', endpointId);
  return recordAction(tx, actor, now(), 'deliveries.replayed', { projectId, subject, detail });
}

/** One transaction handles this many events in about ten milliseconds. */
const BATCH = 500;
/** The number of positions that one query searches. */
const STRIDE = 2000n;
/** Positions of events with the same time differ by the duration of their transactions. */
const MARGIN_MS = 60_000;

/** The number of events by the previous state of their delivery, and by outcome. */
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

/** Counts the events that `replayFiltered` would send again. */
async function countReplay(db: Sql, filter: ReplayFilter): Promise<ReplayCount> {
  const count = noneReplayed();
  for await (const candidates of walk(db, filter)) for (const { was } of candidates) count.was[was] += 1;
  return count;
}

/**
 * Sends the events that match a filter again, in order. Each batch is its own transaction, so an interrupted replay can simply be repeated.
 * The first batch records the request.
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

/**
 * Yields the candidates in the order of their events. Events committed in the meantime are after the end position, and are planned without
 * a replay.
 */
async function* walk(db: Sql, filter: ReplayFilter): AsyncGenerator<ReplayCandidate[]> {
  const { projectId, from, until } = filter;
  const end = await findPositionAt(db, projectId, (until + MARGIN_MS) as UnixMs);
  let first = await findPositionAt(db, projectId, Math.max(0, from - MARGIN_MS) as UnixMs);
  for (;;) {
    // A restore leaves a gap between positions.
    const next = await findNextPosition(db, projectId, first);
    if (next === null || next >= end) return;
    first = next + STRIDE < end ? next + STRIDE : end;
    const candidates = await findReplayCandidates(db, filter, { first: next, end: first });
    if (candidates.length > 0) yield candidates;
  }
}

/** `outcome` is `null` if nothing was done. */
const replayed = {
  ...{ eventId: id('evt'), endpointId: id('whe'), was: choice(['missing', 'pending', 'delivered', 'dead']) },
  outcome: maybe(choice(['replayed', 'due', 'exhausted'])),
};

/** The maximum number of events in one call, which uses a single transaction. */
const MAX_EVENTS = 500;

/** Reads the UUIDs of the named events (`evt_…`), each once. Throws `INVALID_ARGUMENT`. */
export function readReplayedEvents(events: readonly string[]): string[] {
  const eventIds = [...new Set(events.map((id) => readId('evt', id)))];
  if (eventIds.length <= MAX_EVENTS) return eventIds;
  throw invalidArgument`${eventIds.length} events were given, but one command accepts at most ${MAX_EVENTS}: use ${{ field: 'endpoint' }} with ${{ field: 'from' }} and ${{ field: 'to' }}`;
}

type Target = ReplayCandidate & { endpointId: string };

/**
 * Sends events (UUIDs) again to one endpoint, or to all endpoints that they were planned for. Sends either all of them or none. `waiting`
 * lists the disabled endpoints. Throws `INVALID_ARGUMENT`, `NOT_FOUND`, or `USAGE` for many events without a confirmation.
 */
export const replayEvents = operation({
  action: 'replayEvents',
  summary: 'Send events again, to one endpoint or to all endpoints for which they were scheduled',
  route: 'POST /events/replay',
  output: schemaOf({ isDryRun: yes, data: list(part(replayed)) }),
  input: Type.Object({
    events: Type.Array(Type.String()),
    endpoint: Type.Optional(Type.String()),
    isDryRun: Flag,
    isConfirmed: Flag,
  }),
  read: ({ events, isDryRun = false, isConfirmed = false, ...given }) => ({
    ...{ ...given, eventIds: readReplayedEvents(events), isDryRun, isConfirmed },
  }),
  run: async ({ db, now }: ReplayDeps, actor, { eventIds, isDryRun, isConfirmed, ...asked }) => {
    const events = (await findDeskEvents(db, eventIds)).filter(({ projectId }) => maySee(actor, projectId));
    const endpoint = asked.endpoint === undefined ? null : await selectEndpoint(db, actor, asked.endpoint);
    const planned = await findPlanned(db, eventIds, endpoint?.id ?? null);
    refuseUnknown({ eventIds, events, planned, endpoint });
    const targetOf = (eventId: string, { id: endpointId }: WebhookEndpoint): Target =>
      planned.find((each) => each.eventId === eventId) ?? { eventId, endpointId, was: 'missing' };
    const targets = endpoint === null ? planned : eventIds.map((id) => targetOf(id, endpoint));
    if (isDryRun) {
      const undone = targets.map((target) => ({ ...target, outcome: null }));
      return viewReplayed(undone, []);
    }
    refuseMany(targets.length, isConfirmed);
    const endpoints: WebhookEndpoint[] = [];
    for (const id of new Set(targets.map(({ endpointId }) => endpointId))) {
      const found = await findWebhookEndpoint(db, id);
      if (found !== null) endpoints.push(found);
    }
    const done = await db.transaction(async (tx) => {
      const all: (Target & Replayed)[] = [];
      for (const { id: endpointId } of endpoints) {
        const own = targets.filter((target) => target.endpointId === endpointId).map(({ eventId }) => eventId);
        const results = await replayDeliveries(tx, { endpointId, eventIds: own, now: now() });
        all.push(...results.map((result) => ({ ...result, endpointId })));
      }
      for (const { id: endpointId, projectId } of endpoints) {
        const own = all.filter((each) => each.endpointId === endpointId);
        const detail = { events: own.map(({ eventId }) => encodeId('evt', eventId)) };
        await recordReplay(tx, { now, actor }, { projectId, endpointId, detail });
      }
      return all;
    });
    await notifyDispatchers(db);
    const waiting = endpoints.filter(({ disabledAt }) => disabledAt !== null).map(({ id }) => encodeId('whe', id));
    return viewReplayed(done, waiting);
  },
  print: ({ view: { data }, waiting }) => {
    const exhausted = data.filter(({ outcome }) => outcome === 'exhausted').length;
    return {
      text: columnsText(data, [
        ['EVENT', 'eventId'],
        ['ENDPOINT', 'endpointId'],
        ['WAS', 'was'],
        ['NOW', ({ outcome }) => (outcome === null ? 'would be due now' : OUTCOMES[outcome])],
      ]),
      next: [...waiting.map(waitNote), exhausted > 0 && `not sent: ${exhaustedText(exhausted)}`],
    };
  },
});

const OUTCOMES = { replayed: 'due now', due: 'already due within seconds', exhausted: 'not sent' } as const;

/** Reports all problems at once. Throws `NOT_FOUND`. */
function refuseUnknown(asked: {
  eventIds: readonly string[];
  events: readonly DeskEvent[];
  planned: readonly Target[];
  endpoint: WebhookEndpoint | null;
}): void {
  const { events, planned, endpoint } = asked;
  const problems = asked.eventIds.flatMap((id): FieldProblem[] => {
    const subject = encodeId('evt', id);
    const event = events.find((each) => each.id === id);
    if (event === undefined) return [{ subject, message: `there is no event ${subject}` }];
    if (endpoint !== null && event.projectId !== endpoint.projectId) {
      return [{ subject, message: `${subject} belongs to a different project than ${encodeId('whe', endpoint.id)}` }];
    }
    if (endpoint !== null || planned.some(({ eventId }) => eventId === id)) return [];
    return [
      {
        subject,
        message: say`${subject} was not scheduled for any endpoint: choose one with ${{ field: 'endpoint' }}`,
      },
    ];
  });
  if (problems.length > 0) throw new AppError('NOT_FOUND', 'nothing was replayed', { problems });
}

function viewReplayed(rows: readonly (Target & { outcome: Replayed['outcome'] | null })[], waiting: string[]) {
  const data = rows.map((row) => show(replayed, row));
  return { view: { isDryRun: data.some(({ outcome }) => outcome === null), data }, waiting };
}

export const operations = [replayPeriod, replayEvents];
