import { encodeId } from './ids.ts';
import type { InvoiceStatus } from './invoice.ts';
import { formatAmount, type MicroUsdt } from './money.ts';
import { WIRE_NETWORK } from './network.ts';
import { toIso, type UnixMs } from './time.ts';

export const INVOICE_EVENTS = {
  PENDING: 'invoice.pending',
  CONFIRMING: 'invoice.confirming',
  PAID: 'invoice.paid',
  EXPIRED: 'invoice.expired',
} as const satisfies Record<InvoiceStatus, string>;

/** Every type of event. Receivers ignore those that they do not know, for this list grows. */
export const EVENT_TYPES = [
  ...Object.values(INVOICE_EVENTS),
  'transfer.unmatched',
  'transfer.duplicate',
  'endpoint.disabled',
  'ping',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/** What the API and the events say about an invoice: exactly these five fields. */
export type InvoiceProjection = {
  invoiceId: string;
  externalId: string;
  status: InvoiceStatus;
  checkoutUrl: string;
  expiresAt: string;
};

/** An invoice as the projection needs it. `id` is a UUID; `checkoutToken` is the base58 text in the link. */
export type ProjectedInvoice = {
  id: string;
  externalId: string;
  status: InvoiceStatus;
  checkoutToken: string;
  expiresAt: UnixMs;
};

export function projectInvoice(invoice: ProjectedInvoice, publicUrl: string): InvoiceProjection {
  return {
    invoiceId: encodeId('inv', invoice.id),
    externalId: invoice.externalId,
    status: invoice.status,
    checkoutUrl: `${publicUrl}/c/${invoice.checkoutToken}`,
    expiresAt: toIso(invoice.expiresAt),
  };
}

/** One transfer as the API shows it. `txId` is 64 hex characters; `from` is a base58 address. */
export type SeenTransfer = {
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockTime: UnixMs;
  from: string;
  amountMicro: MicroUsdt;
};

export type PaymentDetail = {
  requestedAmount: string;
  payableAmount: string;
  address: string;
  transaction: null | {
    txId: string;
    logIndex: number;
    blockNumber: number;
    blockTime: string;
    from: string;
    amount: string;
    late: boolean;
    confirmations: number;
  };
};

/** `headNumber` is the newest block that was examined; a transaction in it has one confirmation. */
export function describePayment(
  invoice: { requestedMicro: MicroUsdt; payableMicro: MicroUsdt; address: string },
  transaction: (SeenTransfer & { late: boolean; headNumber: number }) | null,
): PaymentDetail {
  return {
    requestedAmount: formatAmount(invoice.requestedMicro),
    payableAmount: formatAmount(invoice.payableMicro),
    address: invoice.address,
    transaction: transaction && {
      txId: transaction.txId,
      logIndex: transaction.logIndex,
      blockNumber: transaction.blockNumber,
      blockTime: toIso(transaction.blockTime),
      from: transaction.from,
      amount: formatAmount(transaction.amountMicro),
      late: transaction.late,
      confirmations: Math.max(1, transaction.headNumber - transaction.blockNumber + 1),
    },
  };
}

/** What `transfer.unmatched` and `transfer.duplicate` say. `invoiceId` names the invoice that was already paid. */
export function describeTransfer(
  transfer: SeenTransfer & { id: string; to: string; invoiceId: string | null },
): object {
  return {
    transferId: encodeId('trf', transfer.id),
    txId: transfer.txId,
    logIndex: transfer.logIndex,
    blockNumber: transfer.blockNumber,
    blockTime: toIso(transfer.blockTime),
    from: transfer.from,
    to: transfer.to,
    amount: formatAmount(transfer.amountMicro),
    ...(transfer.invoiceId === null ? {} : { invoiceId: encodeId('inv', transfer.invoiceId) }),
  };
}

/**
 * The stored body of an event. These bytes are sent unchanged on every attempt, so they are built once, here.
 * `sequence` counts the events of one invoice from 1 without a gap; an event about a transfer alone has sequence 1.
 */
export function eventBody(event: {
  id: string;
  type: EventType;
  timestamp: UnixMs;
  projectId: string;
  sequence: number;
  data: object;
}): string {
  return JSON.stringify({
    id: encodeId('evt', event.id),
    type: event.type,
    timestamp: toIso(event.timestamp),
    projectId: encodeId('prj', event.projectId),
    network: WIRE_NETWORK,
    sequence: event.sequence,
    data: event.data,
  });
}
