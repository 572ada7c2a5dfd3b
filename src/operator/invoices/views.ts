import { INVOICE_STATUSES } from '../../domain/invoice.ts';
import { POLICIES } from '../../domain/policy.ts';
import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Time } from '../view.ts';

/** `paid`: the transfer of exactly its payable amount, at the time of its block. */
export const InvoiceView = Type.Object({
  ...{ invoiceId: Type.String(), projectId: Type.String(), externalId: Type.String() },
  status: Type.Enum(INVOICE_STATUSES),
  ...{ requestedAmount: Type.String(), payableAmount: Type.String(), address: Type.String() },
  policy: Type.Enum(POLICIES),
  ...{ createdAt: Time, expiresAt: Time, checkoutUrl: Type.String() },
  paid: nullable(Type.Object({ txId: Type.String(), time: Time })),
});
export type InvoiceView = Static<typeof InvoiceView>;

/** `looked`: so many were looked through for this page; `nextBefore`: the invoice before which the next page begins. */
export const InvoiceListView = Type.Object({
  data: Type.Array(InvoiceView),
  looked: Type.Integer(),
  nextBefore: nullable(Type.String()),
});
export type InvoiceListView = Static<typeof InvoiceListView>;

/** `isNew`: `false` where the same had been asked for before. */
export const NewInvoiceView = Type.Object({ invoice: InvoiceView, isNew: Type.Boolean() });
export type NewInvoiceView = Static<typeof NewInvoiceView>;
