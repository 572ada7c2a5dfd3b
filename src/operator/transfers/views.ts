import { INVOICE_STATUSES } from '../../domain/invoice.ts';
import { CAUSE_CODES } from '../../domain/mismatch.ts';
import { RESOLUTIONS } from '../../domain/resolution.ts';
import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Time } from '../view.ts';

const Kind = Type.Enum(['unmatched', 'duplicate', 'matched']);
const Confidence = Type.Enum(['high', 'medium', 'low']);

const named = { invoiceId: Type.String(), externalId: Type.String(), status: Type.Enum(INVOICE_STATUSES) };
export const NamedInvoiceView = Type.Object(named);
export type NamedInvoiceView = Static<typeof NamedInvoiceView>;

export const ResolutionView = Type.Object({
  resolution: Type.Enum(RESOLUTIONS),
  note: Type.String(),
  invoice: nullable(NamedInvoiceView),
  resolvedBy: Type.String(),
  resolvedAt: Time,
});
export type ResolutionView = Static<typeof ResolutionView>;

/** A transfer in a list. `nearestInvoice` belongs to the likeliest reason; `claimedBy`: invoices whose payers looked it up. */
export const ListedTransferView = Type.Object({
  transferId: Type.String(),
  txId: Type.String(),
  logIndex: Type.Integer(),
  time: Time,
  amount: Type.String(),
  from: Type.String(),
  to: Type.String(),
  kind: Kind,
  invoice: nullable(NamedInvoiceView),
  reason: nullable(Type.Object({ code: Type.Enum(CAUSE_CODES), confidence: Confidence })),
  nearestInvoice: nullable(NamedInvoiceView),
  claimedBy: Type.Array(NamedInvoiceView),
  resolution: nullable(Type.Enum(RESOLUTIONS)),
});
export type ListedTransferView = Static<typeof ListedTransferView>;

/** `nextBefore`: the last transfer of this page, if there is another. */
export const TransferListView = Type.Object({
  data: Type.Array(ListedTransferView),
  nextBefore: nullable(Type.String()),
});
export type TransferListView = Static<typeof TransferListView>;

export const CauseView = Type.Object({
  code: Type.Enum(CAUSE_CODES),
  confidence: Confidence,
  explanation: Type.String(),
  evidence: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()])),
  invoices: Type.Array(Type.Object({ ...named, payableAmount: Type.String(), difference: Type.String() })),
});
export type CauseView = Static<typeof CauseView>;

/** By which a transfer was sent back: `from` one of our addresses, `to` its sender. */
export const RefundView = Type.Object({
  ...{ txId: Type.String(), logIndex: Type.Integer(), blockNumber: Type.Integer(), blockTime: Time },
  ...{ from: Type.String(), to: Type.String(), amount: Type.String() },
});
export type RefundView = Static<typeof RefundView>;

/** An event about a transfer, with one delivery of it. */
export const TransferEventView = Type.Object({
  eventId: Type.String(),
  type: Type.String(),
  createdAt: Time,
  delivery: nullable(
    Type.Object({
      endpointId: Type.String(),
      status: Type.Enum(['pending', 'delivered', 'dead']),
      isEndpointDisabled: Type.Boolean(),
      attempts: Type.Integer(),
      nextAttemptAt: nullable(Time),
      finishedAt: nullable(Time),
      lastStatus: nullable(Type.Integer()),
      lastError: nullable(Type.String()),
    }),
  ),
});
export type TransferEventView = Static<typeof TransferEventView>;

/** All that is known of one transfer. */
export const TransferView = Type.Object({
  transferId: Type.String(),
  projectId: Type.String(),
  network: Type.String(),
  kind: Kind,
  amount: Type.String(),
  from: Type.String(),
  to: Type.String(),
  toRetiredAt: nullable(Time),
  time: Time,
  txId: Type.String(),
  logIndex: Type.Integer(),
  evidence: Type.Object({
    blockNumber: Type.Integer(),
    blockId: Type.String(),
    producer: nullable(Type.String()),
    verified: Type.String(),
    nodes: Type.Array(Type.String()),
    recordedAt: Time,
  }),
  invoice: nullable(NamedInvoiceView),
  takenBack: nullable(Type.Object({ deniedBy: Type.String(), at: Time, by: Type.String(), reason: Type.String() })),
  refund: nullable(RefundView),
  causes: Type.Array(CauseView),
  /** Invoices whose payers looked the transfer up. */
  claims: Type.Array(Type.Object({ invoice: NamedInvoiceView, claimedAt: Time })),
  events: Type.Array(TransferEventView),
  resolutions: Type.Array(ResolutionView),
});
export type TransferView = Static<typeof TransferView>;

export const ShownTransfersView = Type.Object({ data: Type.Array(TransferView) });
export type ShownTransfersView = Static<typeof ShownTransfersView>;

/** The new resolution, and the one that was in force before. */
export const ResolvedView = Type.Object({
  ...ResolutionView.properties,
  transfers: Type.Array(Type.Object({ transferId: Type.String(), before: nullable(ResolutionView) })),
});
export type ResolvedView = Static<typeof ResolvedView>;

/** The new resolution, and what it rests on. */
export const RefundedView = Type.Object({
  ...ResolvedView.properties,
  refund: RefundView,
});
export type RefundedView = Static<typeof RefundedView>;
