import type { UnixMs } from '../../domain/time.ts';
import { answerOf } from '../../store/db/rows-of.ts';

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
