import { accountToAddress } from '@quittance/tron/address';
import { formatSigned } from '../../../core/chain/reconcile.ts';
import { BURNED_TO } from '../../../core/domain/contract-event.ts';
import type { EventType } from '../../../core/domain/event.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { isLate } from '../../../core/domain/invoice.ts';
import type { Cause } from '../../../core/domain/mismatch.ts';
import { formatAmount } from '../../../core/domain/money.ts';
import { describeRecorded } from '../../../core/domain/recorded-action.ts';
import { toIso } from '../../../core/domain/time.ts';
import type { TimelineEntry } from '../../../core/domain/timeline.ts';
import type { OperatorAction } from '../../../core/store/access/audit-log.ts';
import type { Annulment } from '../../../core/store/ledger/annulments.ts';
import { soundRefund } from '../../../core/store/ledger/transfer-refunds.ts';
import { shorten } from '../input/problems.ts';
import type { Resolution, TransferRecord } from '../subjects/transfer-export.ts';
import { viewCause } from '../subjects/transfers.ts';
import type { DescribedDelivery, DescribedEvent, DescribedTransfer } from './facts.ts';
import {
  type ExplainedAttempt,
  type ExplainedEvent,
  type ExplainedOutgoing,
  type ExplainedSighting,
  transactionOf,
} from './statements.ts';

/** Describes an operator's action on an address, a project or an endpoint. */
export function describeAction({ action, actedBy, actedAt, detail, subject }: OperatorAction): TimelineEntry {
  const known = Object.entries(detail).filter(([, value]) => value !== null && value !== '');
  const words = known.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return {
    ...{ at: actedAt, kind: 'operator', text: `${shorten(actedBy)} ${describeRecorded(action)}` },
    details: words.length === 0 ? [] : [shorten(words.join(', '), 300)],
    data: { action, by: actedBy, subject, detail },
  };
}

/** Describes the sightings, which weren't irreversible yet, and the deadline. */
export function describeStatuses({
  events,
  sightings,
}: {
  events: readonly DescribedEvent[];
  sightings: readonly ExplainedSighting[];
}): TimelineEntry[] {
  const list = events.map(({ event }) => event);
  const described = list.flatMap((event, index) => DESCRIBE_STATUS[event.type]?.(event, list[index - 1]) ?? []);
  const known = new Set(list.map(transactionOf).map((sent) => sent && `${sent.txId} ${sent.blockNumber}`));
  const moved = sightings.filter(({ txId, blockNumber }) => !known.has(`${txId} ${blockNumber}`));
  return [...described, ...moved.map(describeSighting)];
}

type DescribeStatus = (event: ExplainedEvent, before: ExplainedEvent | undefined) => TimelineEntry[];

/**
 * Describes the status that an event reports. `null` means that the event doesn't report a status, or that its transfers and deliveries
 * have their own entries.
 */
const DESCRIBE_STATUS: Readonly<Record<EventType, DescribeStatus | null>> = {
  'invoice.confirming': (event) => {
    const transaction = transactionOf(event);
    if (transaction === null) return [];
    const { txId, blockNumber, blockTime, from, amount } = transaction;
    const text = `exactly ${amount} USDT from ${from}, seen in block ${blockNumber} (${blockTime}); the block is not irreversible yet: CONFIRMING`;
    const data = { txId, blockNumber, blockTime, from, amount };
    return [{ at: event.createdAt, kind: 'sighted', text, details: [`transaction ${txId}`], data }];
  },
  'invoice.pending': (event, before) => describeOrphaned(event, before, ': PENDING again'),
  'invoice.expired': (event, before) => {
    if (before?.type === 'invoice.confirming')
      return describeOrphaned(event, before, ', and the deadline has passed: EXPIRED, still payable');
    const text = 'no block up to the deadline contains the exact transfer: EXPIRED, still payable';
    return [{ at: event.createdAt, kind: 'expired', text, details: [], data: {} }];
  },
  'invoice.paid': null,
  'transfer.unmatched': null,
  'transfer.duplicate': null,
  'transfer.refunded': null,
  'transfer.claimed': null,
  'transfer.resolved': null,
  'endpoint.disabled': null,
  ping: null,
};

function describeOrphaned(
  { createdAt: at }: ExplainedEvent,
  before: ExplainedEvent | undefined,
  status: string,
): TimelineEntry[] {
  const { txId = null, blockNumber = null } = (before && transactionOf(before)) ?? {};
  const block = blockNumber === null ? 'its block' : `block ${blockNumber}`;
  const text = `${block} was orphaned, so the transfer is no longer on the chain${status}`;
  return [{ at, kind: 'orphaned', text, details: [], data: { txId, blockNumber } }];
}

