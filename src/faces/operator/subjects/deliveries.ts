import { notFound } from '../../../core/domain/errors.ts';
import { EVENT_TYPES, type EventType } from '../../../core/domain/event.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import { type UnixMs, unixMs } from '../../../core/domain/time.ts';
import type { KeyRing } from '../../../core/runtime/key-ring.ts';
import { openKeyRing } from '../../../core/runtime/open-key-ring.ts';
import { Type } from '../../../core/runtime/type.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { rowOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { text as column, listColumns, type Row, statement } from '../../../core/store/db/statement.ts';
import { findWebhookEndpoint } from '../../../core/store/outbox/webhook-endpoints.ts';
import { openNewestSecrets } from '../../../core/webhooks/endpoint-secrets.ts';
import { type Actor, maySee } from '../actor.ts';
import { columnsText, fieldsText, formatFields, isoSecond, joinParts, shortCell } from '../command-words.ts';
import type { KeyDeps } from '../encryption-keys.ts';
import {
  choice,
  id,
  list,
  listOf,
  maybe,
  of,
  part,
  type Shown,
  schemaOf,
  show,
  text,
  time,
  whole,
  yes,
} from '../fields.ts';
import { noSuch, readChoice, readId, readLengthLimit, readPeriod } from '../input/readers.ts';
import { operation } from '../operation.ts';
import { argument, limit, line, period, projectId } from '../option.ts';
import { findInvoiceId, selectProject } from '../select.ts';
import { diagnoseAttempt, diagnosePage } from '../webhooks/diagnose.ts';
import { answerText, diagnosisFields, diagnosisText, findPositionAt } from './webhook-sending.ts';
import { attemptFields, type EndpointView, selectEndpoint, statusText, viewEndpoint } from './webhooks.ts';

const fields = {
  ...{ eventId: id('evt'), endpointId: id('whe'), isEndpointDisabled: yes, type: text, createdAt: time },
  ...{ invoiceId: maybe(id('inv')), externalId: maybe(text), status: choice(['pending', 'delivered', 'dead']) },
  ...{ attempts: of('attemptCount', whole), attemptsLeft: whole, nextAttemptAt: maybe(time), finishedAt: maybe(time) },
  ...{ lastStatus: maybe(whole), lastError: maybe(text) },
};
export type DeliveryView = Shown<typeof fields>;
/** The next page begins before the event `nextBefore`. */
export type DeliveryListView = { data: DeliveryView[]; nextBefore: string | null };

const { webPage, ...outcome } = attemptFields;
const attempt = { attempt: whole, ...outcome, answer: maybe(text), webPage };
export type AttemptView = Shown<typeof attempt>;
/** `diagnosis` explains why the last attempt failed, most telling first. */
const shownFields = { ...fields, attempts: list(part(attempt)), url: text, diagnosis: list(part(diagnosisFields)) };
export type ShownDeliveryView = Shown<typeof shownFields>;
const eventFields = {
  ...{ eventId: of('id', id('evt')), projectId: id('prj'), type: text, createdAt: time },
  position: { ...whole, show: Number },
};
export type ShownEventView = Shown<typeof eventFields> & { deliveries: ShownDeliveryView[] };

/** Describes a delivery's remaining attempts. */
function planOf({ maxAttempts, nextAttemptAt, ...delivery }: DeskDelivery) {
  const isPending = delivery.status === 'pending';
  return {
    ...{ ...delivery, nextAttemptAt: isPending ? nextAttemptAt : null },
    attemptsLeft: isPending ? Math.max(0, maxAttempts - delivery.attemptCount) : 0,
  };
}

type DeliveryFilter = {
  endpointId: string | null;
  /** `failing` means pending with a failed last attempt. `dead` omits tests unless `type` includes them. */
  status: 'pending' | 'failing' | 'delivered' | 'dead' | null;
  type: EventType | null;
  limit: number;
};

/** Events by position: from `first`, and before `end`. */
export type PositionRange = { first: bigint; end: bigint };

