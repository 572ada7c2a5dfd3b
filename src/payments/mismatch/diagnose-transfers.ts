import type { MismatchFacts } from '../../domain/mismatch/facts.ts';
import { type Fit, fitInvoice } from '../../domain/mismatch/fit-invoice.ts';
import { rankCauses, rankDuplicate } from '../../domain/mismatch/rank-causes.ts';
import type { Cause } from '../../domain/mismatch.ts';
import type { Sql } from '../../store/db/database.ts';
import { findSuspects } from './candidates.ts';
import { type Mismatch, readMismatches } from './read-mismatches.ts';

/**
 * Why each of these transfers (UUIDs, at most 500) paid nothing: likely causes, best first, never empty. Transfers that paid an
 * invoice or do not exist are left out. Reads only. Throws a RangeError for more than 500.
 */
export async function diagnoseTransfers(db: Sql, transferIds: readonly string[]): Promise<Map<string, Cause[]>> {
  const causes = new Map<string, Cause[]>();
  for await (const mismatch of readMismatches(db, transferIds)) causes.set(mismatch.transferId, rank(mismatch));
  return causes;
}

/** Likely causes, and how the transfer fits the invoice that was asked about; `null` if it hardly does, or repeats an invoice. */
export type Compared = { causes: Cause[]; fit: Fit | null };

/** As `diagnoseTransfers`, and each transfer is compared with one invoice of the same project (UUIDs) whatever else fits. */
export async function compareTransfers(
  db: Sql,
  transferIds: readonly string[],
  invoice: { projectId: string; id: string },
): Promise<Map<string, Compared>> {
  const [found] = await findSuspects(db, [{ projectId: invoice.projectId, invoiceId: invoice.id }]);
  const compared = new Map<string, Compared>();
  for await (const mismatch of readMismatches(db, transferIds)) {
    const { transferId, facts, repeated } = mismatch;
    const others = facts.invoices.filter(({ id }) => id !== invoice.id);
    // In a busy shop it may not be among the invoices that were read.
    const invoices: MismatchFacts['invoices'] = found === undefined ? others : [...others, found];
    const fit = repeated === null ? fitInvoice({ ...facts, invoices }, invoice.id) : null;
    compared.set(transferId, { causes: rank(mismatch), fit });
  }
  return compared;
}

function rank({ facts, repeated }: Mismatch): Cause[] {
  return repeated === null ? rankCauses(facts) : rankDuplicate(facts, repeated);
}
