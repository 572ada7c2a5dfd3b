import type { UnixMs } from '../../core/domain/time.ts';
import { addressColumn } from '../../core/store/db/address-column.ts';
import { answerOf } from '../../core/store/db/rows-of.ts';
import { count } from '../../core/store/db/statement.ts';

/**
 * Brings a pending invoice's deadline forward so that no one has to wait for it to pass. Returns the deadline, or `null` if nothing was
 * changed; only invoices on a local network can be changed.
 */
export const bringDeadlineForward = answerOf(
  'sandbox-invoice-bring-deadline-forward',
  { expiresAt: 'timestamptz?' },
  'select hurry_devnet_invoice($1, $2) as expires_at',
  (checkoutToken: string, to: UnixMs) => [checkoutToken, new Date(to)],
  ([row]) => row?.expiresAt ?? null,
);

/**
 * Brings forward the deadlines of up to 10,000 pending invoices in a local project (UUID) by this much, but not to before their creation.
 * Returns how many.
 */
export const bringDeadlinesForward = answerOf(
  'sandbox-invoices-bring-deadlines-forward',
  { count: 'int4' },
  `select count(hurry_devnet_invoice(checkout_token, greatest(created_at, expires_at - $2 * interval '1 second')))::int4 as count
   from (select checkout_token, created_at, expires_at from invoices where project_id = $1 and status = 'PENDING' order by id desc limit 10000) i`,
  (projectId: string, seconds: number) => [projectId, seconds],
  ([row]) => row?.count ?? 0,
);

/** Returns the UUID of the invoice that has reserved exactly this amount at this address on a local network. */
export const findInvoiceOfAmount = answerOf(
  'sandbox-invoice-of-amount',
  { id: 'uuid' },
  `select i.id from addresses a join invoices i on i.address_id = a.id and i.payable_micro = $2
   where a.network = 'devnet' and a.address = $1`,
  (address: string, amountMicro: bigint) => [address, amountMicro],
  ([row]) => row?.id ?? null,
);

/** Finds a project's invoice (UUID) by external id. */
export const findIdOfOrder = answerOf(
  'sandbox-invoice-by-external-id',
  { id: 'uuid' },
  'select id from invoices where project_id = $1 and external_id = $2',
  (projectId: string, externalId: string) => [projectId, externalId],
  ([row]) => row?.id ?? null,
);

/** Finds a project's retired address that can still be paid. */
export const findRetiredAddress = answerOf(
  'sandbox-retired-address',
  { address: 'address' },
  `select ${addressColumn('a')} as address from addresses a
   where a.project_id = $1 and a.retired_at is not null and a.barred_at is null order by a.position limit 1`,
  (projectId: string) => [projectId],
  ([row]) => row?.address ?? null,
);

/** Counts the local network's projects in use. */
export const countProjects = answerOf(
  'sandbox-projects-count',
  { count },
  `select count(*) from projects where network = 'devnet' and archived_at is null`,
  () => [],
  ([row]) => row?.count ?? 0,
);
