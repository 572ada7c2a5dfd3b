import type { AlarmKind } from '../../domain/alarm-kinds.ts';
import { encodeId, firstIdOf, type IdPrefix, NIL_UUID, timeOfId, uuidV7 } from '../../domain/ids.ts';
import type { Network } from '../../domain/network.ts';
import { toIso } from '../../domain/time.ts';
import { findActionsOn } from '../../store/access/audit-log.ts';
import { type Alarm, endAlarm, findAlarmSubjects, tellAlarm } from '../../store/chain/alarms.ts';
import type { Sql } from '../../store/db/database.ts';
import { answerOf, attemptOf, commandOf, rowOf, rowsOf } from '../../store/db/rows-of.ts';
import { type SealedTable, sealColumn, sealOf } from '../../store/db/seal.ts';
import {
  SEALED_EVENT,
  SEALED_INVOICE,
  SEALED_PAGE,
  SEALED_PAID,
  SEALED_STATUS,
  SEALED_TRANSFER,
  SEALED_WITHDRAWN,
} from '../../store/db/sealed-tables.ts';
import { count, isAsSealed, type Row } from '../../store/db/statement.ts';
import type { Leading } from '../watching.ts';

/** Tables whose rows are never deleted. */
export const LISTED = ['invoices', 'transfers', 'events'] as const;
export type Listed = (typeof LISTED)[number];
export type Subject = Listed | 'settings';

/**
 * The state for keeping a network's inventory. `seen` is the inventory's end as this process last saw it, so that a reset to an earlier end
 * is detected.
 */
export type Keeping = Leading & {
  random(bytes: number): Uint8Array;
  seen: Map<Subject, { number: number; bytes: number }>;
  /** The ids of rows that this process has seen, but that are still too young to be listed. */
  young: Map<Listed, Set<string>>;
  /** The operator-closed alarms that were open at the last check, and the audit log's last entry at that time. */
  alarms: { open: readonly Alarm[]; audit: number };
};

/**
 * Younger rows aren't listed yet. Ids increase with the clock of the process that creates the row, and its transaction may commit a few
 * seconds later. A row that commits even later is never listed. Until rows are listed, this process remembers the rows that it has seen.
 */
const SETTLE_MS = 60_000;
/**
 * Young rows are read a thousand at a time, at most this many times. These are more rows than are created in a minute at the highest
 * measured load; any others are only listed later.
 */
const MAX_YOUNG_READS = 20;
/** If more than this many thousand unlisted late rows lie between a page's rows, the rest is skipped. */
const MAX_READS = 5;
const LAST_UUID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Adds a subject's next rows to its last page, or to a new page. Returns whether there may be more. */
export async function listNewRows(keeping: Keeping, subject: Listed): Promise<boolean> {
  const { db, network, now, random, seen } = keeping;
  const last = await findLastInventoryPage(db, network, subject);
  if (await isCutOff(keeping, subject, last)) return false;
  // A forged page already has an alarm, and nothing must be added to it.
  if (last !== null && !last.seal) return false;
  const listed = last === null ? [] : decodeIds(last.content);
  const isFull = listed.length >= MAX_PAGE_IDS;
  const limit = isFull ? MAX_PAGE_IDS : MAX_PAGE_IDS - listed.length;
  const [after, settled] = [listed.at(-1) ?? NIL_UUID, firstIdOf(now() - SETTLE_MS)];
  const rows = await readListed(db, subject, { network, after, upTo: settled, limit });
  const upTo = (rows.length === limit && rows.at(-1)?.id) || settled;
  const young = youngOf(keeping, subject);
  const gone = [...young].filter((id) => id > after && id <= upTo);
  const sealedIds = rows.filter(({ isSealed }) => isSealed).map(({ id }) => id);
  const added = [...new Set([...sealedIds, ...gone])].sort().slice(0, limit);
  if (added.length > 0) {
    const [number, ids] =
      last === null || isFull ? [(last?.number ?? 0) + 1, added] : [last.number, [...listed, ...added]];
    const written = { network, subject, number, content: encodeIds(ids) };
    if (last?.number !== number) await insertInventoryPage(db, { ...written, id: uuidV7(now(), random(10)) });
    else if (!(await updateInventoryPage(db, { ...written, id: last.id }, last.content))) return true;
    seen.set(subject, { number, bytes: written.content.length });
  }
  const isMore = rows.length === limit || added.length === limit;
  const done = isMore ? (added.at(-1) ?? after) : settled;
  for (const id of young) if (id <= done) young.delete(id);
  return isMore;
}