const row = {
  eventId: 'uuid',
  endpointId: 'uuid',
  /** No event is sent until the endpoint is enabled. */
  isEndpointDisabled: 'bool',
  type: column<EventType>(),
  createdAt: 'timestamptz',
  position: 'int8',
  /** `null` if the event isn't about an invoice. */
  invoiceId: 'uuid?',
  externalId: 'text?',
  status: column<'pending' | 'delivered' | 'dead'>(),
  attemptCount: 'int4',
  maxAttempts: 'int4',
  nextAttemptAt: 'timestamptz',
  finishedAt: 'timestamptz?',
  lastStatus: 'int4?',
  lastError: 'text?',
} as const;

/** A delivery as operators see it. Ids are UUIDs. */
type DeskDelivery = Row<typeof row>;

const SHOWN = `d.event_id, d.endpoint_id,
     (select disabled_at is not null from webhook_endpoints where id = d.endpoint_id) as is_endpoint_disabled, e.type, e.created_at, e.position, d.invoice_id,
     (select external_id from invoices where project_id = e.project_id and id = e.invoice_id) as external_id,
     d.status, d.attempt_count, d.max_attempts, d.next_attempt_at, d.finished_at, d.last_status, d.last_error`;

const WANTED = `($2::uuid is null or d.endpoint_id = $2) and case $3::text
       when 'pending' then d.status = 'pending' when 'failing' then d.status = 'pending' and d.last_error is not null
       when 'delivered' then d.status = 'delivered' when 'dead' then d.status = 'dead' and ($4::text is not null or e.type <> 'ping') else true end
     and ($4::text is null or e.type = $4)`;

const fromText = (tables: string, among: string) =>
  `select ${SHOWN} from ${tables} where ${among} and ${WANTED} order by e.position desc, d.endpoint_id limit $5::int8`;
const EVENTS = 'events e join deliveries d on d.event_id = e.id';
const IN_RANGE = 'e.project_id = $1 and e.position >= $6 and e.position < $7';
// The SQL text contains the status so that the statement can use the index for deliveries with that status.
const openText = (status: 'pending' | 'dead') =>
  fromText(
    `webhook_endpoints w join deliveries d on d.endpoint_id = w.id and d.status = '${status}' join events e on e.id = d.event_id`,
    IN_RANGE.replace('e.project_id', 'w.project_id'),
  );

const selectRange = statement('delivery-desk-list', row, fromText(EVENTS, IN_RANGE));
const selectPending = statement('delivery-desk-pending', row, openText('pending'));
const selectDead = statement('delivery-desk-dead', row, openText('dead'));

/** Undelivered deliveries have their own indexes, so the range of events needn't be limited. */
function isIndexed(status: DeliveryFilter['status']): boolean {
  return status === 'dead' || status === 'pending' || status === 'failing';
}

/**
 * Returns deliveries for the events in a range of positions, newest first. The other filters have no index, so the caller must limit the
 * range unless the status `isIndexed`.
 */
function listRange(db: Sql, projectId: string, { first, end }: PositionRange, filter: DeliveryFilter) {
  const select = !isIndexed(filter.status) ? selectRange : filter.status === 'dead' ? selectDead : selectPending;
  return db.run(select, [...parameters(projectId, filter), first, end]);
}

/** Returns the deliveries for one event, or for all events of one invoice (UUIDs). */
const listDeliveriesOf = rowsOf(
  'delivery-desk-of-events',
  row,
  fromText(EVENTS, 'e.project_id = $1 and (e.id = $6 or e.invoice_id = $7)'),
  (
    projectId: string,
    { eventId, invoiceId }: { eventId: string | null; invoiceId: string | null },
    filter: DeliveryFilter,
  ) => {
    return [...parameters(projectId, filter), eventId, invoiceId];
  },
);

const parameters = (projectId: string, { endpointId, status, type, limit }: DeliveryFilter) =>
  [projectId, endpointId, status, type, limit] as const;

const eventRow = {
  id: 'uuid',
  projectId: 'uuid',
  type: column<EventType>(),
  createdAt: 'timestamptz',
  position: 'int8',
  body: 'text',
} as const;

/** An event without its deliveries. Ids are UUIDs. */
export type DeskEvent = Row<typeof eventRow>;

