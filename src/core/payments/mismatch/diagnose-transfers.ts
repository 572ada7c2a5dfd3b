import { setImmediate } from 'node:timers/promises';
import { firstIdOf } from '../../domain/ids.ts';
import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { MismatchFacts, Sender, Suspect } from '../../domain/mismatch/finding.ts';
import { type Fit, fitInvoice, rankCauses, rankDuplicate } from '../../domain/mismatch/rank-causes.ts';
import { searchRanges } from '../../domain/mismatch/search-ranges.ts';
import type { Cause } from '../../domain/mismatch.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import { isPayable, POLICIES, type Policy } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import type { Sql } from '../../store/db/database.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { sealColumn } from '../../store/db/seal.ts';
import { SEALED_INVOICE, SEALED_PAID, SEALED_STATUS } from '../../store/db/sealed-tables.ts';
import { isAsSealed, maybe, micro, type Row, statement, text } from '../../store/db/statement.ts';
import { notAnnulled, outgoingNotAnnulled, payableAfter, resolutionColumn } from '../../store/ledger/annulments.ts';

/**
 * After this many rounds, no invoice is named. An attacker who forges many well-fitting invoices can therefore hide the real ones, but
 * can't get a forged invoice named.
 */
const MOST_ROUNDS = 5;

/**
 * For each of these transfers (UUIDs, at most 500), returns the likely reasons why it's unmatched or a duplicate: best first, never empty.
 * Invoices with a wrong seal are never named. `isList` is for a page or table with many transfers: each transfer is then compared with
 * fewer orders. Transfers that paid an invoice or don't exist are left out. Only reads. Throws a RangeError for more than 500 transfers.
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

/**
 * The likely causes, and how the transfer fits the given invoice. `fit` is `null` if the transfer hardly fits, or is a duplicate of another
 * payment.
 */
export type Compared = { causes: Cause[]; fit: Fit | null };

/**
 * Like `diagnoseTransfers`, but also compares each transfer with one given invoice of the same project (UUIDs), whether or not others fit
 * better.
 */
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
    // In a busy shop, this invoice may not be among those that were read.
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
/**
 * Maximum number of transfers that are compared with invoices at a time, because other work has to wait in the meantime. Each transfer may
 * be compared with about a thousand invoices.
 */
const GROUP = 10;
/** Transfers within the same ten minutes are compared with the same newest invoices. */
const WINDOW_MS = 600_000;
/** With more windows than this, reading 200 invoices for each would return thousands of rows, so only 50 are read for each. */
const MANY_WINDOWS = 10;

/** The facts about an unmatched or duplicate transfer. `repeated` is the invoice that a duplicate pays again, otherwise `null`. */
type Mismatch = { transferId: string; facts: MismatchFacts; repeated: Suspect | null };

/**
 * Yields the facts about each of these transfers (UUIDs, at most 500). Transfers that paid an invoice or don't exist are left out. Throws a
 * RangeError for more than 500 transfers.
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
      // It can take ten milliseconds to process a transfer, so let requests be served in between.
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
    // Refunded money and the merchant's own money aren't part of a payment.
    const isPart = resolution === null || resolution === 'fulfilled-manually';
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

/**
 * Reads the candidate invoices for each transfer: those with a similar amount, those with exactly this amount at another address, and the
 * newest unpaid ones.
 */
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

/** Many transfers of the same amount, such as dust, need the same ranges. */
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

/** A transfer whose sender is to be looked up, with its project and time. A call accepts at most 500 of them. */
type SenderQuestion = { id: string; projectId: string; from: string; at: UnixMs };

function parametersOf(questions: readonly SenderQuestion[]): string[][] {
  return [
    questions.map(({ id }) => id),
    questions.map(({ projectId }) => projectId),
    questions.map(({ from }) => from),
    questions.map(({ at }) => new Date(at).toISOString()),
  ];
}

/** Maximum number of transfers to read per sender, because an exchange's wallet may have sent thousands. */
const SIBLINGS_READ = 500;
const SIBLINGS_KEPT = 20;

/**
 * Returns other unmatched or duplicate transfers from the same sender to the same project: the newest ones up to a day later, at most 20
 * each.
 */
