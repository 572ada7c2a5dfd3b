import { amountAlone, type WordRange } from '../../domain/code-word.ts';
import type { ProjectedInvoice } from '../../domain/event.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { listColumns, type Row, type Statement, statement } from '../db/statement.ts';
import { projected } from './invoices.ts';

export type NewInvoice = {
  id: string;
  keyId: string;
  idempotencyKey: string;
  externalId: string;
  requestedMicro: MicroUsdt;
  checkoutToken: string;
  now: UnixMs;
};

/** An invoice of a `tail` project: it gets the first of `words` that is free on the first address in use that is not known to be full in the range. */
export type TailInvoice = NewInvoice & { words: readonly MicroUsdt[]; range: WordRange };

/** An invoice of an `exact` project: it gets the first address in use on which its amount is free, or after `skipped` of those. */
export type ExactInvoice = NewInvoice & { skipped: number };

/** What both statements of a policy take, in this order: one invoice as parameters, or many as arrays. */
const FIELDS = [
  ...['key_id uuid', 'id uuid', 'idempotency_key text', 'external_id text', 'requested_micro int8'],
  ...['checkout_token text', 'created_at timestamptz', 'from_micro int8', 'below_micro int8', 'choice text'],
].map((field) => field.split(' ') as [string, string]);
const ALONE = `(select ${FIELDS.map(([name, type], i) => `$${i + 1}::${type} as ${name}`).join(', ')}) m`;
const MANY = `unnest(${FIELDS.map(([, type], i) => `$${i + 1}::${type}[]`).join(', ')}) m (${FIELDS.map(([name]) => name).join(', ')})`;

// Whether something is free is asked by scalar subqueries, because PostgreSQL may turn `not exists` into a join that reads all invoices
// of the address: it does so as long as it believes the table to be small.
const IN_USE =
  'a.project_id = p.id and a.policy = p.policy and a.retired_at is null and a.position > coalesce(h.position, 0)';
const isFree = (word: string) =>
  `(select i.address_id from invoices i where i.address_id = a.id and i.payable_micro = ${word}) is null`;

// The words stand in random order, and the first free one is taken: the fuller the address, the more of them are looked up.
const TAIL = `select a.id as address_id, free.word
     from (select a.id from addresses a where ${IN_USE} and p.policy = 'tail' order by a.position limit 1) a
     cross join lateral (select word from unnest(m.choice::int8[]) as word where ${isFree('word')} limit 1) free`;
const EXACT = `select a.id as address_id, m.requested_micro as word from addresses a
     where ${IN_USE} and p.policy = 'exact' and ${isFree('m.requested_micro')}
     order by a.position offset m.choice::int4 limit 1`;

// A statement of many waits for no other of many but at an amount, and takes amounts in one order, so no two wait for each other: who
// finds its idempotency key or external id in use by another gets no row. A statement of one holds nothing while it waits.
const KEPT_APART = `where (select set_config('lock_timeout', '1s', true)) is not null
     and pg_try_advisory_xact_lock(hashtextextended(p.id || ' key ' || m.idempotency_key, 0))
     and pg_try_advisory_xact_lock(hashtextextended(p.id || ' order ' || m.external_id, 0))
   order by w.address_id, w.word`;

// The key is checked again inside the statement, so a key that was revoked a moment ago creates nothing. `on conflict do nothing` covers
// every unique constraint, also between the rows of one statement: no row back means that one of them held. The limits make PostgreSQL
// look up each key and hint by its own index, whatever it believes of the tables, and before it takes locks.
const insertText = (
  members: string,
  place: string,
  more = '',
) => `insert into invoices (id, project_id, network, address_id,
     idempotency_key, external_id, requested_micro, payable_micro, checkout_token, created_at, expires_at, api_key_id)
   select m.id, p.id, p.network, w.address_id, m.idempotency_key, m.external_id, m.requested_micro, w.word, m.checkout_token,
     m.created_at, m.created_at + p.invoice_lifetime_ms * interval '1 millisecond', m.key_id
   from ${members}
   cross join lateral (
     select p.id, p.network, p.policy, p.invoice_lifetime_ms, p.allocation_epoch from api_keys k join projects p on p.id = k.project_id
     where k.id = m.key_id and k.revoked_at is null and (k.expires_at is null or k.expires_at > m.created_at) limit 1) p
   left join lateral (
     select h.position from allocation_hints h
     where h.project_id = p.id and h.policy = p.policy and h.from_micro = m.from_micro and h.below_micro = m.below_micro
       and h.epoch = p.allocation_epoch limit 1) h on true
   cross join lateral (${place}) w
   ${more}
   on conflict do nothing
   returning`;
const TAIL_ROW = listColumns(projected);
const withPosition = { ...projected, position: 'int4' } as const;
const EXACT_ROW = `${TAIL_ROW}, (select a.position from addresses a where a.id = address_id) as position`;

const tail = {
  alone: statement('invoice-insert-tail', projected, `${insertText(ALONE, TAIL)} ${TAIL_ROW}`),
  many: statement('invoice-insert-tail-many', projected, `${insertText(MANY, TAIL, KEPT_APART)} ${TAIL_ROW}`),
};
const exact = {
  alone: statement('invoice-insert-exact', withPosition, `${insertText(ALONE, EXACT)} ${EXACT_ROW}`),
  many: statement('invoice-insert-exact-many', withPosition, `${insertText(MANY, EXACT, KEPT_APART)} ${EXACT_ROW}`),
};

/** The rows of invoices in their order; `null` where nothing was created. */
type Inserted<Shown> = Promise<(Shown | null)[]>;

/**
 * Creates invoices in one statement: each as if it were alone, or not at all. `null`: idempotency key or external id taken, or in use at
 * this moment; none of the words free, no such address, another policy, or the key not valid. An error is that of all: none is created.
 */
export function insertTailInvoices(db: Sql, invoices: readonly TailInvoice[]): Inserted<ProjectedInvoice> {
  return insert(
    db,
    tail,
    invoices.map((each) => fieldsOf(each, each.range, `{${each.words.join(',')}}`)),
  );
}

/** The same under the policy `exact`. `position` is the address's. */
export function insertExactInvoices(
  db: Sql,
  invoices: readonly ExactInvoice[],
): Inserted<ProjectedInvoice & { position: number }> {
  return insert(
    db,
    exact,
    invoices.map((each) => fieldsOf(each, amountAlone(each.requestedMicro), String(each.skipped))),
  );
}

type Fields = readonly (string | bigint)[];

function fieldsOf(invoice: NewInvoice, { fromMicro, belowMicro }: WordRange, choice: string): Fields {
  const { keyId, id, idempotencyKey, externalId, requestedMicro, checkoutToken, now } = invoice;
  return [
    ...[keyId, id, idempotencyKey, externalId, requestedMicro],
    ...[checkoutToken, toIso(now), fromMicro, belowMicro, choice],
  ];
}

async function insert<Shown extends typeof projected>(
  db: Sql,
  statements: Record<'alone' | 'many', Statement<Shown>>,
  invoices: readonly Fields[],
): Inserted<Row<Shown>> {
  const [only] = invoices;
  if (only !== undefined && invoices.length === 1) return [(await db.run(statements.alone, only))[0] ?? null];
  const columns = FIELDS.map((_, index) => invoices.map((fields) => fields[index] ?? null));
  const created = new Map<unknown, Row<Shown>>((await db.run(statements.many, columns)).map((row) => [row.id, row]));
  return invoices.map(([, id]) => created.get(id) ?? null);
}
