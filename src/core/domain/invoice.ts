import { assertNever } from './assert-never.ts';
import type { UnixMs } from './time.ts';

export const INVOICE_STATUSES = ['PENDING', 'CONFIRMING', 'EXPIRED', 'PAID'] as const;
export type InvoiceStatus = (typeof INVOICE_STATUSES)[number];

/** The ways the chain can change an invoice. `clock` is the chain's clock: the time of a block up to which all transfers are known. */
export type InvoiceChange =
  | { kind: 'sighted' }
  | { kind: 'orphaned'; clock: UnixMs }
  | { kind: 'paid' }
  | { kind: 'clock-passed'; clock: UnixMs };

/**
 * Returns the status after a change, or `null` if the change has no effect. `PAID` is final, but an expired invoice can still be paid.
 * After an orphaned sighting the status is `EXPIRED` if the chain's clock has passed `expiresAt`, and `PENDING` otherwise.
 */
export function transition(
  invoice: { status: InvoiceStatus; expiresAt: UnixMs },
  change: InvoiceChange,
): InvoiceStatus | null {
  const { status, expiresAt } = invoice;
  if (status === 'PAID') return null;
  switch (change.kind) {
    case 'paid':
      return 'PAID';
    case 'sighted':
      return status === 'CONFIRMING' ? null : 'CONFIRMING';
    case 'orphaned':
      if (status !== 'CONFIRMING') return null;
      return hasExpired(expiresAt, change.clock) ? 'EXPIRED' : 'PENDING';
    case 'clock-passed':
      return status === 'PENDING' && hasExpired(expiresAt, change.clock) ? 'EXPIRED' : null;
    default:
      return assertNever(change);
  }
}

/**
 * Block times increase strictly. So if a block at or after `expiresAt` has been examined, all blocks before the deadline have been examined
 * as well.
 */
function hasExpired(expiresAt: UnixMs, clock: UnixMs): boolean {
  return clock >= expiresAt;
}

/** Whether a transfer arrived after the deadline; it still pays the invoice. A transfer at exactly `expiresAt` isn't late. */
export function isLate(blockTime: UnixMs, expiresAt: UnixMs): boolean {
  return blockTime > expiresAt;
}

/**
 * Whether an unpaid invoice once had a payment whose block was orphaned. `eventCount` is the number of its status changes so far. The
 * status of a `PENDING` invoice has changed only if the invoice returned from `CONFIRMING`. Expiry itself counts as one change.
 */
export function hadPayment(status: InvoiceStatus, eventCount: number): boolean {
  if (status === 'PENDING') return eventCount > 0;
  return status === 'EXPIRED' && eventCount > 1;
}

export type Match = 'matched' | 'duplicate' | 'unmatched';

/**
 * Decides how an irreversible incoming transfer is classified. `reservedBy` is the status of the invoice that reserves exactly this amount
 * at exactly this address, or `null` if there's none. Amounts are never rounded, added up or tolerated: no transfer can pay any other
 * invoice, and each invoice is paid only once.
 */
export function matchTransfer(reservedBy: InvoiceStatus | null): Match {
  if (reservedBy === null) return 'unmatched';
  return reservedBy === 'PAID' ? 'duplicate' : 'matched';
}