/** Describes a current sighting. */
export function describeSighting(sighting: ExplainedSighting): TimelineEntry {
  const { txId, logIndex, blockNumber, blockId, blockTime: at, from, invoiceId, externalId } = sighting;
  const amount = formatAmount(sighting.amountMicro);
  const text = `exactly ${amount} USDT from ${from}, the payable amount of ${shorten(externalId)}, seen in block ${blockNumber}; the block is not irreversible yet`;
  return {
    ...{ at, kind: 'sighted', text, details: [`transaction ${txId}, log ${logIndex}`, `block id ${blockId}`] },
    data: { txId, logIndex, blockNumber, blockId, from, amount, invoiceId: encodeId('inv', invoiceId), externalId },
  };
}

/** Describes a transfer: its block and evidence, the match, and what operators did about it. */
export function timelineOfTransfer(described: DescribedTransfer): TimelineEntry[] {
  const { transfer, resolutions } = described;
  const { txId, logIndex, blockNumber, blockId, from, address: to, network, nodes, verified, annulment } = transfer;
  const amount = formatAmount(transfer.amountMicro);
  const producer = transfer.producer === null ? null : accountToAddress(transfer.producer);
  const transferId = encodeId('trf', transfer.id);
  const block: TimelineEntry = {
    at: transfer.blockTime,
    kind: 'transferred',
    text: `${amount} USDT from ${from} to ${to}, in block ${blockNumber}`,
    details: [
      `transaction ${txId}, log ${logIndex}`,
      `block id ${blockId}, produced by ${producer ?? 'a producer that was not recorded at that time'}`,
      describeVerified(verified, nodes),
    ],
    data: {
      ...{ transferId, txId, logIndex, amount, from, to },
      ...{ network, blockNumber, blockId, producer, verified, nodes },
    },
  };
  return [
    block,
    describeDecision(described),
    ...resolutions.map(describeResolution),
    ...(annulment === null ? [] : [toAnnulmentEntry(annulment, { transferId })]),
  ];
}

function describeVerified(verified: string, nodes: readonly string[]): string {
  const source = nodes.length === 0 ? '' : `; nodes: ${nodes.join(', ')}`;
  if (verified === 'proven') return `proven by the block's signed header${source}`;
  if (verified === 'single-node') return `reported by a single node, without proof${source}`;
  return `confirmed by ${verified.replace('agreed:', '')} operators${source}`;
}

function describeDecision({ transfer, causes, fit }: DescribedTransfer): TimelineEntry {
  const { kind, invoice, decidedAt: at } = transfer;
  const name = invoice === null ? '' : shorten(invoice.externalId);
  const late = invoice !== null && isLate(transfer.blockTime, invoice.expiresAt);
  const transferId = encodeId('trf', transfer.id);
  const text = {
    matched: `the block is irreversible, and the amount is exactly the payable amount of ${name}: PAID ${late ? 'after its deadline, but the payment still counts' : 'in time'}`,
    duplicate: `exactly the payable amount of ${name}, but that invoice was already PAID: this transfer pays no invoice`,
    unmatched: 'no invoice has this amount on this address: this transfer pays no invoice',
  }[kind];
  const data = {
    transferId,
    ...(invoice === null ? {} : { invoiceId: encodeId('inv', invoice.id), externalId: invoice.externalId, late }),
  };
  if (kind === 'matched') return { at, kind, text, details: [], data };
  const [likeliest] = causes;
  const own = fit?.cause;
  const isSame =
    likeliest?.code === own?.code &&
    likeliest?.confidence === own?.confidence &&
    likeliest?.invoices[0]?.id === own?.invoices[0]?.id;
  return {
    ...{ at, kind, text },
    details: [
      transferId,
      ...(own === undefined || isSame ? [] : [`for this invoice (${own.confidence}): ${own.explanation}`]),
      ...causes.flatMap((cause) => [`likely (${cause.confidence}): ${cause.explanation}`, ...listNear(cause)]),
    ],
    data: {
      ...data,
      ...(own === undefined ? {} : { forThisInvoice: viewCause(own) }),
      causes: causes.map(viewCause),
    },
  };
}

