import type { Actor } from '../actor.ts';
import type { ExportedRows } from '../export/write-rows.ts';
import { selectProject } from '../select-project.ts';
import { findDeskInvoices, type InvoiceFilter } from './invoice-desk.ts';
import { type InvoiceDeps, viewInvoice, windowOf } from './list-invoices.ts';
import type { InvoiceView } from './views.ts';

/** The columns of an export, in their order. Scripts and spreadsheets rely on it: new ones come last. */
export const INVOICE_COLUMNS: ExportedRows<InvoiceView>['columns'] = [
  ['createdAt', ({ createdAt }) => createdAt],
  ['invoiceId', ({ invoiceId }) => invoiceId],
  ['externalId', ({ externalId }) => externalId],
  ['status', ({ status }) => status],
  ['requestedAmount', ({ requestedAmount }) => requestedAmount],
  ['payableAmount', ({ payableAmount }) => payableAmount],
  ['address', ({ address }) => address],
  ['policy', ({ policy }) => policy],
  ['expiresAt', ({ expiresAt }) => expiresAt],
  ['paidAt', ({ paid }) => paid?.time],
  ['txId', ({ paid }) => paid?.txId],
  ['projectId', ({ projectId }) => projectId],
];

/** So many are in memory. */
const BATCH = 500;

/**
 * The invoices of a project that fit, in batches, the newest first. Each batch goes on behind the last one and needs no common transaction,
 * which a slow reader would keep open for hours; what is created meanwhile is not among them.
 */
export async function exportInvoices(
  { db, publicUrl }: InvoiceDeps,
  actor: Actor,
  { projectId, ...filter }: InvoiceFilter & { projectId: string | undefined },
): Promise<AsyncIterable<InvoiceView[]>> {
  const project = await selectProject(db, actor, projectId);
  const window = windowOf(filter, BATCH);
  return (async function* () {
    for (let { before } = filter; ; ) {
      const page = { limit: BATCH, window, isFirst: false };
      const { invoices, looked, last } = await findDeskInvoices(db, project.id, { ...filter, before }, page);
      if (invoices.length > 0) yield invoices.map((invoice) => viewInvoice(invoice, publicUrl()));
      if (invoices.length < BATCH && looked < window) return;
      before = invoices.length === BATCH ? (invoices.at(-1)?.id ?? null) : last;
    }
  })();
}
