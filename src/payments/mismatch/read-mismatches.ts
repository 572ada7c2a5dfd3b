import { setImmediate } from 'node:timers/promises';
import { firstIdOf } from '../../domain/ids.ts';
import type { MismatchFacts, Sender, Suspect } from '../../domain/mismatch/facts.ts';
import { searchRanges } from '../../domain/mismatch/search-ranges.ts';
import type { Sql } from '../../store/db/database.ts';
import {
  type FoundSuspect,
  findFewRecentUnpaid,
  findInvoicesElsewhere,
  findInvoicesInRanges,
  findMismatched,
  findRecentUnpaid,
  findSuspects,
  type MismatchedTransfer,
} from './candidates.ts';
import { findResembled, findSiblings } from './sender.ts';

const MAX_AT_ONCE = 500;
/** The most transfers compared with invoices at once: each may have some thousand invoices, and others wait meanwhile. */
const GROUP = 10;
/** Transfers of the same ten minutes are compared with the same newest invoices. */
const WINDOW_MS = 600_000;
/** Of more, 200 invoices each would be tens of thousands of rows, which take seconds: then 50 of each are read. */
const MANY_WINDOWS = 10;

/** The facts about a transfer that paid nothing. `repeated` is the paid invoice that a duplicate repeats, else `null`. */
export type Mismatch = { transferId: string; facts: MismatchFacts; repeated: Suspect | null };

/**
 * Reads the facts about each of these transfers (UUIDs, at most 500). Those that paid an invoice or do not exist are left out.
 * Throws a RangeError for more than 500.
 */
export async function* readMismatches(db: Sql, transferIds: readonly string[]): AsyncGenerator<Mismatch> {
  if (transferIds.length > MAX_AT_ONCE) {
    throw new RangeError(`at most ${MAX_AT_ONCE} transfers are diagnosed at once, got ${transferIds.length}`);
  }
  const transfers = transferIds.length === 0 ? [] : await findMismatched(db, transferIds);
  if (transfers.length === 0) return;
  const senders = await readSenders(db, transfers);
  const repeated = await readRepeated(db, transfers);
  const isMany = groupByWindow(transfers).length > MANY_WINDOWS;
  for (let first = 0; first < transfers.length; first += GROUP) {
    const group = transfers.slice(first, first + GROUP);
    const unmatched = group.filter(({ invoiceId }) => invoiceId === null);
    const suspects = await readSuspects(db, unmatched, senders, isMany);
    for (const transfer of group) {
      const facts = { ...factsOf(transfer, senders), invoices: suspects.get(transfer.id) ?? [] };
      yield { transferId: transfer.id, facts, repeated: repeated.get(transfer.id) ?? null };
      // What is made of one may take ten milliseconds; requests are answered in between.
      await setImmediate();
    }
  }
}

type SenderFacts = Pick<MismatchFacts, 'sender' | 'siblings'>;

function factsOf(transfer: MismatchedTransfer, senders: Map<string, SenderFacts>): Omit<MismatchFacts, 'invoices'> {
  const { amountMicro, from, to, at, policy } = transfer;
  const { sender, siblings } = senders.get(transfer.id) as SenderFacts;
  return { transfer: { amountMicro, from, to, at }, policy, sender, siblings };
}

async function readSenders(db: Sql, transfers: MismatchedTransfer[]): Promise<Map<string, SenderFacts>> {
  const facts = new Map(
    transfers.map((transfer) => {
      const { isFromOurs: isOurs, isFromRecipient: hasReceived } = transfer;
      const sender: Sender = { isOurs, hasReceived, hasDeposited: false, resembles: null };
      return [transfer.id, { transfer, sender, siblings: [] as MismatchFacts['siblings'][number][] }];
    }),
  );
  for (const { transferId, amountMicro, at, isUnmatched, resolution } of await findSiblings(db, transfers)) {
    const known = facts.get(transferId);
    if (known === undefined) continue;
    // Money that was sent back, or was the merchant's own, is no part of a payment.
    const isPart = resolution === null || resolution === 'credited-outside';
    if (isUnmatched && isPart) known.siblings.push({ amountMicro, at });
    if (resolution === 'own-deposit' && at <= known.transfer.at) known.sender.hasDeposited = true;
  }
  for (const { transferId, own, strange } of await findResembled(db, transfers)) {
    const known = facts.get(transferId);
    if (known !== undefined) known.sender.resembles = own ?? strange;
  }
  return facts;
}

async function readRepeated(db: Sql, transfers: MismatchedTransfer[]): Promise<Map<string, Suspect>> {
  const duplicates = transfers.flatMap(({ id, projectId, invoiceId }) =>
    invoiceId === null ? [] : [{ id, projectId, invoiceId }],
  );
  const found = await findSuspects(db, duplicates);
  return new Map(found.map((suspect) => [duplicates[suspect.question]?.id ?? '', suspect]));
}

/** The invoices that come into question for each transfer: near in amount, exact elsewhere, and the newest that were not paid. */
async function readSuspects(
  db: Sql,
  transfers: MismatchedTransfer[],
  senders: Map<string, SenderFacts>,
  isMany: boolean,
): Promise<Map<string, Suspect[]>> {
  const suspects = new Map(transfers.map(({ id }) => [id, new Map<string, Suspect>()]));
  const add = (ids: readonly string[] | undefined, suspect: FoundSuspect) => {
    for (const id of ids ?? []) suspects.get(id)?.set(suspect.id, suspect);
  };
  const ranges = groupByRange(transfers, senders);
  for (const found of await findInvoicesInRanges(db, ranges)) add(ranges[found.question]?.ids, found);
  const elsewhere = transfers.filter(({ amountMicro }) => amountMicro < 2n ** 63n);
  for (const found of await findInvoicesElsewhere(db, elsewhere)) add([elsewhere[found.question]?.id ?? ''], found);
  const windows = groupByWindow(transfers);
  for (const found of await (isMany ? findFewRecentUnpaid : findRecentUnpaid)(db, windows))
    add(windows[found.question]?.ids, found);
  return new Map([...suspects].map(([id, byId]) => [id, [...byId.values()]]));
}

/** Many transfers of one amount, as dust is, ask for the same ranges. */
function groupByRange(
  transfers: MismatchedTransfer[],
  senders: Map<string, SenderFacts>,
): { addressId: string; low: bigint; high: bigint; ids: string[] }[] {
  const ranges = new Map<string, { addressId: string; low: bigint; high: bigint; ids: string[] }>();
  for (const transfer of transfers) {
    const { id, addressId, maxSurchargeMicro } = transfer;
    for (const { low, high } of searchRanges(factsOf(transfer, senders), maxSurchargeMicro)) {
      const key = `${addressId} ${low} ${high}`;
      const range = ranges.get(key) ?? { addressId, low, high, ids: [] };
      range.ids.push(id);
      ranges.set(key, range);
    }
  }
  return [...ranges.values()];
}

function groupByWindow(transfers: MismatchedTransfer[]): { projectId: string; belowId: string; ids: string[] }[] {
  const windows = new Map<string, { projectId: string; belowId: string; ids: string[] }>();
  for (const { id, projectId, at } of transfers) {
    const end = (Math.floor(at / WINDOW_MS) + 2) * WINDOW_MS;
    const key = `${projectId} ${end}`;
    const window = windows.get(key) ?? { projectId, belowId: firstIdOf(end), ids: [] };
    window.ids.push(id);
    windows.set(key, window);
  }
  return [...windows.values()];
}
