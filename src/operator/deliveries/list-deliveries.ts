import { AppError } from '../../domain/errors.ts';
import { EVENT_TYPES } from '../../domain/event.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { toIso, unixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { readChoice, readLimit } from '../input/read-choice.ts';
import { readPeriod } from '../input/read-period.ts';
import { findInvoiceId } from '../invoices/list-invoices.ts';
import { selectProject } from '../select-project.ts';
import { findPositionAt } from '../subjects/webhook-sending.ts';
import { selectEndpoint } from '../subjects/webhooks.ts';
import {
  type DeliveryFilter,
  type DeskDelivery,
  findDeskEvents,
  findEventAt,
  isIndexed,
  listDeliveriesOf,
  listRange,
  type PositionRange,
} from './delivery-desk.ts';
import { readEventId, selectEvent } from './select-event.ts';
import type { DeliveryListView, DeliveryView } from './views.ts';

const STATUSES = ['pending', 'failing', 'delivered', 'dead'] as const;

type Asked = { [Name in 'status' | 'type' | 'from' | 'to' | 'before' | 'event']?: string | undefined };

/** Reads which deliveries are wanted. Errors: `INVALID_ARGUMENT`. */
export function readDeliveryFilter({ limit, ...asked }: Asked & { limit: string }) {
  for (const id of [asked.before, asked.event]) if (id !== undefined) readEventId(id);
  return {
    status: readChoice('status', asked.status, STATUSES),
    type: readChoice('type', asked.type, EVENT_TYPES),
    limit: readLimit(limit, { least: 1, most: 500 }),
    ...readPeriod(asked),
    ...{ before: asked.before, event: asked.event },
  };
}

type Wanted = ReturnType<typeof readDeliveryFilter>;
type Place = { [Name in 'projectId' | 'endpoint' | 'invoice']?: string | undefined };

/** Why a list ends before all is shown: at its limit, at the end of a page, or after so many events were looked through. */
type End = null | { kind: 'limit' | 'page' } | { kind: 'searched'; events: bigint };
type Page = { deliveries: DeskDelivery[]; nextBefore: string | null; end: End };

/** So many events are looked through at once; it takes a fraction of a second. */
const MAX_LOOKED_THROUGH = 10_000n;
/** Behind every event there will be. */
const NEVER = unixMs(Date.UTC(9999, 0));

/** Deliveries, those of the newest events first. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`. */
export async function listDeliveries(
  { db }: { db: Sql },
  actor: Actor,
  wanted: Wanted & Place,
): Promise<{ view: DeliveryListView; end: End }> {
  const { deliveries, nextBefore, end } = await findListed(db, actor, wanted);
  return { view: { data: deliveries.map(viewDelivery), nextBefore: nextBefore && encodeId('evt', nextBefore) }, end };
}

async function findListed(db: Sql, actor: Actor, wanted: Wanted & Place): Promise<Page> {
  const { status, type, limit } = wanted;
  const endpoint = wanted.endpoint === undefined ? null : await selectEndpoint(db, actor, wanted.endpoint);
  const projectId = await findProjectId(db, actor, wanted, endpoint);
  const filter = { endpointId: endpoint?.id ?? null, status, type, limit: limit + 1 };
  if (wanted.event !== undefined || wanted.invoice !== undefined) {
    const eventId = wanted.event === undefined ? null : readEventId(wanted.event);
    const invoiceId = wanted.invoice === undefined ? null : await findInvoiceId(db, projectId, wanted.invoice);
    const found = await listDeliveriesOf(db, projectId, { eventId, invoiceId }, filter);
    return {
      deliveries: found.slice(0, limit),
      nextBefore: null,
      end: found.length > limit ? { kind: 'limit' } : null,
    };
  }
  const end =
    wanted.before === undefined
      ? await findPositionAt(db, projectId, wanted.until ?? NEVER)
      : await positionOf(db, projectId, wanted.before);
  const first = wanted.from === null ? 1n : await findPositionAt(db, projectId, wanted.from);
  return findPage(db, projectId, { first, end }, filter);
}

async function findProjectId(
  db: Sql,
  actor: Actor,
  wanted: Wanted & Place,
  endpoint: { projectId: string } | null,
): Promise<string> {
  if (wanted.projectId === undefined && endpoint !== null) return endpoint.projectId;
  if (wanted.projectId === undefined && wanted.event !== undefined)
    return (await selectEvent(db, actor, wanted.event)).projectId;
  return (await selectProject(db, actor, wanted.projectId)).id;
}

async function positionOf(db: Sql, projectId: string, eventId: string): Promise<bigint> {
  const [event] = await findDeskEvents(db, [readEventId(eventId)]);
  if (event !== undefined && event.projectId === projectId) return event.position;
  throw new AppError('NOT_FOUND', say`${{ field: 'before' }}: the project has no event ${eventId}`);
}

/** `filter.limit` is one more than is shown, which tells whether there is another page. */
async function findPage(db: Sql, projectId: string, range: PositionRange, filter: DeliveryFilter): Promise<Page> {
  const isBounded = !isIndexed(filter.status) && range.end - range.first > MAX_LOOKED_THROUGH;
  const first = isBounded ? range.end - MAX_LOOKED_THROUGH : range.first;
  const deliveries = await listRange(db, projectId, { first, end: range.end }, filter);
  if (deliveries.length >= filter.limit) return cutPage(deliveries, filter.limit - 1);
  if (!isBounded) return { deliveries, nextBefore: null, end: null };
  const nextBefore = await findEventAt(db, projectId, first);
  return { deliveries, nextBefore, end: { kind: 'searched', events: MAX_LOOKED_THROUGH } };
}

/** Pages end between events, for the next one begins before an event. */
function cutPage(found: DeskDelivery[], limit: number): Page {
  const over = found[limit]?.eventId;
  const whole = found.slice(0, limit).filter(({ eventId }) => eventId !== over);
  const last = whole.at(-1);
  if (last !== undefined) return { deliveries: whole, nextBefore: last.eventId, end: { kind: 'page' } };
  return { deliveries: found.slice(0, limit), nextBefore: null, end: { kind: 'limit' } };
}

export function viewDelivery(delivery: DeskDelivery): DeliveryView {
  const { eventId, endpointId, isEndpointDisabled, type, invoiceId, externalId, status, attemptCount } = delivery;
  const isPending = status === 'pending';
  return {
    ...{ eventId: encodeId('evt', eventId), endpointId: encodeId('whe', endpointId), isEndpointDisabled, type },
    createdAt: toIso(delivery.createdAt),
    ...{ invoiceId: invoiceId && encodeId('inv', invoiceId), externalId, status, attempts: attemptCount },
    attemptsLeft: isPending ? Math.max(0, delivery.maxAttempts - attemptCount) : 0,
    nextAttemptAt: isPending ? toIso(delivery.nextAttemptAt) : null,
    finishedAt: delivery.finishedAt && toIso(delivery.finishedAt),
    ...{ lastStatus: delivery.lastStatus, lastError: delivery.lastError },
  };
}
