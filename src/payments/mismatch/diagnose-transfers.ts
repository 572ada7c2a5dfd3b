import { setImmediate } from 'node:timers/promises';
import { firstIdOf } from '../../domain/ids.ts';
import type { MismatchFacts, Sender, Suspect } from '../../domain/mismatch/facts.ts';
import { type Fit, fitInvoice } from '../../domain/mismatch/fit-invoice.ts';
import { rankCauses, rankDuplicate } from '../../domain/mismatch/rank-causes.ts';
import { searchRanges } from '../../domain/mismatch/search-ranges.ts';
import type { Cause } from '../../domain/mismatch.ts';
import type { UnixMs } from '../../domain/time.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import type { Sql } from '../../store/db/database.ts';
import { rowsOf } from '../../store/db/rows-of.ts';
import { outgoingStands, stands } from '../../store/ledger/standing.ts';
import {
  type FoundSuspect,
  findFewRecentUnpaid,
  findInvoicesElsewhere,
  findInvoicesInRanges,
  findMismatched,
  findRecentUnpaid,
  findSuspects,
  findUnsound,
  type MismatchedTransfer,
} from './candidates.ts';

/** Whoever makes up more invoices that fit better than any other gets none of them named, and keeps all others from it. */
const MOST_ROUNDS = 5;

/**
 * Why each of these transfers (UUIDs, at most 500) paid nothing: likely causes, best first, never empty. They name no invoice that is not as it
 * was sealed. `isList`: a page or table of many, where each is compared with fewer orders. Transfers that paid an invoice or do not exist are left out. Reads only. Throws a RangeError for more than 500.
 */
export async function diagnoseTransfers(
  db: Sql,
  transferIds: readonly string[],
  isList = false,
): Promise<Map<string, Cause[]>> {
  const causes = new Map<string, Cause[]>();
  const unsound = new Set<string>();
  let ids = transferIds;
  for (let round = 1; ids.length > 0; round += 1) {
    const mayBeNamed = (id: string) => round <= MOST_ROUNDS && !unsound.has(id);
    for await (const { transferId, facts, repeated } of readMismatches(db, ids, isList)) {
      const invoices = facts.invoices.filter(({ id }) => mayBeNamed(id));
      const known = repeated !== null && mayBeNamed(repeated.id) ? repeated : null;
      causes.set(transferId, rank({ facts: { ...facts, invoices }, repeated: known }));
    }
    const named = (id: string) => causes.get(id)?.flatMap(({ invoices }) => invoices.map((each) => each.id)) ?? [];
    for (const id of await findUnsound(db, ids, ids.flatMap(named))) unsound.add(id);
    ids = ids.filter((id) => named(id).some((each) => unsound.has(each)));
  }
  return causes;
}

/** Likely causes, and how the transfer fits the invoice that was asked about; `null` if it hardly does, or repeats an invoice. */
export type Compared = { causes: Cause[]; fit: Fit | null };

/** As `diagnoseTransfers`, and each transfer is compared with one invoice of the same project (UUIDs) whatever else fits. */
export async function compareTransfers(
  db: Sql,
  transferIds: readonly string[],
  invoice: { projectId: string; id: string },
): Promise<Map<string, Compared>> {
  const [found] = await findSuspects(db, [{ projectId: invoice.projectId, invoiceId: invoice.id }]);
  const compared = new Map<string, Compared>();
  for await (const mismatch of readMismatches(db, transferIds, true)) {
    const { transferId, facts, repeated } = mismatch;
    const others = facts.invoices.filter(({ id }) => id !== invoice.id);
    // In a busy shop it may not be among the invoices that were read.
    const invoices: MismatchFacts['invoices'] = found === undefined ? others : [...others, found];
    const fit = repeated === null ? fitInvoice({ ...facts, invoices }, invoice.id) : null;
    compared.set(transferId, { causes: rank(mismatch), fit });
  }
  return compared;
}

function rank({ facts, repeated }: Pick<Mismatch, 'facts' | 'repeated'>): Cause[] {
  return repeated === null ? rankCauses(facts) : rankDuplicate(facts, repeated);
}

const MAX_AT_ONCE = 500;
/** The most transfers compared with invoices at once: each may have some thousand invoices, and others wait meanwhile. */
const GROUP = 10;
/** Transfers of the same ten minutes are compared with the same newest invoices. */
const WINDOW_MS = 600_000;
/** For a list with more, 200 invoices each would be thousands of rows: then 50 of each are read. */
const MANY_WINDOWS = 10;

/** The facts about a transfer that paid nothing. `repeated` is the paid invoice that a duplicate repeats, else `null`. */
type Mismatch = { transferId: string; facts: MismatchFacts; repeated: Suspect | null };

