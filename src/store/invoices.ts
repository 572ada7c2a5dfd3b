import { amountAlone, type WordRange } from '../domain/code-word.ts';
import type { ProjectedInvoice } from '../domain/event.ts';
import type { InvoiceStatus } from '../domain/invoice.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { type Row, statement } from './statement.ts';

/** The columns that the five-field projection is made of. */
const projected = {
  id: 'uuid',
  external_id: 'text',
  status: 'text',
  checkout_token: 'text',
  expires_at: 'timestamptz',
} as const;

function toProjected(row: Row<typeof projected>): ProjectedInvoice {
  return {
    id: row.id,
    externalId: row.external_id,
    status: row.status as InvoiceStatus,
    checkoutToken: row.checkout_token,
    expiresAt: row.expires_at,
  };
}

// One round trip in the common case. The key is checked again inside the statement, so a key that was revoked a moment ago
// creates nothing. `on conflict do nothing` covers every unique constraint: no row back means that one of them held. Whether
// something is free is asked by scalar subqueries, because PostgreSQL may turn `not exists` into a join that reads all invoices
// of the address: it does so as long as it believes the table to be small.
const INSERT = `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
     checkout_token, created_at, expires_at, api_key_id)
   select $2, p.id, p.network, w.address_id, $3, $4, $5, w.word, $6, $7, $7::timestamptz + p.invoice_lifetime_ms * interval '1 millisecond', k.id
   from api_keys k
   join projects p on p.id = k.project_id
   left join allocation_hints h on h.project_id = p.id and h.policy = p.policy and h.from_micro = $9 and h.below_micro = $10
     and h.epoch = p.allocation_epoch`;
const IN_USE =
  'a.project_id = p.id and a.policy = p.policy and a.retired_at is null and a.position > coalesce(h.position, 0)';
const INSERT_END = `where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $7)
   on conflict do nothing
   returning id, external_id, status, checkout_token, expires_at`;

// The words stand in random order, and the first free one is taken: the fuller the address, the more of them are looked up.
const insertTail = statement(
  'invoice-insert-tail',
  projected,
  `${INSERT}
   cross join lateral (
     select a.id as address_id, free.word
     from (select a.id from addresses a where ${IN_USE} and p.policy = 'tail' order by a.position limit 1) a
     cross join lateral (
       select word from unnest($8::int8[]) as word
       where (select i.address_id from invoices i where i.address_id = a.id and i.payable_micro = word) is null
       limit 1) free) w
   ${INSERT_END}`,
);

const insertExact = statement(
  'invoice-insert-exact',
  { ...projected, position: 'int4?' },
  `${INSERT}
   cross join lateral (
     select a.id as address_id, $5::int8 as word
     from addresses a
     where ${IN_USE} and p.policy = 'exact'
       and (select i.address_id from invoices i where i.address_id = a.id and i.payable_micro = $5) is null
     order by a.position offset $8 limit 1) w
   ${INSERT_END}, (select a.position from addresses a where a.id = address_id) as position`,
);

export type NewInvoice = {
  id: string;
  keyId: string;
  idempotencyKey: string;
  externalId: string;
  requestedMicro: MicroUsdt;
  checkoutToken: string;
  now: UnixMs;
};

/**
 * Creates the invoice of a `tail` project with the first of `words` that is free on the first address in use that is not known
 * to be full in the range. `null` if nothing was created: idempotency key or external id taken, none of the words free, no such
 * address, another policy, or the key not valid.
 */
export async function insertTailInvoice(
  db: Sql,
  invoice: NewInvoice,
  words: MicroUsdt[],
  range: WordRange,
): Promise<ProjectedInvoice | null> {
  const [row] = await db.run(insertTail, [...shared(invoice), words, range.fromMicro, range.belowMicro]);
  return row === undefined ? null : toProjected(row);
}

