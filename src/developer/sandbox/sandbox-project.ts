import type { UnixMs } from '../../domain/time.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import { answerOf } from '../../store/db/rows-of.ts';
import { count } from '../../store/db/statement.ts';

/**
 * Brings the deadline of a pending invoice forward, so that a trial of what comes after it need not wait for it. Returns the
 * deadline, or `null` where nothing was done: only invoices of a local network can be hurried.
 */
export const bringDeadlineForward = answerOf(
  'sandbox-invoice-bring-deadline-forward',
  { expiresAt: 'timestamptz?' },
  'select hurry_devnet_invoice($1, $2) as expires_at',
  (checkoutToken: string, to: UnixMs) => [checkoutToken, new Date(to)],
  ([row]) => row?.expiresAt ?? null,
);

/**
 * Brings the deadlines of a project's (UUID) pending invoices forward by so much, but not before their creation, of a local network; of
 * 10,000 at most. Returns how many.
 */
export const bringDeadlinesForward = answerOf(
  'sandbox-invoices-bring-deadlines-forward',
  { count: 'int4' },
  `select count(hurry_devnet_invoice(checkout_token, greatest(created_at, expires_at - $2 * interval '1 second')))::int4 as count
   from (select checkout_token, created_at, expires_at from invoices where project_id = $1 and status = 'PENDING' order by id desc limit 10000) i`,
  (projectId: string, seconds: number) => [projectId, seconds],
  ([row]) => row?.count ?? 0,
);

/** The invoice (UUID) of a local network that waits, or waited, for exactly this amount at this address. */
export const findInvoiceOfAmount = answerOf(
  'sandbox-invoice-of-amount',
  { id: 'uuid' },
  `select i.id from addresses a join invoices i on i.address_id = a.id and i.payable_micro = $2
   where a.network = 'devnet' and a.address = $1`,
  (address: string, amountMicro: bigint) => [address, amountMicro],
  ([row]) => row?.id ?? null,
);

/** The invoice (UUID) of a project with an external id. */
export const findIdOfOrder = answerOf(
  'sandbox-invoice-by-external-id',
  { id: 'uuid' },
  'select id from invoices where project_id = $1 and external_id = $2',
  (projectId: string, externalId: string) => [projectId, externalId],
  ([row]) => row?.id ?? null,
);

/** A retired address of a project that can still be paid. */
export const findRetiredAddress = answerOf(
  'sandbox-retired-address',
  { address: 'address' },
  `select ${addressColumn('a')} as address from addresses a
   where a.project_id = $1 and a.retired_at is not null and a.barred_at is null order by a.position limit 1`,
  (projectId: string) => [projectId],
  ([row]) => row?.address ?? null,
);

/** How many projects of the local network are in use. */
export const countProjects = answerOf(
  'sandbox-projects-count',
  { count },
  `select count(*) from projects where network = 'devnet' and archived_at is null`,
  () => [],
  ([row]) => row?.count ?? 0,
);
