import type { ProjectedInvoice } from '../../domain/event.ts';
import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { UnixMs } from '../../domain/time.ts';
import { answerOf, rowsOf } from '../db/rows-of.ts';
import { SEALED_INVOICE, SEALED_PAID, SEALED_STATUS } from '../db/sealed-tables.ts';
import { listColumns, maybe, micro, type Row, sealed, text } from '../db/statement.ts';

/** The columns for the API's invoice fields. */
export const projected = {
  id: 'uuid',
  externalId: 'text',
  status: text<InvoiceStatus>(),
  checkoutToken: 'text',
  expiresAt: 'timestamptz',
  seal: sealed(SEALED_INVOICE),
  paidSeal: sealed(SEALED_PAID),
  statusSeal: sealed(SEALED_STATUS),
} as const;

const reserved = {
  ...projected,
  requestedMicro: micro<MicroUsdt>('int8'),
  options: 'text?',
  hasKey: 'bool',
} as const;

export type ReservedInvoice = Row<typeof reserved>;

/** Returns the project's invoices with this idempotency key or this external id, at most two. */
export const findReserved = rowsOf(
  'invoice-select-reserved',
  reserved,
  `select ${listColumns(reserved, '', { hasKey: 'idempotency_key = $2' })}
   from invoices where project_id = $1 and (idempotency_key = $2 or external_id = $3) limit 2`,
  (projectId: string, idempotencyKey: string, externalId: string) => [projectId, idempotencyKey, externalId],
);

export const maybeProjected = { invoice: maybe(projected) } as const;

const SELECT_BY_KEY = `select ${listColumns(maybeProjected, 'i.')}
   from api_keys k left join invoices i on i.project_id = k.project_id and`;
const KEY_IS_VALID = 'k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $3)';

export type FoundInvoice = { kind: 'found'; invoice: ProjectedInvoice } | { kind: 'none' } | { kind: 'key-not-valid' };

/** Returns the invoice with this id if it belongs to the key's project. The key is checked in the same statement. */
export const findInvoice = answerOf(
  'invoice-select',
  maybeProjected,
  `${SELECT_BY_KEY} i.id = $2 where ${KEY_IS_VALID}`,
  (keyId: string, id: string, now: UnixMs) => [keyId, id, new Date(now)],
  ([row]) => toFound(row),
);

/** Like `findInvoice`, but by the integrator's own id. */
export const findInvoiceByExternalId = answerOf(
  'invoice-select-by-external-id',
  maybeProjected,
  `${SELECT_BY_KEY} i.external_id = $2 where ${KEY_IS_VALID}`,
  (keyId: string, externalId: string, now: UnixMs) => [keyId, externalId, new Date(now)],
  ([row]) => toFound(row),
);

/** Converts the row found for a key. The key is invalid if there's no row. */
export function toFound(row: Row<typeof maybeProjected> | undefined): FoundInvoice {
  if (row === undefined) return { kind: 'key-not-valid' };
  return row.invoice === null ? { kind: 'none' } : { kind: 'found', invoice: row.invoice };
}
