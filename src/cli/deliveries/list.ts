import { decodeId, encodeId } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/database.ts';
import {
  type DeliveryFilter,
  type DeskDelivery,
  findDeskEvents,
  findEventAt,
  findPositionAt,
  listDeliveries,
  listDeliveriesOf,
  listUndelivered,
  type PositionRange,
} from '../../store/delivery-desk.ts';
import { findNamedInvoice } from '../../store/transfer-desk.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import type { ProjectOption } from '../option-parts.ts';
import { selectProject } from '../select-project.ts';
import { formatTable, type Result, type Terminal } from '../terminal.ts';
import { toSecond } from '../time-text.ts';
import { readPeriod } from '../transfers/options.ts';
import { findEndpoint } from '../webhook/options.ts';
import { withDatabase } from '../with-database.ts';
import { describeDelivery } from './describe.ts';
import { noEvent, readChoice, readEventId, readLimit, readType } from './options.ts';

export type ListOptions = ProjectOption & {
  endpoint?: string;
  status?: string;
  type?: string;
  invoice?: string;
  event?: string;
  from?: string;
  to?: string;
  before?: string;
  limit: string;
};

const STATUSES = ['pending', 'failing', 'delivered', 'dead'] as const;

/** So many events are looked through at once; it takes a fraction of a second. */
const MAX_LOOKED_THROUGH = 10_000n;

/** Lists deliveries, those of the newest events first. */
export async function listAllDeliveries(terminal: Terminal, options: ListOptions): Promise<Result> {
  const status = options.status === undefined ? null : readChoice('--status', options.status, STATUSES);
  const type = options.type === undefined ? null : readType(options.type);
  const limit = readLimit(options.limit);
  const period = readPeriod(options);
  const before = options.before === undefined ? null : readEventId(options.before);
  const eventId = options.event === undefined ? null : readEventId(options.event);
  return withDatabase(terminal, async ({ db }) => {
    const endpoint = options.endpoint === undefined ? null : await findEndpoint(db, options.endpoint);
    const projectId = await findProjectId(db, options, { endpointId: endpoint?.project_id ?? null, eventId });
    const filter = { endpointId: endpoint?.id ?? null, status, type, limit: limit + 1 };
    if (eventId !== null || options.invoice !== undefined) {
      const invoiceId = options.invoice === undefined ? null : await findInvoiceId(db, projectId, options.invoice);
      const found = await listDeliveriesOf(db, projectId, { eventId, invoiceId }, filter);
      const more = found.length > limit ? { note: 'there are more: a larger --limit shows them' } : {};
      return toResult(found.slice(0, limit), { nextBefore: null, ...more });
    }
    const end = before === null ? await endOf(db, projectId, period.until) : await positionOf(db, projectId, before);
    const first = period.from === null ? 1n : await findPositionAt(db, projectId, period.from);
    const { deliveries, nextBefore, note } = await findPage(db, projectId, { first, end }, filter);
    return toResult(deliveries, { nextBefore, ...(note === undefined ? {} : { note }) });
  });
}

async function findProjectId(
  db: Sql,
  options: ListOptions,
  { endpointId, eventId }: { endpointId: string | null; eventId: string | null },
): Promise<string> {
  if (endpointId !== null && options.project === undefined) return endpointId;
  if (eventId !== null && options.project === undefined) {
    const [event] = await findDeskEvents(db, [eventId]);
    if (event === undefined) throw noEvent(options.event ?? '');
    return event.projectId;
  }
  return (await selectProject(db, options.project)).id;
}

async function findInvoiceId(db: Sql, projectId: string, text: string): Promise<string> {
  // The bound of an external id, which is longer than an invoice id. PostgreSQL takes no NUL.
  const isName = text !== '' && text.length <= 400 && !text.includes('\0');
  const invoice = isName
    ? await findNamedInvoice(db, projectId, { id: decodeId('inv', text), externalId: text })
    : null;
  if (invoice !== null) return invoice.id;
  throw new CliError('NOT_FOUND', `the project has no invoice ${clip(text)}: give inv_… or the externalId`);
}