const findSiblings = rowsOf(
  'mismatch-siblings',
  { transferId: 'uuid', amountMicro: 'numeric', at: 'timestamptz', isUnmatched: 'bool', resolution: 'text?' },
  // The limits are in the inner query, and annulled transfers are filtered outside it. This way, PostgreSQL walks an index up to the limit
  // whatever its statistics say, and a sender with many transfers costs no more than a sender with few.
  `select q.id as transfer_id, s.amount_micro, s.block_time as at, s.kind = 'unmatched' as is_unmatched,
     (select ${resolutionColumn('r.')} from transfer_resolutions r where r.transfer_id = s.id order by r.id desc limit 1) as resolution
   from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[]) as q (id, project_id, sender, at)
   cross join lateral (
     select id, amount_micro, block_time, kind from (
       select id, amount_micro, block_time, kind, from_address from transfers
       where project_id = q.project_id and left(from_address, 4) = left(q.sender, 4)
         and right(from_address, 4) = right(q.sender, 4) and block_time < q.at + interval '1 day'
       order by block_time desc limit ${SIBLINGS_READ}) newest
     where from_address = q.sender and kind <> 'matched' and id <> q.id and ${notAnnulled('newest')}
     limit ${SIBLINGS_KEPT}) s`,
  parametersOf,
);

/** 1 USDT. Poisoners don't imitate an address that has sent less than this; such an address is itself an imitation. */
const IMITATED_FROM_MICRO = 1_000_000n;

/**
 * Returns, for each transfer, another address that its sender resembles, because the first 4 and last 4 characters are the same. `own` is
 * one of the project's addresses. `strange` is an earlier recipient or sender, used only if there's no `own`.
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
      where to_address <> q.sender and amount_micro >= $5 and ${outgoingNotAnnulled('newest')} limit 1),
     (select from_address from (
        select id, from_address, amount_micro from transfers
        where project_id = q.project_id and left(from_address, 4) = left(q.sender, 4)
          and right(from_address, 4) = right(q.sender, 4) and block_time < q.at
        order by block_time desc limit ${SIBLINGS_READ}) newest
      where from_address <> q.sender and amount_micro >= $5 and ${notAnnulled('newest')} limit 1)) end as strange
   from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[]) as q (id, project_id, sender, at)
   left join lateral (
     select ${addressColumn('a')} as address from addresses a
     where a.project_id = q.project_id and left(a.address, 4) = left(q.sender, 4)
       and right(a.address, 4) = right(q.sender, 4) and a.address <> q.sender limit 1) o on true`,
  (questions: readonly SenderQuestion[]) => [...parametersOf(questions), IMITATED_FROM_MICRO],
);

const mismatchedShape = {
  id: 'uuid',
  projectId: 'uuid',
  addressId: 'uuid',
  from: 'text',
  to: 'address',
  at: 'timestamptz',
  amountMicro: 'numeric',
  policy: text<Policy>(),
  maxSurchargeMicro: 'int8',
  isFromOurs: 'bool',
  isFromRecipient: 'bool',
  /** The paid invoice that a duplicate pays again. */
  invoiceId: 'uuid?',
} as const;
type MismatchedTransfer = Row<typeof mismatchedShape>;

/** Returns the transfers (UUIDs, at most 500) that are unmatched or duplicates. */
const findMismatched = rowsOf(
  'mismatch-transfers',
  mismatchedShape,
  `select t.id, t.project_id, t.address_id, t.from_address as "from", ${addressColumn('a')} as "to", t.block_time as at, t.amount_micro, a.policy,
     p.max_surcharge_micro,
     (select true from addresses o where o.project_id = t.project_id and left(o.address, 4) = left(t.from_address, 4)
        and right(o.address, 4) = right(t.from_address, 4) and o.address = t.from_address limit 1) is not null as is_from_ours,
     (select true from outgoing_transfers o where o.project_id = t.project_id and o.to_address = t.from_address
        and o.block_time < t.block_time and ${outgoingNotAnnulled('o')} limit 1) is not null as is_from_recipient,
     t.invoice_id
   from transfers t join addresses a on a.id = t.address_id join projects p on p.id = t.project_id
   where t.id = any($1::uuid[]) and t.kind <> 'matched' and ${notAnnulled('t')}`,
  (ids: readonly string[]) => [ids],
);

