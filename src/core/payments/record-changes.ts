import {
  describePayment,
  type EventDraft,
  INVOICE_EVENTS,
  newEvent,
  projectInvoice,
  type SeenTransfer,
} from '../domain/event.ts';
import { type InvoiceChange, isLate, transition } from '../domain/invoice.ts';
import { readOptions } from '../domain/invoice-options.ts';
import type { Sql } from '../store/db/database.ts';
import { type ChangeableInvoice, type StatusUpdate, updateStatuses } from '../store/ledger/invoice-changes.ts';
import { insertEvents } from '../store/outbox/events.ts';
import type { Recording } from './watching.ts';

/** A change to an invoice. `transaction` is the transfer that caused it. `transferId` is set only for `paid`. */
export type PlannedChange = {
  invoice: ChangeableInvoice;
  change: InvoiceChange;
  transaction: SeenTransfer | null;
  transferId: string | null;
};

/**
 * Applies changes to invoices, at most one per invoice, in the caller's transaction. Writes one event, with its deliveries, for each status
 * change. `headNumber` is the newest examined block.
 */
export async function recordChanges(
  recording: Recording,
  tx: Sql,
  changes: PlannedChange[],
  headNumber: number,
): Promise<void> {
  const now = recording.now();
  const updates: StatusUpdate[] = [];
  const drafts: Draft[] = [];
  for (const planned of changes) {
    const { invoice, transferId } = planned;
    const to = transition(invoice, planned.change);
    if (to === null) continue;
    updates.push({
      projectId: invoice.projectId,
      id: invoice.id,
      from: invoice.status,
      to,
      eventCount: invoice.eventCount,
      paidTransferId: to === 'PAID' ? transferId : null,
    });
    const sequence = invoice.eventCount + 1;
    const data = describeInvoice(recording, { ...invoice, status: to }, planned.transaction, headNumber);
    const { projectId, id: invoiceId } = invoice;
    const blockNumber = planned.transaction?.blockNumber ?? 0;
    drafts.push({ blockNumber, type: INVOICE_EVENTS[to], projectId, invoiceId, transferId, sequence, data });
  }
  if (updates.length > 0) await updateStatuses(tx, recording.network, updates);
  const { random } = recording;
  const events = drafts
    .sort(byChainOrder)
    .map(({ blockNumber: _place, ...draft }, index) => newEvent(draft, { timestamp: now, random, index }));
  await insertEvents(tx, recording.network, events, now);
}

type Draft = EventDraft & { blockNumber: number };

/** Transfer ids increase within a batch. A change without a transfer is sorted first. */
function byChainOrder(left: Draft, right: Draft): number {
  if (left.blockNumber !== right.blockNumber) return left.blockNumber - right.blockNumber;
  const [one, other] = [left.transferId ?? '', right.transferId ?? ''];
  return one < other ? -1 : one > other ? 1 : 0;
}

function describeInvoice(
  { publicUrl }: Recording,
  invoice: ChangeableInvoice,
  transaction: SeenTransfer | null,
  headNumber: number,
): object {
  const seen = transaction && { ...transaction, late: isLate(transaction.blockTime, invoice.expiresAt), headNumber };
  const { metadata } = readOptions(invoice.options);
  return {
    ...projectInvoice(invoice, publicUrl),
    ...(metadata && { metadata }),
    payment: describePayment(invoice, seen),
  };
}