/** Behind every event there will be. */
const NEVER = unixMs(Date.UTC(9999, 0));

function endOf(db: Sql, projectId: string, until: DeskTime): Promise<bigint> {
  return findPositionAt(db, projectId, until ?? NEVER);
}

type DeskTime = ReturnType<typeof readPeriod>['until'];

async function positionOf(db: Sql, projectId: string, eventId: string): Promise<bigint> {
  const [event] = await findDeskEvents(db, [eventId]);
  if (event !== undefined && event.projectId === projectId) return event.position;
  throw new CliError('NOT_FOUND', `--before: the project has no event ${encodeId('evt', eventId)}`);
}

type Page = { deliveries: DeskDelivery[]; nextBefore: string | null; note?: string };

/** `filter.limit` is one more than is shown, which tells whether there is another page. */
async function findPage(db: Sql, projectId: string, range: PositionRange, filter: DeliveryFilter): Promise<Page> {
  const { status } = filter;
  const limit = filter.limit - 1;
  const bounded = range.end - range.first > MAX_LOOKED_THROUGH ? range.end - MAX_LOOKED_THROUGH : range.first;
  const first = status === 'dead' || status === 'pending' || status === 'failing' ? range.first : bounded;
  const found =
    status === 'dead' || status === 'pending' || status === 'failing'
      ? await listUndelivered(db, projectId, range, { ...filter, status })
      : await listDeliveries(db, projectId, { first, end: range.end }, filter);
  if (found.length > limit) return cutPage(found, limit);
  if (first === range.first) return { deliveries: found, nextBefore: null };
  const nextBefore = await findEventAt(db, projectId, first);
  return { deliveries: found, nextBefore, note: `looked through the newest ${MAX_LOOKED_THROUGH} events` };
}

/** Pages end between events, for the next one begins before an event. */
function cutPage(found: DeskDelivery[], limit: number): Page {
  const over = found[limit]?.eventId;
  const whole = found.slice(0, limit).filter(({ eventId }) => eventId !== over);
  const last = whole.at(-1);
  if (last !== undefined) return { deliveries: whole, nextBefore: last.eventId };
  return { deliveries: found.slice(0, limit), nextBefore: null, note: 'there are more: a larger --limit shows them' };
}

function toResult(deliveries: readonly DeskDelivery[], rest: { nextBefore: string | null; note?: string }): Result {
  const nextBefore = rest.nextBefore && encodeId('evt', rest.nextBefore);
  const more =
    nextBefore === null
      ? rest.note
      : `${rest.note ?? 'there are more'}: the same command with --before ${nextBefore} goes on`;
  return {
    data: { data: deliveries.map(describeDelivery), nextBefore },
    text: formatTable(
      [
        'EVENT',
        'TYPE',
        'CREATED (UTC)',
        'ENDPOINT',
        'STATUS',
        'ATTEMPTS',
        'LAST RESULT',
        'NEXT ATTEMPT',
        'EXTERNAL ID',
      ],
      deliveries.map(toCells),
    ),
    next: more ?? (deliveries.length === 0 ? 'no such deliveries' : 'see one with "quittance deliveries show evt_…"'),
  };
}

function nextAttempt({ status, isEndpointDisabled, nextAttemptAt }: DeskDelivery): string {
  if (status !== 'pending') return '';
  return isEndpointDisabled ? 'endpoint disabled' : toSecond(nextAttemptAt);
}

const MAX_TEXT = 24;

function toCells(delivery: DeskDelivery): string[] {
  const { status, lastStatus, lastError } = delivery;
  const externalId = [...(delivery.externalId ?? '')];
  return [
    encodeId('evt', delivery.eventId),
    delivery.type,
    toSecond(delivery.createdAt),
    encodeId('whe', delivery.endpointId),
    status,
    String(delivery.attemptCount),
    lastError?.split(':', 1)[0] ?? (lastStatus === null ? '' : String(lastStatus)),
    nextAttempt(delivery),
    externalId.length > MAX_TEXT ? `${externalId.slice(0, MAX_TEXT - 1).join('')}…` : externalId.join(''),
  ];
}
