import { encodeId, uuidV7 } from './ids.ts';
import type { InvoiceStatus } from './invoice.ts';
import { formatAmount, type MicroUsdt } from './money.ts';
import { WIRE_NETWORK } from './network.ts';
import type { ResolutionKind } from './resolution.ts';
import { toIso, type UnixMs } from './time.ts';

export const INVOICE_EVENTS = {
  PENDING: 'invoice.pending',
  CONFIRMING: 'invoice.confirming',
  PAID: 'invoice.paid',
  EXPIRED: 'invoice.expired',
} as const satisfies Record<InvoiceStatus, string>;

/** All types of events. Receivers must ignore unknown types, because this list grows. */
export const EVENT_TYPES = [
  ...Object.values(INVOICE_EVENTS),
  'transfer.unmatched',
  'transfer.duplicate',
  'transfer.refunded',
  'transfer.claimed',
  'transfer.resolved',
  'endpoint.disabled',
  'ping',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/** The length of the longest type, for text columns. */
export const EVENT_TYPE_WIDTH = Math.max(...EVENT_TYPES.map(({ length }) => length));

/**
 * Whether an endpoint later receives an event that it missed. `if planned`: only if the event was planned for this endpoint, because other
 * endpoints can't use it. `if asked for`: only if the type is requested explicitly, because the event's content is out of date by then.
 */
const RETOLD: Readonly<Record<EventType, 'always' | 'if planned' | 'if asked for'>> = {
  'invoice.pending': 'always',
  'invoice.confirming': 'always',
  'invoice.paid': 'always',
  'invoice.expired': 'always',
  'transfer.unmatched': 'always',
  'transfer.duplicate': 'always',
  'transfer.refunded': 'always',
  'transfer.claimed': 'always',
  'transfer.resolved': 'always',
  'endpoint.disabled': 'if planned',
  ping: 'if asked for',
};

/** The event types that an endpoint can miss even though they were never planned for it. */
export const MISSABLE_TYPES = EVENT_TYPES.filter((type) => RETOLD[type] === 'always');

/** The types that a replay sends if the request doesn't specify any. */
export const REPLAYED_TYPES = EVENT_TYPES.filter((type) => RETOLD[type] !== 'if asked for');

/** The fields that `projectInvoice` uses. `id` is a UUID; `checkoutToken` is the base58 text in the checkout link. */
export type ProjectedInvoice = {
  id: string;
  externalId: string;
  status: InvoiceStatus;
  checkoutToken: string;
  expiresAt: UnixMs;
};

/** Returns the fields of an invoice in the API and in events: exactly these five. */
export function projectInvoice(invoice: ProjectedInvoice, publicUrl: string) {
  return {
    invoiceId: encodeId('inv', invoice.id),
    externalId: invoice.externalId,
    status: invoice.status,
    checkoutUrl: `${publicUrl}/c/${invoice.checkoutToken}`,
    expiresAt: toIso(invoice.expiresAt),
  };
}

/** A transfer as the API shows it. `txId` is 64 hex characters; `from` is a base58 address. */
export type SeenTransfer = {
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockTime: UnixMs;
  from: string;
  amountMicro: MicroUsdt;
};

/** `headNumber` is the newest examined block, in which a transaction has one confirmation. */
export function describePayment(
  invoice: { requestedMicro: MicroUsdt; payableMicro: MicroUsdt; address: string },
  transaction: (SeenTransfer & { late: boolean; headNumber: number }) | null,
) {
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

/** Describes a transfer for lists and event data. `invoiceId` is the invoice that had already been paid. */
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

/** The transfer that refunded another one: it went from one of the project's addresses to the sender, with exactly the same amount. */
type SeenRefund = { txId: string; logIndex: number; blockNumber: number; blockTime: UnixMs; from: string };

/** Describes the refund for lists and for `transfer.refunded` data, which also contains the data in other transfer events. */
export function describeRefund(
  { txId, logIndex, blockNumber, blockTime, from }: SeenRefund,
  { from: to, amountMicro }: { from: string; amountMicro: MicroUsdt },
) {
  return { txId, logIndex, blockNumber, blockTime: toIso(blockTime), from, to, amount: formatAmount(amountMicro) };
}

/** Describes a decision for `transfer.resolved` data, which also contains the transfer. The operator's note and name stay private. */
export function describeDecision({
  resolution: kind,
  invoice,
  resolvedAt,
}: {
  resolution: ResolutionKind;
  /** The invoice that the money was meant for. `id` is a UUID. */
  invoice: { id: string; externalId: string; status: InvoiceStatus } | null;
  resolvedAt: UnixMs;
}) {
  const named = invoice && {
    invoiceId: encodeId('inv', invoice.id),
    externalId: invoice.externalId,
    status: invoice.status,
  };
  return { kind, invoice: named, resolvedAt: toIso(resolvedAt) };
}

/**
 * An event that has no id yet. The ids in it are UUIDs. `sequence` counts an invoice's events from 1 without gaps; for other events it's 1.
 */
export type EventDraft = {
  type: EventType;
  projectId: string;
  invoiceId: string | null;
  transferId: string | null;
  sequence: number;
  data: object;
};

/**
 * Creates an event with its id and its stored body. The body is built only once, because every attempt must send the same bytes. `index` is
 * the event's position within a database transaction. It makes the ids of a transaction's events increase in delivery order.
 */
export function newEvent(
  { data, ...draft }: EventDraft,
  { timestamp, random, index = 0 }: { timestamp: UnixMs; random(bytes: number): Uint8Array; index?: number },
): Omit<EventDraft, 'data'> & { id: string; body: string } {
  const id = uuidV7(timestamp, random(10), index);
  return { ...draft, id, body: eventBody({ ...draft, id, timestamp, data }) };
}

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
