import { AppError, type ErrorCode } from '../../domain/errors.ts';
import type { CheckoutInvoice } from '../../store/ledger/checkout.ts';

/** Why nobody may be asked to pay. `unconfirmed`: a row or an address isn't as Quittance wrote it, or nobody vouches for the address. */
export type Suspension = 'unconfirmed';

/** A link whose invoice Quittance can't rely on, so the page shows nothing of it. */
export type SuspendedLink = { checkoutToken: string; suspended: Suspension };

/** An invoice behind a link, or what Quittance may show in its place. */
export type LinkedInvoice = CheckoutInvoice | SuspendedLink;

const UNCONFIRMED: readonly ErrorCode[] = ['ADDRESS_DAMAGED', 'ADDRESS_NOT_VOUCHED', 'ROW_CHANGED'];

/**
 * Decides for every page, stream and answer below a link whether payment is suspended, and why. `read`: the invoice, or the error that
 * reading it caused. `null`: payment isn't suspended.
 */
export function suspensionOf(read: LinkedInvoice | Error): Suspension | null {
  if (read instanceof Error) return read instanceof AppError && UNCONFIRMED.includes(read.code) ? 'unconfirmed' : null;
  return 'suspended' in read ? read.suspended : null;
}
