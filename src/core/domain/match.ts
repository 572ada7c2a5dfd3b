import type { InvoiceStatus } from './invoice.ts';

/** The invoice that reserves exactly this address and amount, or `null` if the database has no such invoice. */
export type ReservedBy = { invoiceId: string; status: InvoiceStatus } | null;

export type Match = { kind: 'matched' } | { kind: 'duplicate' } | { kind: 'unmatched' };

/**
 * Decides how an irreversible incoming transfer is classified. Amounts are never rounded, added up or tolerated: a transfer can only pay
 * the invoice that reserves exactly this amount at exactly this address, and only once.
 */
export function matchTransfer(reservedBy: ReservedBy): Match {
  if (reservedBy === null) return { kind: 'unmatched' };
  return reservedBy.status === 'PAID' ? { kind: 'duplicate' } : { kind: 'matched' };
}
