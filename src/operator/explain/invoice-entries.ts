import type { EventType } from '../../domain/event.ts';
import { encodeId } from '../../domain/ids.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import type { TimelineEntry } from '../../domain/timeline.ts';
import { shorten } from '../input/clip.ts';
import type { ExplainedSighting } from './candidate-queries.ts';
import { type ExplainedEvent, transactionOf } from './event-queries.ts';
import type { InvoiceFacts } from './invoice-facts.ts';
import type { ExplainedInvoice } from './invoice-queries.ts';

/** Tells which key asked for the invoice, and which amount and address were reserved for it. */
export function describeCreation(invoice: ExplainedInvoice): TimelineEntry[] {
  const { apiKey, idempotencyKey, externalId, createdAt, expiresAt, address, policy, requestedMicro, payableMicro } =
    invoice;
  const [requestedAmount, payableAmount] = [formatAmount(requestedMicro), formatAmount(payableMicro)];
  const apiKeyId = apiKey && encodeId('key', apiKey.id);
  const reason =
    policy === 'exact'
      ? 'policy exact: the requested amount itself, on an address where nobody else has it'
      : `policy ${policy}: ${formatAmount(microUsdt(payableMicro - requestedMicro))} more than requested, which nobody else has there`;
  return [
    {
      at: createdAt,
      kind: 'requested',
      text: `${requestedAmount} USDT for ${shorten(externalId)}`,
      details: [
        apiKey === null
          ? 'by which key is not known: that was not noted then'
          : `by ${apiKeyId}${apiKey.name === null ? '' : ` (${shorten(apiKey.name)})`}`,
        `Idempotency-Key: ${shorten(idempotencyKey)}`,
      ],
      data: { apiKeyId, apiKeyName: apiKey?.name ?? null, idempotencyKey, externalId, requestedAmount },
    },
    {
      at: createdAt,
      kind: 'allocated',
      text: `exactly ${payableAmount} USDT at ${address}, reserved for ever`,
      details: [reason, `to be paid until ${toIso(expiresAt)}`],
      data: { payableAmount, address, policy, expiresAt: toIso(expiresAt) },
    },
    ...describeWithdrawal(invoice),
  ];
}

function describeWithdrawal({ withdrawnAt: at }: ExplainedInvoice): TimelineEntry[] {
  if (at === null) return [];
  const text = 'by the shop: its page shows no way to pay; a payment that comes all the same pays';
  return [{ at, kind: 'withdrawn', text, details: [], data: {} }];
}

/** Tells what the chain showed before anything was irreversible, and the deadline. */
export function describeStatuses({ events, sightings }: Pick<InvoiceFacts, 'events' | 'sightings'>): TimelineEntry[] {
  const list = events.map(({ event }) => event);
  const described = list.flatMap((event, index) => DESCRIBE_STATUS[event.type]?.(event, list[index - 1]) ?? []);
  const known = new Set(list.map(transactionOf).map((sent) => sent && `${sent.txId} ${sent.blockNumber}`));
  const moved = sightings.filter(({ txId, blockNumber }) => !known.has(`${txId} ${blockNumber}`));
  return [...described, ...moved.map(describeSighting)];
}

type DescribeStatus = (event: ExplainedEvent, before: ExplainedEvent | undefined) => TimelineEntry[];

/** The status that each event tells of; `null`: it tells of none, or transfers and deliveries have entries of their own. */
const DESCRIBE_STATUS: Readonly<Record<EventType, DescribeStatus | null>> = {
  'invoice.confirming': describeDetected,
  'invoice.pending': (event, before) => describeOrphaned(event, before, ': PENDING again'),
  'invoice.expired': (event, before) =>
    before?.type === 'invoice.confirming'
      ? describeOrphaned(event, before, ', and the deadline is over: EXPIRED, still payable')
      : describeExpired(event),
  'invoice.paid': null,
  'transfer.unmatched': null,
  'transfer.duplicate': null,
  'transfer.refunded': null,
  'transfer.claimed': null,
  'transfer.resolved': null,
  'endpoint.disabled': null,
  ping: null,
};

function describeDetected(event: ExplainedEvent): TimelineEntry[] {
  const at = event.createdAt;
  const transaction = transactionOf(event);
  if (transaction === null) return [];
  const { txId, blockNumber, blockTime, from, amount } = transaction;
  const text = `exactly ${amount} USDT from ${from} in block ${blockNumber} of ${blockTime}, not irreversible yet: CONFIRMING`;
  const data = { txId, blockNumber, blockTime, from, amount };
  return [{ at, kind: 'sighted', text, details: [`transaction ${txId}`], data }];
}

function describeOrphaned(
  { createdAt: at }: ExplainedEvent,
  before: ExplainedEvent | undefined,
  status: string,
): TimelineEntry[] {
  const { txId = null, blockNumber = null } = (before && transactionOf(before)) ?? {};
  const block = blockNumber === null ? 'its block' : `block ${blockNumber}`;
  const text = `${block} is no longer on the chain, and the transfer with it${status}`;
  return [{ at, kind: 'orphaned', text, details: [], data: { txId, blockNumber } }];
}

function describeExpired({ createdAt: at }: ExplainedEvent): TimelineEntry[] {
  const text = 'all blocks up to the deadline were examined, and none had the exact transfer: EXPIRED, still payable';
  return [{ at, kind: 'expired', text, details: [], data: {} }];
}

/** A sighting that stands now. */
export function describeSighting(sighting: ExplainedSighting): TimelineEntry {
  const { txId, logIndex, blockNumber, blockId, blockTime, from, invoiceId, externalId } = sighting;
  const amount = formatAmount(sighting.amountMicro);
  return {
    at: blockTime,
    kind: 'sighted',
    text: `exactly ${amount} USDT from ${from}, what ${shorten(externalId)} waits for, in block ${blockNumber}, not irreversible yet`,
    details: [`transaction ${txId}, log ${logIndex}`, `block id ${blockId}`],
    data: { txId, logIndex, blockNumber, blockId, from, amount, invoiceId: encodeId('inv', invoiceId), externalId },
  };
}
