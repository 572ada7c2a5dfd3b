import { type ContractState, STATE_EFFECTS } from '../../domain/contract-event.ts';
import { AppError, type ErrorCode } from '../../domain/errors.ts';
import type { CheckoutInvoice } from '../../store/ledger/checkout.ts';

/**
 * Why nobody may be asked to pay. `unconfirmed`: a row or an address isn't as Quittance wrote it, or nobody vouches for the address. The
 * others are states of the USDT contract: `frozen` of the address, `paused` of all transfers.
 */
export type Suspension = 'unconfirmed' | (typeof STATE_EFFECTS)[ContractState]['page'];

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
  if ('suspended' in read) return read.suspended;
  if (read.isFrozen) return STATE_EFFECTS.frozen.page;
  return read.isPaused ? STATE_EFFECTS.paused.page : null;
}