const suspectShape = {
  /** The index of the question in the list. */
  question: 'int4',
  id: 'uuid',
  externalId: 'text',
  status: text<InvoiceStatus>(),
  requestedMicro: micro<MicroUsdt>('int8'),
  payableMicro: micro<MicroUsdt>('int8'),
  address: 'address',
  createdAt: 'timestamptz',
  payableAfter: 'timestamptz',
  expiresAt: 'timestamptz',
  paid: maybe({ at: 'timestamptz', from: 'text' }),
} as const;
/** An invoice that answers the question with this index. */
type FoundSuspect = Row<typeof suspectShape>;

const PAYABLE_AFTER = payableAfter('i.');
const SUSPECT = `(q.question - 1)::int4 as question, i.id, i.external_id, i.status, i.requested_micro, i.payable_micro, ${addressColumn('a')} as address,
     i.created_at, ${PAYABLE_AFTER} as payable_after, i.expires_at, p.block_time as paid_at, p.from_address as paid_from`;
const WITH_ADDRESS_AND_PAYMENT = `join addresses a on a.id = i.address_id
   left join lateral (select block_time, from_address from transfers where id = i.paid_transfer_id and ${notAnnulled('transfers')} limit 1) p on true`;
const READ_OF_INVOICE =
  'id, external_id, status, requested_micro, payable_micro, address_id, created_at, payable_after, expires_at, paid_transfer_id';

/**
 * Many invoices may lie within one range (900 in a cent). `READ` of them are read per range, and `KEPT` of these are kept: unpaid ones
 * first, and the newest first among them.
 */
const READ = 1000;
const KEPT = 60;

/** Larger statements would need too much memory. 50 transfers have about 7,000 questions. */
const MAX_QUESTIONS = 20_000;

// A literal limit makes PostgreSQL walk the index and stop early. With a parameter, it may collect and sort the whole range, which can be
// 90,000 rows.
const selectInRanges = statement(
  'mismatch-invoices-in-ranges',
  suspectShape,
  `select ${SUSPECT}
   from unnest($1::uuid[], $2::int8[], $3::int8[]) with ordinality as q (address_id, low, high, question)
   cross join lateral (
     select ${READ_OF_INVOICE}
     from (
       select ${READ_OF_INVOICE}
       from invoices where address_id = q.address_id and payable_micro >= q.low and payable_micro <= q.high
       order by payable_micro limit ${READ}) lowest
     order by status = 'PAID', id desc limit ${KEPT}) i
   ${WITH_ADDRESS_AND_PAYMENT}`,
);

/** Returns the invoices at an address whose payable amounts lie within a range, both ends inclusive: at most 60, from the 1,000 lowest. */
async function findInvoicesInRanges(
  db: Sql,
  questions: readonly { addressId: string; low: bigint; high: bigint }[],
): Promise<FoundSuspect[]> {
  const found: FoundSuspect[] = [];
  for (let first = 0; first < questions.length; first += MAX_QUESTIONS) {
    const asked = questions.slice(first, first + MAX_QUESTIONS);
    const rows = await db.run(selectInRanges, [
      asked.map(({ addressId }) => addressId),
      asked.map(({ low }) => low),
      asked.map(({ high }) => high),
    ]);
    for (const row of rows) found.push({ ...row, question: first + row.question });
  }
  return found;
}

/**
 * Returns a project's newest unpaid invoices before an id: for each question, at most `kept` of the `read` newest. Ids increase with time.
 */
const recentUnpaid = (name: string, read: number, kept: number) =>
  rowsOf(
    name,
    suspectShape,
    `select ${SUSPECT}
   from unnest($1::uuid[], $2::uuid[]) with ordinality as q (project_id, below_id, question)
   cross join lateral (
     select ${READ_OF_INVOICE}
     from (
       select ${READ_OF_INVOICE}
       from invoices where project_id = q.project_id and id < q.below_id order by id desc limit ${read}) newest
     where status <> 'PAID' limit ${kept}) i
   ${WITH_ADDRESS_AND_PAYMENT}`,
    (questions: readonly { projectId: string; belowId: string }[]) => [
      questions.map(({ projectId }) => projectId),
      questions.map(({ belowId }) => belowId),
    ],
  );

