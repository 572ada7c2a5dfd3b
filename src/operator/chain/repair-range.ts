import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { type Hint, say } from '../../domain/message.ts';
import type { Actor } from '../actor.ts';
import { clip, quote } from '../input/clip.ts';
import type { NodeDeps } from '../node-connection.ts';
import { describeDifference } from './compare-blocks.ts';
import { type Range, rangeInput } from './read-range.ts';
import type { Writing } from './record-repaired.ts';
import { deniedPayments, type PlannedDifference, planRepair, type RepairPlan, repair } from './repair.ts';
import type { PlannedView, RepairView } from './views.ts';

/** The UUID of an invoice that is named. Errors: `INVALID_ARGUMENT`. */
export function readInvoiceId(text: string): string {
  const id = decodeId('inv', text);
  if (id !== null) return id;
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${{ field: 'invoice' }} ${clip(text)} is not an invoice id: it is "inv_" and 26 characters`,
  );
}

/**
 * Shows where the ledger is not what the chain is and what each such transfer did, and changes nothing; `hint` does. With an `order` it
 * takes back what the chain denies and records what was missing, unless an invoice that was `PAID` by it is not among `invoiceIds`
 * (UUIDs). Errors as of `planRepair`, `CONFLICT`, `INVALID_ARGUMENT`.
 */
export async function repairRange(
  deps: NodeDeps & Writing & { onProgress(blockCount: number): void },
  actor: Actor,
  { range, invoiceIds, order }: { range: Range; invoiceIds: readonly string[]; order: { reason: string } | null },
): Promise<{ view: RepairView; hint: Hint | null }> {
  const { network } = deps;
  const plan = await planRepair(deps, range, deps.onProgress);
  const { blockCount, attestedCount, differences } = plan;
  const shown = { network, ...range, blockCount, attestedCount, differences: differences.map(describePlanned) };
  if (differences.length === 0) return { view: { ...shown, isChanged: false }, hint: null };
  if (order === null) {
    const invoice = deniedPayments(plan).flatMap(({ recorded }) => {
      const id = recorded?.incoming?.invoice?.id;
      return id === undefined ? [] : [encodeId('inv', id)];
    });
    const input = { ...rangeInput(network, range), invoice, isConfirmed: true, reason: '…' } as const;
    return { view: { ...shown, isChanged: false }, hint: { command: 'chain repair', input } };
  }
  refuseUnnamed(plan, new Set(invoiceIds));
  const { reason } = order;
  const { takenBack, added, left } = await repair(deps, plan, { reason, actor });
  const done = { reason, by: actor.name, takenBack, added, left: left.map(describeDifference) };
  return { view: { ...shown, isChanged: true, ...done }, hint: { command: 'reconcile', input: { network } } };
}

function describePlanned({ recorded, ...difference }: PlannedDifference): PlannedView {
  const { id, kind, invoice } = recorded?.incoming ?? { id: null, kind: null, invoice: null };
  return {
    ...describeDifference(difference),
    transferId: id && encodeId('trf', id),
    match: kind,
    invoice: invoice && {
      ...{ invoiceId: encodeId('inv', invoice.id), externalId: invoice.externalId, status: invoice.status },
    },
  };
}

/** Each invoice whose payment is denied is named by whoever repairs, and no other. */
function refuseUnnamed(plan: RepairPlan, named: ReadonlySet<string>): void {
  const payments = deniedPayments(plan);
  const known = new Set(payments.map(({ recorded }) => recorded?.incoming?.invoice?.id));
  const stranger = [...named].find((id) => !known.has(id));
  if (stranger !== undefined) {
    throw new AppError(
      'INVALID_ARGUMENT',
      say`${{ field: 'invoice' }} ${encodeId('inv', stranger)} was paid by nothing that the chain denies in these blocks: leave it out`,
    );
  }
  const problems = payments.flatMap(({ recorded, txId, logIndex }): FieldProblem[] => {
    const invoice = recorded?.incoming?.invoice;
    if (invoice == null || named.has(invoice.id)) return [];
    const subject = encodeId('inv', invoice.id);
    const message = say`${subject} (${quote(invoice.externalId)}) is PAID by transfer ${txId} (${logIndex}), which the chain denies: add ${{ field: 'invoice' }} ${subject}`;
    return [{ subject, message }];
  });
  if (problems.length === 0) return;
  throw new AppError(
    'CONFLICT',
    'nothing was changed: PAID is never left, so look at each of these invoices, and name it when you know that it was not paid',
    { problems },
  );
}
