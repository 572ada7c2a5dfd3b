import type { MismatchFacts } from '../../domain/mismatch/facts.ts';
import { type Fit, fitInvoice } from '../../domain/mismatch/fit-invoice.ts';
import { rankCauses, rankDuplicate } from '../../domain/mismatch/rank-causes.ts';
import type { Cause } from '../../domain/mismatch.ts';
import type { Sql } from '../../store/db/database.ts';
import { findSuspects, findUnsound } from './candidates.ts';
import { type Mismatch, readMismatches } from './read-mismatches.ts';

/** Whoever makes up more invoices that fit better than any other gets none of them named, and keeps all others from it. */
const MOST_ROUNDS = 5;

/**
 * Why each of these transfers (UUIDs, at most 500) paid nothing: likely causes, best first, never empty. They name no invoice that is not as it
 * was sealed. Transfers that paid an invoice or do not exist are left out. Reads only. Throws a RangeError for more than 500.
 */
export async function diagnoseTransfers(db: Sql, transferIds: readonly string[]): Promise<Map<string, Cause[]>> {
  const causes = new Map<string, Cause[]>();
  const unsound = new Set<string>();
  let ids = transferIds;
  for (let round = 1; ids.length > 0; round += 1) {
    const mayBeNamed = (id: string) => round <= MOST_ROUNDS && !unsound.has(id);
    for await (const { transferId, facts, repeated } of readMismatches(db, ids)) {
      const invoices = facts.invoices.filter(({ id }) => mayBeNamed(id));
      const known = repeated !== null && mayBeNamed(repeated.id) ? repeated : null;
      causes.set(transferId, rank({ facts: { ...facts, invoices }, repeated: known }));
    }
    const named = (id: string) => causes.get(id)?.flatMap(({ invoices }) => invoices.map((each) => each.id)) ?? [];
    for (const id of await findUnsound(db, ids, ids.flatMap(named))) unsound.add(id);
    ids = ids.filter((id) => named(id).some((each) => unsound.has(each)));
  }
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

function rank({ facts, repeated }: Pick<Mismatch, 'facts' | 'repeated'>): Cause[] {
  return repeated === null ? rankCauses(facts) : rankDuplicate(facts, repeated);
}