/** Returns up to 200 of the 500 newest invoices, because a busy shop has two or three hundred open invoices at a time. */
export const findRecentUnpaid = recentUnpaid('mismatch-invoices-recent', 500, 200);
/** Returns up to 50 of the 125 newest invoices. */
export const findFewRecentUnpaid = recentUnpaid('mismatch-invoices-recent-few', 125, 50);

/** A project may have thousands of addresses, and each of them costs one lookup per transfer. */
const ADDRESSES_ASKED = 200;
const ELSEWHERE_KEPT = 10;

// Searches only addresses whose policy allows the amount.
/**
 * Returns invoices with exactly this payable amount at the project's other addresses, including retired ones: at most 10 per question, at
 * the 200 newest addresses.
 */
const findInvoicesElsewhere = rowsOf(
  'mismatch-invoices-elsewhere',
  suspectShape,
  `select ${SUSPECT}
   from unnest($1::uuid[], $2::uuid[], $3::int8[], $4::text[]) with ordinality
     as q (project_id, address_id, amount_micro, policies, question)
   cross join lateral (
     select i.* from (
       select id from addresses where project_id = q.project_id and policy = any(string_to_array(q.policies, ' '))
       order by position desc limit ${ADDRESSES_ASKED}) o
     cross join lateral (
       select ${READ_OF_INVOICE}
       from invoices where address_id = o.id and payable_micro = q.amount_micro limit 1) i
     where o.id <> q.address_id limit ${ELSEWHERE_KEPT}) i
   ${WITH_ADDRESS_AND_PAYMENT}`,
  (questions: readonly { projectId: string; addressId: string; amountMicro: bigint }[]) => [
    questions.map(({ projectId }) => projectId),
    questions.map(({ addressId }) => addressId),
    questions.map(({ amountMicro }) => amountMicro),
    questions.map(({ amountMicro }) => POLICIES.filter((policy) => isPayable(policy, amountMicro)).join(' ')),
  ],
);

/** Returns the invoices with a wrong seal, out of the given invoices in the projects of the given transfers (UUIDs). */
const findUnsound = answerOf(
  'mismatch-invoices-unsound',
  {
    ...{ id: 'uuid', isSound: isAsSealed(SEALED_INVOICE) },
    ...{ isPaidSound: isAsSealed(SEALED_PAID), isStatusSound: isAsSealed(SEALED_STATUS) },
  },
  `select i.id, ${sealColumn(SEALED_INVOICE, 'i.')} as is_sound, ${sealColumn(SEALED_PAID, 'i.')} as is_paid_sound,
     ${sealColumn(SEALED_STATUS, 'i.')} as is_status_sound
   from (select distinct project_id from transfers where id = any($1::uuid[])) t
   join invoices i on i.project_id = t.project_id and i.id = any($2::uuid[])`,
  (transferIds: readonly string[], ids: readonly string[]) => [transferIds, ids],
  // The value is null if a row doesn't need the seal.
  (rows) => rows.flatMap(({ id, ...seals }) => (Object.values(seals).includes(false) ? [id] : [])),
);

/** Returns invoices by their ids, one for each question. */
const findSuspects = rowsOf(
  'mismatch-invoices-by-ids',
  suspectShape,
  `select ${SUSPECT}
   from unnest($1::uuid[], $2::uuid[]) with ordinality as q (project_id, invoice_id, question)
   cross join lateral (
     select ${READ_OF_INVOICE}
     from invoices where project_id = q.project_id and id = q.invoice_id limit 1) i
   ${WITH_ADDRESS_AND_PAYMENT}`,
  (questions: readonly { projectId: string; invoiceId: string }[]) => [
    questions.map(({ projectId }) => projectId),
    questions.map(({ invoiceId }) => invoiceId),
  ],
);