/** Returns the events with these ids, in their order within a project. Omits unknown ids. */
export const findDeskEvents = rowsOf(
  'delivery-desk-events',
  eventRow,
  `select ${listColumns(eventRow)} from events where id = any($1::uuid[]) order by project_id, position`,
  (ids: readonly string[]) => [ids],
);

/** Returns the first of a range's newest `MAX_LOOKED_THROUGH` events, or `null` if the range has fewer. */
const findFirstLooked = rowOf(
  'delivery-desk-first-looked',
  { id: 'uuid', position: 'int8' },
  `select id, position from events where project_id = $1 and position >= $2 and position < $3
   order by position desc offset $4::int8 - 1 limit 1`,
  (projectId: string, { first, end }: PositionRange) => [projectId, first, end, MAX_LOOKED_THROUGH],
);

const attemptRow = {
  endpointId: 'uuid',
  attempt: 'int4',
  attemptedAt: 'timestamptz',
  latencyMs: 'int4?',
  status: 'int4?',
  error: 'text?',
  answer: 'text?',
} as const;

/** An attempt as it was recorded. `answer` is the redacted beginning of the endpoint's response. */
type DeskAttempt = Row<typeof attemptRow>;

/** Returns the newest attempts to deliver an event, at most `limit` for each endpoint, oldest first. */
const findDeskAttempts = rowsOf(
  'delivery-desk-attempts',
  attemptRow,
  `select ${listColumns(attemptRow, 'a.')}
   from unnest($2::uuid[]) asked (id)
   cross join lateral (
     select * from delivery_attempts
     where event_id = $1 and endpoint_id = asked.id order by attempt desc limit $3::int8) a
   order by a.endpoint_id, a.attempt`,
  (eventId: string, endpointIds: readonly string[], limit: number) => [eventId, endpointIds, limit],
);

/** Finds the event with this `evt_…`. Throws `INVALID_ARGUMENT` or `NOT_FOUND`. */
async function selectEvent(db: Sql, actor: Actor, eventId: string): Promise<DeskEvent> {
  const [event] = await findDeskEvents(db, [readId('evt', eventId)]);
  if (event !== undefined && maySee(actor, event.projectId)) return event;
  throw noSuch('evt', eventId);
}

const STATUSES = ['pending', 'failing', 'delivered', 'dead'] as const;

/** Why a list is incomplete: it reached its limit, the end of a page, or the maximum number of events to search. */
type End = null | { kind: 'limit' | 'page' } | { kind: 'searched'; events: bigint };
type Page = { deliveries: DeskDelivery[]; nextBefore: string | null; end: End };

/** The maximum number of events to search at once, which takes a fraction of a second. */
const MAX_LOOKED_THROUGH = 10_000n;
/** A position after every possible event. */
const NEVER = unixMs(Date.UTC(9999, 0));

