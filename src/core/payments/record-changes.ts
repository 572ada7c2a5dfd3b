import {
  describePayment,
  type EventDraft,
  INVOICE_EVENTS,
  newEvent,
  projectInvoice,
  type SeenTransfer,
} from '../domain/event.ts';
import { type InvoiceChange, type InvoiceStatus, isLate, transition } from '../domain/invoice.ts';
import { readOptions } from '../domain/invoice-options.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import { addressColumn } from '../store/db/address-column.ts';
import type { Sql } from '../store/db/database.ts';
import { hexSeal, type LeftOut } from '../store/db/seal.ts';
import { SEALED_PAID, SEALED_STATUS } from '../store/db/sealed-tables.ts';
import { jsonRows, listColumns, maybeHex, micro, type Row, statement, text } from '../store/db/statement.ts';
import { projected } from '../store/ledger/invoices.ts';
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

/** The fields needed for a status change and its event. */
const changeable = {
  ...projected,
  projectId: 'uuid',
  requestedMicro: micro<MicroUsdt>('int8'),
  payableMicro: micro<MicroUsdt>('int8'),
  address: 'address',
  eventCount: 'int4',
  options: 'text?',
} as const;

export type ChangeableInvoice = Row<typeof changeable>;

const SELECT = `select ${listColumns(changeable, 'i.', { address: addressColumn('a') })}
   from invoices i join addresses a on a.id = i.address_id`;

const selectByIds = statement(
  'invoice-changeable-select',
  changeable,
  `${SELECT} where (i.project_id, i.id) in (select * from unnest($1::uuid[], $2::uuid[])) and i.network = $3`,
);

/** Returns invoices by (project, id). `leftOut` receives the rows that fail their integrity check, with their `id`. */
export async function findChangeable(
  tx: Sql,
  network: Network,
  invoices: readonly { projectId: string; invoiceId: string }[],
  leftOut?: LeftOut[],
): Promise<ChangeableInvoice[]> {
  if (invoices.length === 0) return [];
  const projectIds = invoices.map(({ projectId }) => projectId);
  return tx.run(selectByIds, [projectIds, invoices.map(({ invoiceId }) => invoiceId), network], leftOut);
}

/** The statement that finds invoices to expire. */
export const OVERDUE = 'invoice-overdue-select';

const selectOverdue = statement(
  OVERDUE,
  changeable,
  `${SELECT} where i.network = $1 and i.status = 'PENDING' and i.expires_at <= $2 and i.id <> all($4::uuid[])
   order by i.expires_at, i.id limit $3`,
);

/**
 * Returns pending invoices whose deadline isn't later than `clock`, earliest first, except the ones in `without`. `leftOut` is the same as
 * for `findChangeable`.
 */
export function findOverdue(
  tx: Sql,
  network: Network,
  { clock, limit, without = [] }: { clock: UnixMs; limit: number; without?: readonly string[] },
  leftOut?: LeftOut[],
): Promise<ChangeableInvoice[]> {
  return tx.run(selectOverdue, [network, new Date(clock), limit, without], leftOut);
}

const statusUpdate = {
  projectId: 'uuid',
  id: 'uuid',
  from: text<InvoiceStatus>(),
  to: text<InvoiceStatus>(),
  eventCount: 'int4',
  paidTransferId: 'uuid?',
} as const;

type StatusUpdate = Row<typeof statusUpdate>;

const rows = jsonRows({ ...statusUpdate, paidMac: maybeHex });

const update = statement(
  'invoice-update-status',
  { id: 'uuid' },
  `update invoices i set status = t.to, event_count = i.event_count + 1, paid_transfer_id = t.paid_transfer_id,
     paid_mac = t.paid_mac
   from ${rows.table('$1')}
   where i.project_id = t.project_id and i.id = t.id and i.status = t.from and i.event_count = t.event_count
   returning i.id`,
);

/** Applies status changes to invoices that haven't changed since they were read, and counts their events. Throws if one has changed. */
async function updateStatuses(tx: Sql, network: Network, updates: StatusUpdate[]): Promise<void> {
  const sealer = await tx.sealer();
  const paidMac = (row: StatusUpdate) => {
    const after = { ...row, network, status: row.to, eventCount: row.eventCount + 1 };
    return row.to === 'PAID' ? hexSeal(sealer, SEALED_PAID, after) : hexSeal(sealer, SEALED_STATUS, after);
  };
  const { length } = await tx.run(update, [rows.bind(updates.map((row) => ({ ...row, paidMac: paidMac(row) })))]);
  if (length !== updates.length) {
    throw new Error(
      `${updates.length - length} of ${updates.length} invoices changed while the watcher was updating them`,
    );
  }
}
