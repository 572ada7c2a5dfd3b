import { firstIdOf, NIL_UUID, uuidV7 } from '../../domain/ids.ts';
import {
  FIND_KNOWN,
  findInventoryPage,
  findLastInventoryPage,
  type InventoryPage,
  insertInventoryPage,
  type Listed,
  readListed,
  updateInventoryPage,
} from '../../store/ledger/inventory.ts';
import { type Keeping, tellCutOff, tellMissing, tellUnpaid } from './inventory-alarms.ts';

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