export const listDeliveries = operation({
  action: 'listDeliveries',
  summary: 'List event deliveries to endpoints, newest first',
  route: 'GET /deliveries',
  command: 'deliveries list',
  does: 'list deliveries, newest events first',
  output: listOf(fields, { nextBefore: maybe(text).schema }),
  input: Type.Object({
    projectId: projectId(),
    endpoint: line('<whe_…>', 'only deliveries to this endpoint'),
    status: line(
      '<status>',
      say`pending, failing (pending, and the last attempt failed), delivered or dead (pings only with ${{ field: 'type' }} ping)`,
    ),
    type: line('<type>', 'only events of this type, for example invoice.paid'),
    invoice: line('<invoice>', 'only events of this invoice: inv_… or the externalId'),
    event: line('<evt_…>', 'only this event'),
    ...period('events '),
    before: line('<evt_…>', 'show events older than this one', { conflicts: 'to' }),
    limit: limit(500, '50'),
  }),
  read: ({ projectId, endpoint, invoice, status, type, event, before, limit: most = '50', ...times }) => {
    for (const id of [before, event]) if (id !== undefined) readId('evt', id);
    return {
      ...{ projectId, endpoint, invoice, event, before },
      ...{ status: readChoice('status', status, STATUSES), type: readChoice('type', type, EVENT_TYPES) },
      ...{ limit: readLengthLimit(most, { least: 1, most: 500 }), ...readPeriod(times) },
    };
  },
  run: async ({ db }: { db: Sql }, actor, wanted) => {
    const { deliveries, nextBefore, end } = await findListed(db, actor, wanted);
    const data = deliveries.map((each) => show(fields, planOf(each)));
    return { view: { data, nextBefore: nextBefore && encodeId('evt', nextBefore) }, end };
  },
  print: ({ view: { data, nextBefore }, end }) => {
    const why = end?.kind === 'searched' ? `searched the newest ${end.events} events` : 'there are more';
    const next =
      nextBefore !== null
        ? say`${why}: to continue, repeat the command with ${{ field: 'before' }} ${nextBefore}`
        : end === null
          ? data.length === 0
            ? 'no matching deliveries'
            : say`see one with "${{ command: 'deliveries show', args: ['evt_…'] }}"`
          : say`${why}: use a larger ${{ field: 'limit' }} to see them`;
    return {
      text: columnsText(data, [
        ['EVENT', 'eventId'],
        ['TYPE', 'type'],
        ['CREATED (UTC)', ({ createdAt }) => isoSecond(createdAt)],
        ['ENDPOINT', 'endpointId'],
        ['STATUS', 'status'],
        ['ATTEMPTS', 'attempts'],
        ['LAST RESULT', ({ lastStatus, lastError }) => lastError?.split(':', 1)[0] ?? String(lastStatus ?? '')],
        [
          'NEXT ATTEMPT',
          ({ nextAttemptAt: at, isEndpointDisabled }) =>
            at && (isEndpointDisabled ? 'endpoint disabled' : isoSecond(at)),
        ],
        ['EXTERNAL ID', ({ externalId }) => shortCell(externalId ?? '')],
      ]),
      next,
    };
  },
});

type Wanted = {
  [Name in 'projectId' | 'endpoint' | 'invoice' | 'event' | 'before']?: string | undefined;
} & Pick<DeliveryFilter, 'status' | 'type' | 'limit'> &
  ReturnType<typeof readPeriod>;

async function findListed(db: Sql, actor: Actor, wanted: Wanted): Promise<Page> {
  const { status, type, limit } = wanted;
  const endpoint = wanted.endpoint === undefined ? null : await selectEndpoint(db, actor, wanted.endpoint);
  const projectId = await findProjectId(db, actor, wanted, endpoint);
  const filter = { endpointId: endpoint?.id ?? null, status, type, limit: limit + 1 };
  if (wanted.event !== undefined || wanted.invoice !== undefined) {
    const eventId = wanted.event === undefined ? null : readId('evt', wanted.event);
    const invoiceId = wanted.invoice === undefined ? null : await findInvoiceId(db, projectId, wanted.invoice);
    const found = await listDeliveriesOf(db, projectId, { eventId, invoiceId }, filter);
    const end = found.length > limit ? ({ kind: 'limit' } as const) : null;
    return { deliveries: found.slice(0, limit), nextBefore: null, end };
  }
  const end =
    wanted.before === undefined
      ? await findPositionAt(db, projectId, wanted.until ?? NEVER)
      : await positionOf(db, projectId, wanted.before);
  const first = wanted.from === null ? 1n : await findPositionAt(db, projectId, wanted.from);
  return findPage(db, projectId, { first, end }, filter);
}

async function findProjectId(db: Sql, actor: Actor, wanted: Wanted, endpoint: { projectId: string } | null) {
  if (wanted.projectId === undefined && endpoint !== null) return endpoint.projectId;
  if (wanted.projectId === undefined && wanted.event !== undefined)
    return (await selectEvent(db, actor, wanted.event)).projectId;
  return (await selectProject(db, actor, wanted.projectId)).id;
}

async function positionOf(db: Sql, projectId: string, eventId: string): Promise<bigint> {
  const [event] = await findDeskEvents(db, [readId('evt', eventId)]);
  if (event !== undefined && event.projectId === projectId) return event.position;
  throw notFound`${{ field: 'before' }}: the project has no event ${eventId}`;
}