/** Lists the closest invoices, closest first, if there are several. */
function listNear({ code, invoices }: Cause): string[] {
  if (invoices.length < 2 || code === 'SUM_OF_INVOICES') return [];
  const names = invoices.map(({ externalId, payableMicro, status, differenceMicro }) => {
    return `${shorten(externalId, 40)} ${formatAmount(payableMicro)} ${status} (${formatSigned(differenceMicro)})`;
  });
  return [`  closest invoices: ${names.join(', ')}`];
}

function describeResolution(resolved: Resolution): TimelineEntry {
  const { resolution, note, invoice, resolvedBy: by } = resolved;
  const transferId = encodeId('trf', resolved.transferId);
  const linked = invoice === null ? '' : `, for ${shorten(invoice.externalId)}`;
  const text = `${shorten(by)} resolved the transfer as ${resolution}${linked}`;
  return {
    ...{ at: resolved.resolvedAt, kind: 'resolved', text },
    details: [transferId, ...(note === '' ? [] : [`note: ${shorten(note, 300)}`])],
    data: {
      ...{ transferId, resolution, note, by, invoiceId: invoice && encodeId('inv', invoice.id) },
      externalId: invoice?.externalId ?? null,
    },
  };
}

/** `data` names the transfer. */
function toAnnulmentEntry({ deniedBy, at, by, reason }: Annulment, data: TimelineEntry['data']): TimelineEntry {
  const text = `${shorten(by)} removed the transfer because it is not on the chain; it no longer counts`;
  return {
    ...{ at, kind: 'taken-back', text },
    details: [`reason: ${shorten(reason, 300)}`, `the chain has the block ${deniedBy} at this height`],
    data: { ...data, by, reason, deniedBy },
  };
}

const NOBODY = accountToAddress(BURNED_TO);

/** Describes a transfer sent from one of our addresses. */
export function describeOutgoing(transfer: ExplainedOutgoing): TimelineEntry[] {
  const { address: from, to, txId, logIndex, blockNumber, blockId, verified, nodes, network, annulment } = transfer;
  const refundOf = refundedBy(transfer);
  const amount = formatAmount(transfer.amountMicro);
  const text =
    to === NOBODY
      ? `Tether destroyed ${amount} USDT that ${from} held, in block ${blockNumber}`
      : `${amount} USDT sent from ${from} to ${to}, in block ${blockNumber}`;
  const entry: TimelineEntry = {
    ...{ at: transfer.blockTime, kind: 'sent', text },
    details: [
      `transaction ${txId}, log ${logIndex}`,
      ...(refundOf === null ? [] : [`refund of ${refundOf}`]),
      describeVerified(verified, nodes),
    ],
    data: {
      ...{ txId, logIndex, amount, from, to, network, blockNumber, blockId, verified, nodes },
      ...(refundOf === null ? {} : { refundOf }),
    },
  };
  return [entry, ...(annulment === null ? [] : [toAnnulmentEntry(annulment, { txId, logIndex })])];
}

/** Describes an event, its deliveries and their attempts. */
export function describeEvent({ event, deliveries }: DescribedEvent): TimelineEntry[] {
  const { type, sequence, createdAt: at } = event;
  const eventId = encodeId('evt', event.id);
  const place = type.startsWith('invoice.') ? `, event ${sequence} of this invoice` : '';
  const details = deliveries?.length === 0 ? ['not sent, because no webhook endpoint was active at that time'] : [];
  return [
    { at, kind: 'event', text: `${type}${place}: ${eventId}`, details, data: { eventId, type, sequence } },
    ...(deliveries ?? []).flatMap((described) => describeDelivery(event, described)),
  ];
}

/**
 * Groups consecutive failures into one entry. Each successful attempt and the next attempt get their own entries. Attempts that weren't
 * logged appear only as their final result.
 */
export function describeDelivery(event: ExplainedEvent, described: DescribedDelivery): TimelineEntry[] {
  const runs: ExplainedAttempt[][] = [];
  for (const attempt of described.attempts) {
    const before = runs.at(-1);
    if (before === undefined || attempt.error === null || before.at(-1)?.error === null) runs.push([attempt]);
    else before.push(attempt);
  }
  const subject = `${event.type} to ${shorten(described.delivery.url)}`;
  return [...runs.flatMap((run) => describeRun(subject, described, run)), ...describeState(subject, described)];
}

/** How many of the newest failures in a group are listed individually. */
const MAX_LISTED = 10;

