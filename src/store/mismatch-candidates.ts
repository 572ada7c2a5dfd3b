import { isCodeWord } from '../domain/code-word.ts';
import type { InvoiceStatus } from '../domain/invoice.ts';
import type { Suspect } from '../domain/mismatch/facts.ts';
import { microUsdt } from '../domain/money.ts';
import type { Policy } from '../domain/policy.ts';
import type { UnixMs } from '../domain/time.ts';
import { addressColumn } from './address-column.ts';
import type { Sql } from './database.ts';
import { outgoingStands, stands } from './standing.ts';
import { type Row, statement } from './statement.ts';

/** A transfer that paid nothing, as it is looked into. `invoiceId` is the paid invoice that a duplicate repeats. */
export type MismatchedTransfer = {
  id: string;
  projectId: string;
  addressId: string;
  from: string;
  to: string;
  at: UnixMs;
  amountMicro: bigint;
  policy: Policy;
  maxSurchargeMicro: bigint;
  isFromOurs: boolean;
  isFromRecipient: boolean;
  invoiceId: string | null;
};

const selectTransfers = statement(
  'mismatch-transfers',
  {
    id: 'uuid',
    project_id: 'uuid',
    address_id: 'uuid',
    from_address: 'text',
    address: 'address',
    block_time: 'timestamptz',
    amount_micro: 'numeric',
    policy: 'text',
    max_surcharge_micro: 'int8',
    is_from_ours: 'bool',
    is_from_recipient: 'bool',
    invoice_id: 'uuid?',
  },
  `select t.id, t.project_id, t.address_id, t.from_address, ${addressColumn('a')} as address, t.block_time, t.amount_micro, a.policy,
     p.max_surcharge_micro,
     (select true from addresses o where o.project_id = t.project_id and left(o.address, 4) = left(t.from_address, 4)
        and right(o.address, 4) = right(t.from_address, 4) and o.address = t.from_address limit 1) is not null as is_from_ours,
     (select true from outgoing_transfers o where o.project_id = t.project_id and o.to_address = t.from_address
        and o.block_time < t.block_time and ${outgoingStands('o')} limit 1) is not null as is_from_recipient,
     t.invoice_id
   from transfers t join addresses a on a.id = t.address_id join projects p on p.id = t.project_id
   where t.id = any($1::uuid[]) and t.kind <> 'matched' and ${stands('t')}`,
);

/** Those of these transfers (UUIDs, at most 500) that came and paid nothing. */
export async function findMismatched(db: Sql, ids: readonly string[]): Promise<MismatchedTransfer[]> {
  const rows = await db.run(selectTransfers, [ids]);
  return rows.map((row) => ({
    id: row.id,
    projectId: row.project_id,
    addressId: row.address_id,
    from: row.from_address,
    to: row.address,
    at: row.block_time,
    amountMicro: row.amount_micro,
    policy: row.policy as Policy,
    maxSurchargeMicro: row.max_surcharge_micro,
    isFromOurs: row.is_from_ours,
    isFromRecipient: row.is_from_recipient,
    invoiceId: row.invoice_id,
  }));
}

const suspectColumns = {
  question: 'int4',
  id: 'uuid',
  external_id: 'text',
  status: 'text',
  requested_micro: 'int8',
  payable_micro: 'int8',
  address: 'address',
  created_at: 'timestamptz',
  expires_at: 'timestamptz',
  paid_at: 'timestamptz?',
  paid_from: 'text?',
} as const;
const SUSPECT = `q.question::int4 as question, i.id, i.external_id, i.status, i.requested_micro, i.payable_micro, ${addressColumn('a')} as address,
     i.created_at, i.expires_at, p.block_time as paid_at, p.from_address as paid_from`;
const WITH_ADDRESS_AND_PAYMENT = `join addresses a on a.id = i.address_id
   left join lateral (select block_time, from_address from transfers where id = i.paid_transfer_id limit 1) p on true`;

/** Invoices that answer question `question`: an index into the list that was asked about. */
export type FoundSuspect = { question: number; suspect: Suspect };

function toFound(row: Row<typeof suspectColumns>): FoundSuspect {
  const suspect = {
    id: row.id,
    externalId: row.external_id,
    status: row.status as InvoiceStatus,
    requestedMicro: microUsdt(row.requested_micro),
    payableMicro: microUsdt(row.payable_micro),
    address: row.address,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    paid: row.paid_at === null || row.paid_from === null ? null : { at: row.paid_at, from: row.paid_from },
  };
  return { question: row.question - 1, suspect };
}

/** Many invoices may stand within one range (900 in a cent). So many are read of each, and so many kept: unpaid and newest first. */
const READ = 1000;
const KEPT = 60;

/** A statement with more would take too much memory; 50 transfers have some 7,000. */
const MAX_QUESTIONS = 20_000;