/** `filter.limit` is one more than the page shows, which reveals whether there is another page. */
async function findPage(db: Sql, projectId: string, range: PositionRange, filter: DeliveryFilter): Promise<Page> {
  const isWide = !isIndexed(filter.status) && range.end - range.first > MAX_LOOKED_THROUGH;
  const looked = isWide ? await findFirstLooked(db, projectId, range) : null;
  const deliveries = await listRange(db, projectId, { ...range, ...(looked && { first: looked.position }) }, filter);
  if (deliveries.length >= filter.limit) return cutPage(deliveries, filter.limit - 1);
  if (looked === null) return { deliveries, nextBefore: null, end: null };
  return { deliveries, nextBefore: looked.id, end: { kind: 'searched', events: MAX_LOOKED_THROUGH } };
}

/** Pages end between events, because the next one begins before an event. */
function cutPage(found: DeskDelivery[], limit: number): Page {
  const over = found[limit]?.eventId;
  const whole = found.slice(0, limit).filter(({ eventId }) => eventId !== over);
  const last = whole.at(-1);
  if (last !== undefined) return { deliveries: whole, nextBefore: last.eventId, end: { kind: 'page' } };
  return { deliveries: found.slice(0, limit), nextBefore: null, end: { kind: 'limit' } };
}

/** Shows an event's deliveries to each endpoint or to one. `askedAt` is the current time. Throws `INVALID_ARGUMENT` or `NOT_FOUND`. */
export const showDelivery = operation({
  action: 'showDelivery',
  summary: 'Show an event with every delivery attempt, the next attempt, and why the last attempt failed',
  route: 'GET /events/:eventId',
  command: 'deliveries show',
  output: schemaOf({ ...eventFields, deliveries: list(part(shownFields)) }),
  input: Type.Object({
    eventId: argument('<event>', 'evt_…'),
    endpoint: line('<whe_…>', 'only deliveries to this endpoint'),
  }),
  run: async ({ db, now, config, note }: KeyDeps & { db: Database }, actor, { eventId, endpoint }) => {
    const event = await selectEvent(db, actor, eventId);
    // Without the keys some details are missing, but the rest is still worth showing.
    const keyRing = await openKeyRing(config, { mayCreate: false, warn: note });
    const askedAt = now();
    // Reads everything from one snapshot. Without it, an attempt that is just being recorded could appear under a delivery that doesn't
    // count it yet.
    const shown = await db.snapshot((tx) => findShown({ db: tx, keyRing, now: now() }, actor, event, endpoint));
    const view: ShownEventView = { ...show(eventFields, event), deliveries: shown.map(({ delivery }) => delivery) };
    return { view, shown, endpoint: endpoint ?? null, askedAt };
  },
  print: ({ view, shown, endpoint, askedAt }) => {
    const [first] = view.deliveries;
    const event = fieldsText(view, [
      ['event', 'eventId'],
      ['project', 'projectId'],
      ['type', 'type'],
      ['created', 'createdAt'],
      ['position', 'position'],
      ['invoice', () => (first?.invoiceId ? `${first.invoiceId} (${first.externalId ?? ''})` : null)],
    ]);
    return { text: [event, ...shown.map((each) => deliveryText(each, askedAt))], next: nextOf(view, endpoint) };
  },
});

/** A delivery with its endpoint's state, and the number of its attempts, which may be higher than the number shown. */
type ShownDelivery = { delivery: ShownDeliveryView; endpoint: EndpointView; attemptCount: number };

/** The maximum number of characters to show of a response in a table. */
const MAX_ANSWER = 80;

function deliveryText(shown: ShownDelivery, askedAt: UnixMs): string {
  const { delivery, endpoint } = shown;
  const fields = formatFields([
    ['endpoint', `${delivery.endpointId}, ${statusText(endpoint)}`],
    ['url', delivery.url],
    ['delivery', delivery.status],
    ['finished', delivery.finishedAt],
    ['plan', planText(shown, askedAt)],
  ]);
  const attempts = columnsText(delivery.attempts, [
    ['ATTEMPT', 'attempt'],
    ['AT', 'attemptedAt'],
    ['LATENCY', ({ latencyMs }) => (latencyMs === null ? null : `${latencyMs} ms`)],
    ['STATUS', 'status'],
    ['RESULT', 'error', 'delivered'],
    ['ANSWER', ({ answer }) => answerText(answer, MAX_ANSWER)],
  ]);
  return joinParts([fields, attempts, diagnosisText(delivery.diagnosis)]);
}