/** Describes one or more attempts: a receiver that is down for a day fails about 240. */
function describeRun(
  subject: string,
  { delivery }: DescribedDelivery,
  run: readonly ExplainedAttempt[],
): TimelineEntry[] {
  const before = run.length - 1;
  const others = before === 0 ? '' : `; the ${before === 1 ? 'attempt' : `${before} attempts`} before it also failed`;
  const list = run.map((made) => `${made.attempt} at ${toIso(made.at)}: ${describeOutcome(made)}`);
  return run.slice(-1).map(({ at, attempt, status, error }) => ({
    ...{ at, kind: 'attempt', text: `${attempt} of ${subject}: ${describeOutcome({ status, error })}${others}` },
    details: before === 0 ? [] : list.slice(-MAX_LISTED),
    data: {
      ...namesOf(delivery),
      ...(before === 0 ? {} : { firstAttempt: run[0]?.attempt, firstAt: run[0] && toIso(run[0].at) }),
      ...{ attempt, status, error, isDelivered: error === null && status !== null },
    },
  }));
}

/** Describes facts about a delivery that its log of attempts doesn't show. */
function describeState(subject: string, described: DescribedDelivery): TimelineEntry[] {
  const { delivery, attempts } = described;
  const { status, attemptCount, nextAttemptAt, finishedAt, endpointDisabled } = delivery;
  const last = describeOutcome(lastOf(delivery));
  const entry = { kind: 'delivery', details: [], data: { ...namesOf(delivery), status, attemptCount } } as const;
  if (status === 'delivered') {
    // Only a delivery from before attempts were logged needs this entry.
    if (attempts.length > 0 || finishedAt === null) return [];
    return [{ ...entry, at: finishedAt, text: `${subject}: ${last}, on attempt ${attemptCount}` }];
  }
  if (status === 'dead') {
    const text = `${subject} is dead after ${attemptCount} attempts: ${last}`;
    return [{ ...entry, at: finishedAt ?? nextAttemptAt, text }];
  }
  if (endpointDisabled !== null) {
    const text = `${subject} is waiting because the endpoint is disabled (${shorten(endpointDisabled.reason, 200)})`;
    return [{ ...entry, at: endpointDisabled.at, text }];
  }
  if (isInProgress(described)) {
    const text = `${subject}: attempt ${attemptCount} is in progress; if it returns no result, the next attempt follows immediately`;
    return [{ ...entry, at: nextAttemptAt, text }];
  }
  const before = isLogged(described) ? '' : `; last result: ${last}`;
  return [{ ...entry, at: nextAttemptAt, text: `${subject}: attempt ${attemptCount + 1} is due${before}` }];
}

/** If a delivery is older than the log of attempts, only its last outcome is known. */
function isLogged({ delivery, attempts }: DescribedDelivery): boolean {
  return attempts.length > 0 || (delivery.lastStatus === null && delivery.lastError === null);
}

/** Whether the newest counted attempt has no outcome yet: it's still running, or its process ended. */
export function isInProgress(described: DescribedDelivery): boolean {
  const { attempts, delivery } = described;
  const { attemptCount } = delivery;
  return isLogged(described) && attemptCount > 0 && !attempts.some(({ attempt }) => attempt === attemptCount);
}

type Outcome = Pick<ExplainedAttempt, 'status' | 'error'>;

/** Returns a text such as `delivered, HTTP 204`, or the error. Errors begin with the HTTP status if there was one. */
export function describeOutcome({ status, error }: Outcome): string {
  if (error !== null) return shorten(error, 200);
  return status === null ? 'not sent, because the order was paid in the meantime' : `delivered, HTTP ${status}`;
}

function lastOf({ lastStatus, lastError }: DescribedDelivery['delivery']): Outcome {
  return { status: lastStatus, error: lastError };
}

function namesOf({ eventId, endpointId, url }: DescribedDelivery['delivery']) {
  return { eventId: encodeId('evt', eventId), endpointId: encodeId('whe', endpointId), url };
}

export function describeAnnulment({ at, by, reason }: Annulment): string {
  return `this transfer is not on the chain: ${shorten(by)} took it back at ${toIso(at)} (${shorten(reason)})`;
}

/** Names the refund's transaction. The text is meant to follow a resolution. */
export function timelineOfRefund(transfer: Pick<TransferRecord, 'refund'>): string {
  const refund = soundRefund(transfer.refund);
  return refund === null ? '' : `, with the refund in transaction ${refund.txId}`;
}

/** Returns the transfer (`trf_…`) that an outgoing transfer refunded. */
export function refundedBy({ refundOf, annulment }: ExplainedOutgoing): string | null {
  return refundOf?.isSound === true && annulment === null ? encodeId('trf', refundOf.transferId) : null;
}
