import { formatSigned } from '../../chain/reconcile/reconcile-address.ts';
import { encodeId } from '../../domain/ids.ts';
import type { Cause } from '../../domain/mismatch.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import type { NamedInvoice, Resolution } from './transfer-desk.ts';
import type { CauseView, NamedInvoiceView, ResolutionView } from './views.ts';

export function describeResolution(done: Omit<Resolution, 'transferId'>): ResolutionView {
  const { resolution, note, invoice, resolvedBy, resolvedAt } = done;
  return { resolution, note, invoice: invoice && nameInvoice(invoice), resolvedBy, resolvedAt: toIso(resolvedAt) };
}

export function nameInvoice({ id, externalId, status }: NamedInvoice): NamedInvoiceView {
  return { invoiceId: encodeId('inv', id), externalId, status };
}

export function describeCause({ code, confidence, explanation, evidence, invoices }: Cause): CauseView {
  const near = invoices.map((invoice) => ({
    ...nameInvoice(invoice),
    payableAmount: formatAmount(invoice.payableMicro),
    difference: formatSigned(invoice.differenceMicro),
  }));
  return { code, confidence, explanation, evidence, invoices: near };
}