function planText({ delivery, endpoint, attemptCount }: ShownDelivery, askedAt: UnixMs): string | null {
  const { nextAttemptAt, attemptsLeft, status } = delivery;
  const attempts = (count: number) => (count === 1 ? '1 attempt' : `${count} attempts`);
  if (status === 'dead') return `none; Quittance gave up after ${attempts(attemptCount)}`;
  if (nextAttemptAt === null) return null;
  if (endpoint.status === 'disabled') return 'none until the endpoint is enabled';
  const { pausedUntil } = endpoint;
  const opens = pausedUntil !== null && pausedUntil > nextAttemptAt ? pausedUntil : nextAttemptAt;
  return `next attempt ${Date.parse(opens) <= askedAt ? 'now' : opens}, ${attempts(attemptsLeft)} left`;
}

function nextOf({ eventId, type, deliveries }: ShownEventView, endpoint: string | null): Text | null {
  const replayTo = (endpoint: string) => ({ command: 'deliveries replay', args: [eventId], input: { endpoint } });
  if (deliveries.length === 0)
    return say`the event was not scheduled for ${endpoint ?? 'any endpoint'}. To send it: ${replayTo(endpoint ?? 'whe_…')}`;
  const dead = deliveries.find(({ status }) => status === 'dead')?.endpointId;
  if (dead === undefined) return null;
  if (type === 'ping') return say`test again: ${{ command: 'webhook test', args: [dead] }}`;
  return say`when the receiver works again: ${replayTo(dead)}`;
}

/** The maximum number of endpoints to read; no one has this many. */
const MAX_DELIVERIES = 100;
/** The number of newest attempts to read for each delivery, enough for four replays. */
const MAX_ATTEMPTS_SHOWN = 60;

type ShowDeps = { db: Sql; keyRing: KeyRing | null; now: UnixMs };

async function findShown(deps: ShowDeps, actor: Actor, event: DeskEvent, only: string | undefined) {
  const { db, now } = deps;
  const endpointId = only === undefined ? null : (await selectEndpoint(db, actor, only)).id;
  const filter = { endpointId, status: null, type: null, limit: MAX_DELIVERIES };
  const deliveries = await listDeliveriesOf(db, event.projectId, { eventId: event.id, invoiceId: null }, filter);
  const ids = deliveries.map((delivery) => delivery.endpointId);
  const attempts = await findDeskAttempts(db, event.id, ids, MAX_ATTEMPTS_SHOWN);
  const shown: ShownDelivery[] = [];
  for (const found of deliveries) {
    const endpoint = await findWebhookEndpoint(db, found.endpointId);
    if (endpoint === null) continue;
    const own = attempts.filter((attempt) => attempt.endpointId === found.endpointId);
    const diagnosis = await diagnoseLast(deps, event, own);
    const delivery = show(shownFields, { ...planOf(found), url: endpoint.url, attempts: own, diagnosis });
    shown.push({ delivery, endpoint: viewEndpoint(endpoint, now), attemptCount: found.attemptCount });
  }
  return shown;
}

async function diagnoseLast({ db, keyRing }: ShowDeps, event: DeskEvent, attempts: readonly DeskAttempt[]) {
  const last = attempts.at(-1);
  if (last === undefined) return [];
  if (last.error === null) return diagnosePage(last.answer);
  return diagnoseAttempt({
    ...last,
    answer: last.answer === null ? null : Buffer.from(last.answer),
    date: null,
    sent: { id: encodeId('evt', event.id), body: Buffer.from(event.body) },
    secrets: keyRing === null ? null : await openNewestSecrets({ db, keyRing }, last.endpointId),
  });
}

export const operations = [listDeliveries, showDelivery];
