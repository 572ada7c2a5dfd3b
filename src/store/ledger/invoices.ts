import { amountAlone, type WordRange } from '../../domain/code-word.ts';
import type { ProjectedInvoice } from '../../domain/event.ts';
import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { UnixMs } from '../../domain/time.ts';
import { answerOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { listColumns, maybe, micro, type Row, text } from '../db/statement.ts';

/** The five-field projection is made of these. */
export const projected = {
  id: 'uuid',
  externalId: 'text',
  status: text<InvoiceStatus>(),
  checkoutToken: 'text',
  expiresAt: 'timestamptz',
} as const;

// It is one round trip in the common case. The key is checked again inside the statement, so a key that was revoked a moment ago
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
   returning ${listColumns(projected)}`;

export type NewInvoice = {
  id: string;
  keyId: string;
  idempotencyKey: string;
  externalId: string;
  requestedMicro: MicroUsdt;
  checkoutToken: string;
  now: UnixMs;
};

// The words stand in random order, and the first free one is taken: the fuller the address, the more of them are looked up.
/**
 * Creates the invoice of a `tail` project with the first of `words` that is free on the first address in use that is not known
 * to be full in the range. `null` if nothing was created: idempotency key or external id taken, none of the words free, no such
 * address, another policy, or the key not valid.
 */
export const insertTailInvoice = rowOf(
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
  (invoice: NewInvoice, words: MicroUsdt[], range: WordRange) => [
    ...shared(invoice),
    words,
    range.fromMicro,
    range.belowMicro,
  ],
);

/**
 * Creates the invoice of an `exact` project on the first address in use on which its amount is free, or after `skipped` of those.
 * `null` as with `insertTailInvoice`. `position` is the address's.
 */
export const insertExactInvoice = rowOf(
  'invoice-insert-exact',
  { ...projected, position: 'int4' },
  `${INSERT}
   cross join lateral (
     select a.id as address_id, $5::int8 as word
     from addresses a
     where ${IN_USE} and p.policy = 'exact'
       and (select i.address_id from invoices i where i.address_id = a.id and i.payable_micro = $5) is null
     order by a.position offset $8 limit 1) w
   ${INSERT_END}, (select a.position from addresses a where a.id = address_id) as position`,
  (invoice: NewInvoice, skipped: number) => {
    const { fromMicro, belowMicro } = amountAlone(invoice.requestedMicro);
    return [...shared(invoice), skipped, fromMicro, belowMicro];
  },
);

function shared(invoice: NewInvoice) {
  const { keyId, id, idempotencyKey, externalId, requestedMicro, checkoutToken, now } = invoice;
  return [keyId, id, idempotencyKey, externalId, requestedMicro, checkoutToken, new Date(now)] as const;
}

const reserved = {
  ...projected,
  requestedMicro: micro<MicroUsdt>('int8'),
  hasKey: 'bool',
  hasExternalId: 'bool',
} as const;

export type ReservedInvoice = Row<typeof reserved>;

/** The invoices of the project that already hold this idempotency key or this external id: two at most. */
export const findReserved = rowsOf(
  'invoice-select-reserved',
  reserved,
  `select ${listColumns(reserved, '', { hasKey: 'idempotency_key = $2', hasExternalId: 'external_id = $3' })}
   from invoices where project_id = $1 and (idempotency_key = $2 or external_id = $3) limit 2`,
  (projectId: string, idempotencyKey: string, externalId: string) => [projectId, idempotencyKey, externalId],
);

export const maybeProjected = { invoice: maybe(projected) } as const;

const SELECT_BY_KEY = `select ${listColumns(maybeProjected, 'i.')}
   from api_keys k left join invoices i on i.project_id = k.project_id and`;
const KEY_IS_VALID = 'k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $3)';

export type FoundInvoice = { kind: 'found'; invoice: ProjectedInvoice } | { kind: 'none' } | { kind: 'key-not-valid' };

/** The invoice with this id if it belongs to the project of the key; the key is checked in the same statement. */
export const findInvoice = answerOf(
  'invoice-select',
  maybeProjected,
  `${SELECT_BY_KEY} i.id = $2 where ${KEY_IS_VALID}`,
  (keyId: string, id: string, now: UnixMs) => [keyId, id, new Date(now)],
  ([row]) => toFound(row),
);

/** As `findInvoice`, by the integrator's own id. */
export const findInvoiceByExternalId = answerOf(
  'invoice-select-by-external-id',
  maybeProjected,
  `${SELECT_BY_KEY} i.external_id = $2 where ${KEY_IS_VALID}`,
  (keyId: string, externalId: string, now: UnixMs) => [keyId, externalId, new Date(now)],
  ([row]) => toFound(row),
);

/** Reads the answer for a key; `undefined`: the key is not valid. */
export function toFound(row: Row<typeof maybeProjected> | undefined): FoundInvoice {
  if (row === undefined) return { kind: 'key-not-valid' };
  return row.invoice === null ? { kind: 'none' } : { kind: 'found', invoice: row.invoice };
}
