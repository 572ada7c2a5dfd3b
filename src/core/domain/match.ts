import type { InvoiceStatus } from './invoice.ts';

/** The invoice that reserves exactly this (address, amount), if the database has one. */
export type ReservedBy = { invoiceId: string; status: InvoiceStatus } | null;

export type Match = { kind: 'matched' } | { kind: 'duplicate' } | { kind: 'unmatched' };

/**
 * Decides the kind of an irreversible incoming transfer. Amounts are never rounded, added up or tolerated: only the invoice that reserves
 * exactly this amount on exactly this address can be paid, and only once.
 */
export function matchTransfer(reservedBy: ReservedBy): Match {
  if (reservedBy === null) return { kind: 'unmatched' };
  return reservedBy.status === 'PAID' ? { kind: 'duplicate' } : { kind: 'matched' };
}
