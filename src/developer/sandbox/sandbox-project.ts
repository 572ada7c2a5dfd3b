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

/** The invoice (UUID) of a local network that waits, or waited, for exactly this amount at this address. */
export const findInvoiceOfAmount = answerOf(
  'sandbox-invoice-of-amount',
  { id: 'uuid' },
  `select i.id from addresses a join invoices i on i.address_id = a.id and i.payable_micro = $2
   where a.network = 'devnet' and a.address = $1`,
  (address: string, amountMicro: bigint) => [address, amountMicro],
  ([row]) => row?.id ?? null,
);
