import { encodeId } from '../../domain/ids.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import type { TimelineEntry } from '../../domain/timeline.ts';
import type { ExplainedSighting } from '../../store/explain-candidates.ts';
import type { ExplainedEvent } from '../../store/explain-events.ts';
import type { ExplainedInvoice } from '../../store/explain-invoice.ts';
import { shorten } from './explanation.ts';
import type { InvoiceFacts } from './invoice-facts.ts';

/** Who asked for the invoice, and what was reserved for it. */
export function tellCreation(invoice: ExplainedInvoice): TimelineEntry[] {
  const { apiKey, idempotencyKey, externalId, createdAt, expiresAt, address, requestedMicro, payableMicro } = invoice;
  const [requestedAmount, payableAmount] = [formatAmount(requestedMicro), formatAmount(payableMicro)];
  const apiKeyId = apiKey && encodeId('key', apiKey.id);
  const { policy } = address;
  const reason =
    policy === 'exact'
      ? 'policy exact: the requested amount itself, on an address where nobody else has it'
      : `policy tail: ${formatAmount(microUsdt(payableMicro - requestedMicro))} more than requested, which nobody else has there`;
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
      text: `exactly ${payableAmount} USDT at ${address.address}, reserved for ever`,
      details: [reason, `to be paid until ${toIso(expiresAt)}`],
      data: { payableAmount, address: address.address, policy, expiresAt: toIso(expiresAt) },
    },
  ];
}

/** What the chain showed before anything was irreversible, and the deadline. */
export function tellStatuses({ events, sightings }: Pick<InvoiceFacts, 'events' | 'sightings'>): TimelineEntry[] {
  const list = events.map(({ event }) => event);
  const told = list.flatMap((event, index) => tellStatus(event, list[index - 1]));
  const known = new Set(list.map(({ transaction }) => transaction && `${transaction.txId} ${transaction.blockNumber}`));
  const moved = sightings.filter(({ txId, blockNumber }) => !known.has(`${txId} ${blockNumber}`));
  return [...told, ...moved.map(tellSighting)];
}

function tellStatus(event: ExplainedEvent, before: ExplainedEvent | undefined): TimelineEntry[] {
  const { type, createdAt: at, transaction } = event;
  const wasSighted = before?.type === 'invoice.confirming';
  const block = before?.transaction == null ? 'its block' : `block ${before.transaction.blockNumber}`;
  const lost = { txId: before?.transaction?.txId ?? null, blockNumber: before?.transaction?.blockNumber ?? null };
  switch (type) {
    case 'invoice.confirming': {
      if (transaction === null) return [];
      const { txId, blockNumber, blockTime, from, amount } = transaction;
      const text = `exactly ${amount} USDT from ${from} in block ${blockNumber} of ${blockTime}, not irreversible yet: CONFIRMING`;
      return [
        {
          at,
          kind: 'sighted',
          text,
          details: [`transaction ${txId}`],
          data: { txId, blockNumber, blockTime, from, amount },
        },
      ];
    }
    case 'invoice.pending': {
      const text = `${block} is no longer on the chain, and the transfer with it: PENDING again`;
      return [{ at, kind: 'orphaned', text, details: [], data: lost }];
    }
    case 'invoice.expired': {
      if (wasSighted) {
        const text = `${block} is no longer on the chain, and the transfer with it, and the deadline is over: EXPIRED, still payable`;
        return [{ at, kind: 'orphaned', text, details: [], data: lost }];
      }
      const text =
        'all blocks up to the deadline were examined, and none had the exact transfer: EXPIRED, still payable';
      return [{ at, kind: 'expired', text, details: [], data: {} }];
    }
    default:
      return [];
  }
}

/** A sighting that stands now. */
export function tellSighting(sighting: ExplainedSighting): TimelineEntry {
  const { txId, logIndex, blockNumber, blockId, blockTime, from, invoiceId, externalId } = sighting;
  const amount = formatAmount(microUsdt(sighting.amountMicro));
  return {
    at: blockTime,
    kind: 'sighted',
    text: `exactly ${amount} USDT from ${from}, what ${shorten(externalId)} waits for, in block ${blockNumber}, not irreversible yet`,
    details: [`transaction ${txId}, log ${logIndex}`, `block id ${blockId}`],
    data: { txId, logIndex, blockNumber, blockId, from, amount, invoiceId: encodeId('inv', invoiceId), externalId },
  };
}
