import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import { isPayable, POLICIES, type Policy } from '../../domain/policy.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import type { Sql } from '../../store/db/database.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { sealColumn } from '../../store/db/seal.ts';
import { SEALED_INVOICE, SEALED_PAID, SEALED_STATUS } from '../../store/db/sealed-tables.ts';
import { isAsSealed, maybe, micro, type Row, statement, text } from '../../store/db/statement.ts';
import { outgoingStands, payableAfter, stands } from '../../store/ledger/standing.ts';

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
  /** The paid invoice that a duplicate repeats. */
  invoiceId: 'uuid?',
} as const;
/** A transfer that paid nothing, as it is looked into. */
export type MismatchedTransfer = Row<typeof mismatchedShape>;

/** Those of these transfers (UUIDs, at most 500) that came and paid nothing. */
export const findMismatched = rowsOf(
  'mismatch-transfers',
  mismatchedShape,
  `select t.id, t.project_id, t.address_id, t.from_address as "from", ${addressColumn('a')} as "to", t.block_time as at, t.amount_micro, a.policy,
     p.max_surcharge_micro,
     (select true from addresses o where o.project_id = t.project_id and left(o.address, 4) = left(t.from_address, 4)
        and right(o.address, 4) = right(t.from_address, 4) and o.address = t.from_address limit 1) is not null as is_from_ours,
     (select true from outgoing_transfers o where o.project_id = t.project_id and o.to_address = t.from_address
        and o.block_time < t.block_time and ${outgoingStands('o')} limit 1) is not null as is_from_recipient,
     t.invoice_id
   from transfers t join addresses a on a.id = t.address_id join projects p on p.id = t.project_id
   where t.id = any($1::uuid[]) and t.kind <> 'matched' and ${stands('t')}`,
  (ids: readonly string[]) => [ids],
);

const suspectShape = {
  /** An index into the list that was asked about. */
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
/** An invoice that answers the question `question`. */
export type FoundSuspect = Row<typeof suspectShape>;

const PAYABLE_AFTER = payableAfter('i.');
const SUSPECT = `(q.question - 1)::int4 as question, i.id, i.external_id, i.status, i.requested_micro, i.payable_micro, ${addressColumn('a')} as address,
     i.created_at, ${PAYABLE_AFTER} as payable_after, i.expires_at, p.block_time as paid_at, p.from_address as paid_from`;
const WITH_ADDRESS_AND_PAYMENT = `join addresses a on a.id = i.address_id
   left join lateral (select block_time, from_address from transfers where id = i.paid_transfer_id limit 1) p on true`;
const READ_OF_INVOICE =
  'id, external_id, status, requested_micro, payable_micro, address_id, created_at, payable_after, expires_at, paid_transfer_id';

/** Many invoices may stand within one range (900 in a cent). So many are read of each, and so many kept: unpaid and newest first. */
const READ = 1000;
const KEPT = 60;

/** A statement with more would take too much memory; 50 transfers have some 7,000. */
const MAX_QUESTIONS = 20_000;

// A figure as the limit tells PostgreSQL to walk along the index and stop; a parameter lets it collect and sort all that is in
// the range, which may be 90,000.
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

/** The invoices of an address whose payable amounts lie in a range, both ends included; of its 1,000 lowest at most 60. */
export async function findInvoicesInRanges(
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
 * The newest invoices of a project before an id that were not paid; of the `read` newest at most `kept` for each question. Ids rise with
 * time.
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

/** Up to 200 of the 500 newest: two or three hundred open invoices at a time are a busy shop. */
export const findRecentUnpaid = recentUnpaid('mismatch-invoices-recent', 500, 200);
/** Up to 50 of 125. */
export const findFewRecentUnpaid = recentUnpaid('mismatch-invoices-recent-few', 125, 50);

/** A project may have thousands of addresses, and each is one lookup for each transfer. */
const ADDRESSES_ASKED = 200;
const ELSEWHERE_KEPT = 10;

// Only addresses whose policy can have the amount are asked.
/**
 * Invoices of exactly this payable amount at the project's other addresses, retired ones included; at most 10 for each
 * question, of its 200 newest addresses.
 */
export const findInvoicesElsewhere = rowsOf(
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

/** Those of these invoices, of the projects of these transfers (UUIDs), that are not as they were sealed. */
export const findUnsound = answerOf(
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
  // A seal that a row does not need is null.
  (rows) => rows.flatMap(({ id, ...seals }) => (Object.values(seals).includes(false) ? [id] : [])),
);

/** Invoices by their ids, one for each question. */
export const findSuspects = rowsOf(
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