// A figure as the limit tells PostgreSQL to walk along the index and stop; a parameter lets it collect and sort all that is in
// the range, which may be 90,000.
const selectInRanges = statement(
  'mismatch-invoices-in-ranges',
  suspectColumns,
  `select ${SUSPECT}
   from unnest($1::uuid[], $2::int8[], $3::int8[]) with ordinality as q (address_id, low, high, question)
   cross join lateral (
     select id, external_id, status, requested_micro, payable_micro, address_id, created_at, expires_at, paid_transfer_id
     from (
       select id, external_id, status, requested_micro, payable_micro, address_id, created_at, expires_at, paid_transfer_id
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
    for (const row of rows) {
      const { question, suspect } = toFound(row);
      found.push({ question: first + question, suspect });
    }
  }
  return found;
}

/** Two or three hundred open invoices at a time are a busy shop. */
const RECENT_READ = 500;
const RECENT_KEPT = 200;

const selectRecent = statement(
  'mismatch-invoices-recent',
  suspectColumns,
  `select ${SUSPECT}
   from unnest($1::uuid[], $2::uuid[]) with ordinality as q (project_id, below_id, question)
   cross join lateral (
     select id, external_id, status, requested_micro, payable_micro, address_id, created_at, expires_at, paid_transfer_id
     from (
       select id, external_id, status, requested_micro, payable_micro, address_id, created_at, expires_at, paid_transfer_id
       from invoices where project_id = q.project_id and id < q.below_id order by id desc limit ${RECENT_READ}) newest
     where status <> 'PAID' limit ${RECENT_KEPT}) i
   ${WITH_ADDRESS_AND_PAYMENT}`,
);

/** The newest invoices of a project before an id that were not paid; at most 200 for each question. Ids rise with time. */
export async function findRecentUnpaid(
  db: Sql,
  questions: readonly { projectId: string; belowId: string }[],
): Promise<FoundSuspect[]> {
  const rows = await db.run(selectRecent, [
    questions.map(({ projectId }) => projectId),
    questions.map(({ belowId }) => belowId),
  ]);
  return rows.map(toFound);
}

/** A project may have thousands of addresses, and each is one lookup for each transfer. */
const ADDRESSES_ASKED = 200;
const ELSEWHERE_KEPT = 10;

// Where the policy is `tail`, only code words are asked for.
const selectElsewhere = statement(
  'mismatch-invoices-elsewhere',
  suspectColumns,
  `select ${SUSPECT}
   from unnest($1::uuid[], $2::uuid[], $3::int8[], $4::bool[]) with ordinality
     as q (project_id, address_id, amount_micro, is_word, question)
   cross join lateral (
     select i.* from (
       select id from addresses where project_id = q.project_id and (policy = 'exact' or q.is_word)
       order by position desc limit ${ADDRESSES_ASKED}) o
     cross join lateral (
       select id, external_id, status, requested_micro, payable_micro, address_id, created_at, expires_at, paid_transfer_id
       from invoices where address_id = o.id and payable_micro = q.amount_micro limit 1) i
     where o.id <> q.address_id limit ${ELSEWHERE_KEPT}) i
   ${WITH_ADDRESS_AND_PAYMENT}`,
);

/**
 * Invoices of exactly this payable amount at the project's other addresses, retired ones included; at most 10 for each
 * question, of its 200 newest addresses.
 */
export async function findInvoicesElsewhere(
  db: Sql,
  questions: readonly { projectId: string; addressId: string; amountMicro: bigint }[],
): Promise<FoundSuspect[]> {
  const rows = await db.run(selectElsewhere, [
    questions.map(({ projectId }) => projectId),
    questions.map(({ addressId }) => addressId),
    questions.map(({ amountMicro }) => amountMicro),
    questions.map(({ amountMicro }) => String(isCodeWord(amountMicro))),
  ]);
  return rows.map(toFound);
}

const selectByIds = statement(
  'mismatch-invoices-by-ids',
  suspectColumns,
  `select ${SUSPECT}
   from unnest($1::uuid[], $2::uuid[]) with ordinality as q (project_id, invoice_id, question)
   cross join lateral (
     select id, external_id, status, requested_micro, payable_micro, address_id, created_at, expires_at, paid_transfer_id
     from invoices where project_id = q.project_id and id = q.invoice_id limit 1) i
   ${WITH_ADDRESS_AND_PAYMENT}`,
);

/** Invoices by their ids, one for each question. */
export async function findSuspects(
  db: Sql,
  questions: readonly { projectId: string; invoiceId: string }[],
): Promise<FoundSuspect[]> {
  const rows = await db.run(selectByIds, [
    questions.map(({ projectId }) => projectId),
    questions.map(({ invoiceId }) => invoiceId),
  ]);
  return rows.map(toFound);
}