function youngOf({ young }: Keeping, subject: Listed): Set<string> {
  const ids = young.get(subject) ?? new Set();
  young.set(subject, ids);
  return ids;
}

/** Returns how many rows are listed on the pages. All pages except the last are full. */
export function countListed({ seen }: Keeping, subject: Listed): number {
  const last = seen.get(subject);
  return last === undefined || last.number === 0 ? 0 : (last.number - 1) * MAX_PAGE_IDS + last.bytes / ID_BYTES;
}

/** Whether the inventory ends earlier than this process has seen before. */
async function isCutOff(keeping: Keeping, subject: Listed, last: InventoryPage | null): Promise<boolean> {
  const [before, now] = [keeping.seen.get(subject), { number: last?.number ?? 0, bytes: last?.content.length ?? 0 }];
  const isLess =
    before !== undefined && (now.number < before.number || (now.number === before.number && now.bytes < before.bytes));
  if (isLess) await tellCutOff(keeping, subject);
  keeping.seen.set(subject, now);
  return isLess;
}

/** Checks that each row on a page exists and has a valid seal. Does nothing for page 0, which doesn't exist. */
export async function lookOverPage(keeping: Keeping, subject: Listed, number: number): Promise<void> {
  if (number === 0) return;
  const { db, network } = keeping;
  const page = await findInventoryPage(db, network, subject, number);
  if (page === null) return tellCutOff(keeping, subject);
  if (!page.seal) return;
  const listed = decodeIds(page.content);
  const upTo = listed.at(-1) ?? NIL_UUID;
  const missing = new Set(listed);
  // Starts at the end of the previous page, so that rows inserted between two pages are found as well.
  for (let [after, reads] = [lastIdOf(page.before), 1]; ; reads += 1) {
    const rows = await readListed(db, subject, { network, after, upTo, limit: MAX_PAGE_IDS });
    for (const { id, unpaidInvoiceId } of rows) {
      missing.delete(id);
      if (unpaidInvoiceId !== null) await tellUnpaid(keeping, { transferId: id, invoiceId: unpaidInvoiceId });
    }
    if (rows.length < MAX_PAGE_IDS || missing.size === 0) break;
    after = rows.at(-1)?.id ?? upTo;
    if (reads < MAX_READS) continue;
    for (const id of await FIND_KNOWN[subject](db, network, [...missing])) missing.delete(id);
    break;
  }
  await tellMissing(keeping, subject, listed, missing);
}

function lastIdOf(content: Buffer | null): string {
  return (content && decodeIds(content.subarray(-ID_BYTES))[0]) ?? NIL_UUID;
}

/**
 * Reads the rows that are too young to be listed, and rows whose ids are in the future, because reading a row checks its seal. If a row
 * existed before and is gone now, it's missing. It's listed with the others once it's old enough.
 */
export async function lookAtYoung(keeping: Keeping, subject: Listed): Promise<void> {
  const { db, network, now } = keeping;
  const young = youngOf(keeping, subject);
  const missing = new Set(young);
  let after = firstIdOf(now() - SETTLE_MS);
  for (let reads = 0; reads < MAX_YOUNG_READS; reads += 1) {
    const rows = await readListed(db, subject, { network, after, upTo: LAST_UUID, limit: MAX_PAGE_IDS });
    for (const { id, isSealed, unpaidInvoiceId } of rows) {
      missing.delete(id);
      if (isSealed && young.size < MAX_YOUNG_READS * MAX_PAGE_IDS) young.add(id);
      if (unpaidInvoiceId !== null) await tellUnpaid(keeping, { transferId: id, invoiceId: unpaidInvoiceId });
    }
    if (rows.length < MAX_PAGE_IDS) break;
    after = rows.at(-1)?.id ?? LAST_UUID;
  }
  // In the meantime, some of the rows may have become too old to be read as young rows.
  if (missing.size > 0) for (const id of await FIND_KNOWN[subject](db, network, [...missing])) missing.delete(id);
  if (young.size > 0) await tellMissing(keeping, subject, [...young], missing);
}