/**
 * Creates the invoice of an `exact` project on the first address in use on which its amount is free, or after `skipped` of those.
 * `null` as with `insertTailInvoice`. `position` is the address's.
 */
export async function insertExactInvoice(
  db: Sql,
  invoice: NewInvoice,
  skipped: number,
): Promise<{ invoice: ProjectedInvoice; position: number } | null> {
  const { fromMicro, belowMicro } = amountAlone(invoice.requestedMicro);
  const [row] = await db.run(insertExact, [...shared(invoice), skipped, fromMicro, belowMicro]);
  return row === undefined ? null : { invoice: toProjected(row), position: row.position ?? 0 };
}

function shared(invoice: NewInvoice) {
  const { keyId, id, idempotencyKey, externalId, requestedMicro, checkoutToken, now } = invoice;
  return [keyId, id, idempotencyKey, externalId, requestedMicro, checkoutToken, new Date(now)] as const;
}

const selectReserved = statement(
  'invoice-select-reserved',
  { ...projected, requested_micro: 'int8', has_key: 'bool', has_external_id: 'bool' },
  `select id, external_id, status, checkout_token, expires_at, requested_micro,
     idempotency_key = $2 as has_key, external_id = $3 as has_external_id
   from invoices where project_id = $1 and (idempotency_key = $2 or external_id = $3) limit 2`,
);

export type ReservedInvoice = ProjectedInvoice & { requestedMicro: MicroUsdt; hasKey: boolean; hasExternalId: boolean };

/** The invoices of the project that already hold this idempotency key or this external id: two at most. */
export async function findReserved(
  db: Sql,
  projectId: string,
  idempotencyKey: string,
  externalId: string,
): Promise<ReservedInvoice[]> {
  const rows = await db.run(selectReserved, [projectId, idempotencyKey, externalId]);
  return rows.map((row) => ({
    ...toProjected(row),
    requestedMicro: row.requested_micro as MicroUsdt,
    hasKey: row.has_key,
    hasExternalId: row.has_external_id,
  }));
}

const selectOne = statement(
  'invoice-select',
  { id: 'uuid?', external_id: 'text?', status: 'text?', checkout_token: 'text?', expires_at: 'timestamptz?' },
  `select i.id, i.external_id, i.status, i.checkout_token, i.expires_at
   from api_keys k left join invoices i on i.project_id = k.project_id and i.id = $2
   where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $3)`,
);

export type FoundInvoice = { kind: 'found'; invoice: ProjectedInvoice } | { kind: 'none' } | { kind: 'key-not-valid' };

/** The invoice with this id if it belongs to the project of the key; the key is checked in the same statement. */
export async function findInvoice(db: Sql, keyId: string, id: string, now: UnixMs): Promise<FoundInvoice> {
  return found(await db.run(selectOne, [keyId, id, new Date(now)]));
}

const selectByExternalId = statement(
  'invoice-select-by-external-id',
  selectOne.columns,
  `select i.id, i.external_id, i.status, i.checkout_token, i.expires_at
   from api_keys k left join invoices i on i.project_id = k.project_id and i.external_id = $2
   where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $3)`,
);

/** As `findInvoice`, by the integrator's own id. */
export async function findInvoiceByExternalId(
  db: Sql,
  keyId: string,
  externalId: string,
  now: UnixMs,
): Promise<FoundInvoice> {
  return found(await db.run(selectByExternalId, [keyId, externalId, new Date(now)]));
}

function found(rows: Row<typeof selectOne.columns>[]): FoundInvoice {
  const [row] = rows;
  return row === undefined ? { kind: 'key-not-valid' } : toFound(row);
}

/** Reads a row of a valid key. A left join gives all columns of an invoice, or none. */
export function toFound(row: Row<typeof selectOne.columns>): FoundInvoice {
  return row.id === null ? { kind: 'none' } : { kind: 'found', invoice: toProjected(row as Row<typeof projected>) };
}