/**
 * Reads the facts about each of these transfers (UUIDs, at most 500). Those that paid an invoice or do not exist are left out.
 * Throws a RangeError for more than 500.
 */
export async function* readMismatches(
  db: Sql,
  transferIds: readonly string[],
  isList = false,
): AsyncGenerator<Mismatch> {
  if (transferIds.length > MAX_AT_ONCE) {
    throw new RangeError(`at most ${MAX_AT_ONCE} transfers are diagnosed at once, got ${transferIds.length}`);
  }
  const transfers = transferIds.length === 0 ? [] : await findMismatched(db, transferIds);
  if (transfers.length === 0) return;
  const senders = await readSenders(db, transfers);
  const repeated = await readRepeated(db, transfers);
  const isMany = isList && groupByWindow(transfers).length > MANY_WINDOWS;
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

/** A transfer whose sender is looked up, with its project and time. At most 500 at once. */
type SenderQuestion = { id: string; projectId: string; from: string; at: UnixMs };

function parametersOf(questions: readonly SenderQuestion[]): string[][] {
  return [
    questions.map(({ id }) => id),
    questions.map(({ projectId }) => projectId),
    questions.map(({ from }) => from),
    questions.map(({ at }) => new Date(at).toISOString()),
  ];
}

/** How many transfers of one sender are read: a wallet of an exchange sends thousands. */
const SIBLINGS_READ = 500;
const SIBLINGS_KEPT = 20;

/** Other transfers of the same sender to the same project that paid nothing; the newest up to a day after, at most 20 each. */
const findSiblings = rowsOf(
  'mismatch-siblings',
  { transferId: 'uuid', amountMicro: 'numeric', at: 'timestamptz', isUnmatched: 'bool', resolution: 'text?' },
  // The limits stand inside, and what was taken back is left out outside them: so PostgreSQL walks an index up to the limit whatever its
  // statistics say, and a sender of many transfers costs no more than one of few.
  `select q.id as transfer_id, s.amount_micro, s.block_time as at, s.kind = 'unmatched' as is_unmatched,
     (select r.resolution from transfer_resolutions r where r.transfer_id = s.id order by r.id desc limit 1) as resolution
   from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[]) as q (id, project_id, sender, at)
   cross join lateral (
     select id, amount_micro, block_time, kind from (
       select id, amount_micro, block_time, kind, from_address from transfers
       where project_id = q.project_id and left(from_address, 4) = left(q.sender, 4)
         and right(from_address, 4) = right(q.sender, 4) and block_time < q.at + interval '1 day'
       order by block_time desc limit ${SIBLINGS_READ}) newest
     where from_address = q.sender and kind <> 'matched' and id <> q.id and ${stands('newest')}
     limit ${SIBLINGS_KEPT}) s`,
  parametersOf,
);

/** 1 USDT. An address that sent less is not imitated: it is an imitation itself. */
const IMITATED_FROM_MICRO = 1_000_000n;

/**
 * By transfer: an address that its sender resembles by the first 4 and last 4 characters but is not: `own` of the project, else
 * `strange`, which money went to or came from before.
 */
const findResembled = rowsOf(
  'mismatch-resembled',
  { transferId: 'uuid', own: 'address?', strange: 'text?' },
  `select q.id as transfer_id, o.address as own, case when o.address is null then coalesce(
     (select to_address from (
        select to_address, amount_micro, network, tx_id, log_index, correction from outgoing_transfers
        where project_id = q.project_id and left(to_address, 4) = left(q.sender, 4)
          and right(to_address, 4) = right(q.sender, 4) and block_time < q.at
        order by block_time desc limit ${SIBLINGS_READ}) newest
      where to_address <> q.sender and amount_micro >= $5 and ${outgoingStands('newest')} limit 1),
     (select from_address from (
        select id, from_address, amount_micro from transfers
        where project_id = q.project_id and left(from_address, 4) = left(q.sender, 4)
          and right(from_address, 4) = right(q.sender, 4) and block_time < q.at
        order by block_time desc limit ${SIBLINGS_READ}) newest
      where from_address <> q.sender and amount_micro >= $5 and ${stands('newest')} limit 1)) end as strange
   from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[]) as q (id, project_id, sender, at)
   left join lateral (
     select ${addressColumn('a')} as address from addresses a
     where a.project_id = q.project_id and left(a.address, 4) = left(q.sender, 4)
       and right(a.address, 4) = right(q.sender, 4) and a.address <> q.sender limit 1) o on true`,
  (questions: readonly SenderQuestion[]) => [...parametersOf(questions), IMITATED_FROM_MICRO],
);
