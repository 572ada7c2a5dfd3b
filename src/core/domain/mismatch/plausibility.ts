import type { UnixMs } from '../time.ts';
import type { Suspect } from './facts.ts';

const HOUR_MS = 3_600_000;
/**
 * Returns from 0 to 1 how plausible it is that a transfer at this time was meant for this invoice, whatever its amount. An invoice that
 * didn't exist yet can't have been meant. An open invoice is likelier than an expired one, and an expired one is likelier than a paid one.
 */
export function plausibility(invoice: Suspect, at: UnixMs): number {
  const ageMs = at - invoice.createdAt;
  if (at <= invoice.payableAfter) return 0;
  if (invoice.paid !== null && invoice.paid.at <= at) return at - invoice.paid.at < 24 * HOUR_MS ? 0.03 : 0.003;
  const overdueMs = at - invoice.expiresAt;
  if (overdueMs > 0) {
    if (overdueMs < 2 * HOUR_MS) return 0.4;
    return overdueMs < 48 * HOUR_MS ? 0.1 : 0.01;
  }
  // Most payers pay immediately, even if they have a month.
  if (ageMs < 3 * HOUR_MS) return 1;
  return ageMs < 48 * HOUR_MS ? 0.6 : 0.3;
}