const ID_BYTES = 16;
/** Such a page takes 16 KB. */
const MAX_PAGE_IDS = 1000;

/** Encodes UUIDs as the contents of a page, 16 bytes each. */
export function encodeIds(ids: readonly string[]): Buffer {
  return Buffer.from(ids.join('').replaceAll('-', ''), 'hex');
}

export function decodeIds(content: Buffer): string[] {
  const ids: string[] = [];
  for (let at = 0; at + ID_BYTES <= content.length; at += ID_BYTES) {
    ids.push(dashed(content.toString('hex', at, at + ID_BYTES)));
  }
  return ids;
}

function dashed(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

const page = { id: 'uuid', number: count, content: 'bytea', seal: isAsSealed(SEALED_PAGE), before: 'bytea?' } as const;
/** A page of a network's inventory. `seal` says whether its seal is valid. `before` is the previous page's contents. */
type InventoryPage = Row<typeof page>;

const PAGE = `select p.id, p.number, p.content, ${sealColumn(SEALED_PAGE, 'p.')} as seal, b.content as before
   from inventory_pages p left join inventory_pages b on b.network = p.network and b.subject = p.subject and b.number = p.number - 1
   where p.network = $1 and p.subject = $2`;

export const findInventoryPage = rowOf(
  'inventory-page',
  page,
  `${PAGE} and p.number = $3`,
  (network: Network, subject: Subject, number: number) => [network, subject, number],
);

const findLastInventoryPage = rowOf(
  'inventory-page-last',
  page,
  `${PAGE} order by p.number desc limit 1`,
  (network: Network, subject: Subject) => [network, subject],
);

type Written = { id: string; network: Network; subject: Subject; number: number; content: Buffer };

export const insertInventoryPage = commandOf(
  'inventory-page-insert',
  'insert into inventory_pages (id, network, subject, number, content, mac) values ($1, $2, $3, $4, $5, $6)',
  (written: Written) => {
    const { id, network, subject, number, content } = written;
    return [id, network, subject, number, content, sealOf(SEALED_PAGE, written)];
  },
);

/** Replaces a page's contents, unless they have changed since they were read. Returns whether they were replaced. */
export const updateInventoryPage = attemptOf(
  'inventory-page-update',
  'update inventory_pages set content = $2, mac = $3 where id = $1 and content = $4',
  (written: Written, before: Buffer) => [written.id, written.content, sealOf(SEALED_PAGE, written), before],
);

/** Each row is read once, so nothing is cached. */
const once = (table: SealedTable): SealedTable => ({ ...table, isReadOnce: true });
const RANGE = '> $2 and t.id <= $3 order by t.id limit $4';
type Range = { network: Network; after: string; upTo: string; limit: number };
const bindRange = ({ network, after, upTo, limit }: Range) => [network, after, upTo, limit];

// An order with events no longer has its initial status, so it needs a status seal. If someone restores an earlier status together with its
// seal, the number of changes is lower than the number of events.
const statusWithEvents: SealedTable = {
  ...once(SEALED_STATUS),
  needed: (row) => `${row}status <> 'PAID' and (${SEALED_STATUS.needed?.(row)} or told.sequence > 0)`,
};

const ofInvoices = rowsOf(
  'inventory-invoices',
  {
    ...{ id: 'uuid', seal: isAsSealed(once(SEALED_INVOICE)), paid: isAsSealed(once(SEALED_PAID)) },
    withdrawn: isAsSealed(once(SEALED_WITHDRAWN)),
    /** The newest event's number, which the status seal is compared with. */
    eventCount: 'int4',
    statusSeal: isAsSealed(statusWithEvents),
  },
  `with ids as (
     select r.project_id, r.id from projects p cross join lateral (
       select t.project_id, t.id from invoices t where t.project_id = p.id and t.id ${RANGE}) r
     where p.network = $1 order by r.id limit $4)
   select id, ${sealColumn(SEALED_INVOICE, 'i.')} as seal, ${sealColumn(SEALED_PAID, 'i.')} as paid,
     ${sealColumn(SEALED_WITHDRAWN, 'i.')} as withdrawn,
     told.sequence as event_count, ${sealColumn(statusWithEvents, 'i.')} as status_seal
   from ids join invoices i using (project_id, id)
   cross join lateral (
     select coalesce(max(e.sequence), 0) as sequence from events e where e.project_id = i.project_id and e.invoice_id = i.id) told
   order by id`,
  bindRange,
);

const ofTransfers = rowsOf(
  'inventory-transfers',
  { id: 'uuid', unpaidInvoiceId: 'uuid?', seal: isAsSealed(once(SEALED_TRANSFER)) },
  `select t.id, case when t.kind = 'matched' and not exists (
       select from invoices i where i.project_id = t.project_id and i.id = t.invoice_id and i.paid_transfer_id = t.id
         and i.status = 'PAID') then t.invoice_id end as unpaid_invoice_id,
     ${sealColumn(SEALED_TRANSFER, 't.')} as seal
   from transfers t where t.network = $1 and t.id ${RANGE}`,
  bindRange,
);

const ofEvents = rowsOf(
  'inventory-events',
  { id: 'uuid', seal: isAsSealed(once(SEALED_EVENT)) },
  `select t.id, ${sealColumn(SEALED_EVENT, 't.')} as seal from events t where t.network = $1 and t.id ${RANGE}`,
  bindRange,
);

/**
 * `isSealed` means that the seal is valid. `unpaidInvoiceId` is set if the transfer is recorded as paying an invoice, but that invoice
 * isn't marked as `PAID` by it.
 */
type ListedRow = { id: string; isSealed: boolean; unpaidInvoiceId: string | null };

/** Returns a network's next rows, ordered by id, after one id and up to and including another. */
async function readListed(db: Sql, subject: Listed, range: Range): Promise<ListedRow[]> {
  switch (subject) {
    case 'invoices':
      // The seal for a change that never happened is null, which doesn't count as wrong.
      return (await ofInvoices(db, range)).map(({ id, seal, ...others }) => ({
        ...{ id, isSealed: seal && ![others.paid, others.withdrawn, others.statusSeal].includes(false) },
        unpaidInvoiceId: null,
      }));
    case 'transfers':
      return (await ofTransfers(db, range)).map(({ seal, ...row }) => ({ ...row, isSealed: seal }));
    case 'events':
      return (await ofEvents(db, range)).map(({ id, seal }) => ({ id, isSealed: seal, unpaidInvoiceId: null }));
  }
}

const known = (subject: Listed, from: string) =>
  answerOf(
    `inventory-known-${subject}`,
    { id: 'uuid' },
    `select t.id from ${from} where t.id = any($2::uuid[])`,
    (network: Network, ids: readonly string[]) => [network, ids],
    (rows) => rows.map(({ id }) => id),
  );

/** Returns which of the given ids exist. */
const FIND_KNOWN: Record<Listed, (db: Sql, network: Network, ids: readonly string[]) => Promise<string[]>> = {
  invoices: known('invoices', 'projects p join invoices t on p.network = $1 and t.project_id = p.id'),
  transfers: known('transfers', '(select * from transfers where network = $1) t'),
  events: known('events', '(select * from events where network = $1) t'),
};

/** A person can handle this many alarms. Further missing rows are reported once these alarms are resolved. */
const MAX_ALARMS = 20;
const PREFIX: Record<Listed, IdPrefix> = { invoices: 'inv', transfers: 'trf', events: 'evt' };
const SEE = 'docs/reference/alarms.md';

/**
 * Raises `rows-missing` for missing rows, except those that an operator has accepted. Resolves the alarm for the rows in `listed` that
 * exist.
 */
async function tellMissing(
  keeping: Keeping,
  table: Listed,
  listed: readonly string[],
  missing: ReadonlySet<string>,
): Promise<void> {
  const { db, network } = keeping;
  const nameOf = (id: string) => `${table}:${id}`;
  const about = missing.size === 0 ? [] : await findActionsOn(db, 0, [...missing].map(nameOf));
  const accepted = new Set(about.filter(({ action }) => action === 'row.accepted').map(({ subject }) => subject));
  const gone = [...missing].filter((id) => !accepted.has(nameOf(id)));
  const open = new Set(await findAlarmSubjects(db, network, 'rows-missing'));
  for (const id of listed) {
    const subject = nameOf(id);
    if (!open.has(subject) || (missing.has(id) && !accepted.has(subject))) continue;
    await endAlarm(keeping, 'rows-missing', network, subject);
  }
  const more = gone.length > MAX_ALARMS ? `, and ${gone.length - MAX_ALARMS} more rows with similar ids` : '';
  for (const id of gone.slice(0, MAX_ALARMS)) {
    const name = encodeId(PREFIX[table], id);
    const detail = `${name} from ${toIso(timeOfId(name))} is missing from ${table}${more}: the row was deleted directly in the database. See "rows-missing" in ${SEE}`;
    await tell(keeping, 'rows-missing', nameOf(id), detail);
  }
}

/** Prefix of the alarm subject if the alarm is about the inventory itself. */
export const INVENTORY = 'inventory_pages:';

/** Reports that the inventory itself has lost its end or a page. */
export function tellCutOff(keeping: Keeping, subject: Subject): Promise<void> {
  const detail = `the list of all ${subject} has lost entries: the database, or part of it, was reset to an earlier state. See "rows-missing" in ${SEE}`;
  return tell(keeping, 'rows-missing', `${INVENTORY}${subject}`, detail);
}

function tellUnpaid(
  keeping: Keeping,
  { transferId, invoiceId }: { transferId: string; invoiceId: string },
): Promise<void> {
  const [invoice, transfer] = [encodeId('inv', invoiceId), encodeId('trf', transferId)];
  const detail = `${transfer} paid ${invoice}, but the invoice does not show this payment: the invoice was changed directly in the database. See "row-changed" in ${SEE}`;
  return tell(keeping, 'row-changed', `invoices.paid ${invoiceId}`, detail);
}

/** Reports a row whose state isn't explained by any recorded action. */
export function tellUnexplained(
  keeping: Keeping,
  { table, id, name, isGone }: { table: string; id: string; name: string; isGone: boolean },
): Promise<void> {
  if (isGone) {
    const detail = `${name} is missing from ${table}: the row was deleted directly in the database. See "rows-missing" in ${SEE}`;
    return tell(keeping, 'rows-missing', `${table}:${id}`, detail);
  }
  const detail = `${name} (a row in ${table}, ${id}) was changed without an entry in the audit log: it was changed directly in the database, or reset to an earlier state. See "row-changed" in ${SEE}`;
  return tell(keeping, 'row-changed', `${table} ${id}`, detail);
}

/** Reports that someone is withholding an event from an endpoint. */
export function tellDelivery(
  keeping: Keeping,
  { eventId, endpointId, what }: { eventId: string; endpointId: string; what: string },
): Promise<void> {
  const [event, endpoint] = [encodeId('evt', eventId), encodeId('whe', endpointId)];
  const detail = `the delivery of ${event} to ${endpoint} ${what}: the database was changed directly. To send the event again, run "quittance deliveries replay ${event} --endpoint ${endpoint}". See "row-changed" in ${SEE}`;
  return tell(keeping, 'row-changed', `deliveries ${eventId} ${endpointId}`, detail);
}

const tell = (keeping: Keeping, kind: AlarmKind, subject: string, detail: string) =>
  tellAlarm(keeping, kind, { network: keeping.network, subject, detail });
