import {
  describePayment,
  describeTransfer,
  type EventType,
  eventBody,
  INVOICE_EVENTS,
  projectInvoice,
  type SeenTransfer,
} from '../domain/event.ts';
import { uuidV7 } from '../domain/ids.ts';
import { type InvoiceChange, isLate, transition } from '../domain/invoice.ts';
import { readOptions } from '../domain/invoice-options.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Sql } from '../store/db/database.ts';
import { type ChangeableInvoice, type StatusUpdate, updateStatuses } from '../store/ledger/invoice-changes.ts';
import { insertEvents, type NewEvent } from '../store/outbox/events.ts';
import type { Recording } from './watching.ts';

/** A thing that happened to an invoice. `transaction` is the transfer it is about; only `paid` has `transferId`. */
export type PlannedChange = {
  invoice: ChangeableInvoice;
  change: InvoiceChange;
  transaction: SeenTransfer | null;
  transferId: string | null;
};

/** A transfer that pays nothing, to be told as an event. UUIDs; `invoiceId` names the invoice that was paid before. */
export type PlannedNotice = {
  type: Extract<EventType, 'transfer.unmatched' | 'transfer.duplicate'>;
  projectId: string;
  transfer: SeenTransfer & { id: string; to: string; invoiceId: string | null };
};

/**
 * Applies changes to invoices, at most one an invoice, and writes one event for each that changes a status, with its
 * deliveries, all in the caller's transaction. `headNumber` is the newest examined block.
 */
export async function recordChanges(
  recording: Recording,
  tx: Sql,
  changes: PlannedChange[],
  notices: PlannedNotice[],
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
  for (const { type, projectId, transfer } of notices) {
    const { id: transferId, blockNumber } = transfer;
    const data = describeTransfer(transfer);
    drafts.push({ blockNumber, type, projectId, invoiceId: null, transferId, sequence: 1, data });
  }
  if (updates.length > 0) await updateStatuses(tx, recording.network, updates);
  const events = drafts.sort(byChainOrder).map((draft, index) => newEvent(recording, draft, { timestamp: now, index }));
  await insertEvents(tx, recording.network, events, now);
}

type Draft = Omit<NewEvent, 'id' | 'body'> & { blockNumber: number; data: object };

/** Ids of transfers rise within a batch. A change that is about no transfer comes first. */
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

/** Ids of the events of one transaction rise in their order, which is the order in which they are told. */
function newEvent(
  { random }: Recording,
  { data, blockNumber: _place, ...rest }: Draft,
  { timestamp, index }: { timestamp: UnixMs; index: number },
): NewEvent {
  const id = uuidV7(timestamp, random(10), index);
  return { ...rest, id, body: eventBody({ ...rest, id, timestamp, data }) };
}
