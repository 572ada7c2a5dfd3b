import { formatSigned } from '../../chain/reconcile/reconcile-address.ts';
import { assertNever } from '../../domain/assert-never.ts';
import { BURNED_TO } from '../../domain/contract-event.ts';
import { encodeId } from '../../domain/ids.ts';
import { isLate } from '../../domain/invoice.ts';
import type { Fit } from '../../domain/mismatch/fit-invoice.ts';
import type { Cause } from '../../domain/mismatch.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import type { TimelineEntry } from '../../domain/timeline.ts';
import type { Annulment } from '../../store/ledger/standing.ts';
import { soundRefund } from '../../store/ledger/transfer-refunds.ts';
import { accountToAddress } from '../../tron/address.ts';
import { shorten } from '../input/clip.ts';
import type { Resolution, TransferRecord } from '../subjects/transfer-records.ts';
import { viewCause } from '../subjects/transfers.ts';
import type { ExplainedOutgoing } from './address-queries.ts';
import type { Step } from './explanation.ts';

/**
 * An incoming transfer, why it may fit nothing (best first), how it fits the invoice that was asked about (`null` if it hardly
 * does, or none was), and what operators did about it (oldest first).
 */
export type DescribedTransfer = {
  transfer: TransferRecord;
  causes: readonly Cause[];
  fit: Fit | null;
  resolutions: readonly Resolution[];
};

/** Its block with the evidence, what was decided, and what was done about it. */
export function describeTransfer({ transfer, causes, fit, resolutions }: DescribedTransfer): TimelineEntry[] {
  const { annulment } = transfer;
  return [
    describeBlock(transfer),
    describeDecision(transfer, causes, fit),
    ...resolutions.map(describeResolution),
    ...(annulment === null ? [] : [toAnnulmentEntry(annulment, { transferId: encodeId('trf', transfer.id) })]),
  ];
}

function describeBlock(transfer: TransferRecord): TimelineEntry {
  const { txId, logIndex, blockNumber, blockId, from, address, nodes, verified } = transfer;
  const amount = formatAmount(transfer.amountMicro);
  const producer = transfer.producer === null ? null : accountToAddress(transfer.producer);
  return {
    at: transfer.blockTime,
    kind: 'transferred',
    text: `${amount} USDT from ${from} to ${address}, in block ${blockNumber}`,
    details: [
      `transaction ${txId}, log ${logIndex}`,
      `block id ${blockId}, made by ${producer ?? 'a producer that is not known: it was not noted then'}`,
      describeVerified(verified, nodes),
    ],
    data: {
      transferId: encodeId('trf', transfer.id),
      txId,
      logIndex,
      amount,
      from,
      to: address,
      network: transfer.network,
      blockNumber,
      blockId,
      producer,
      verified,
      nodes,
    },
  };
}

function describeVerified(verified: string, nodes: readonly string[]): string {
  const shownBy = nodes.length === 0 ? '' : `; shown by ${nodes.join(', ')}`;
  if (verified === 'proven') return `proven: the block's signed header commits to it${shownBy}`;
  if (verified === 'single-node') return `believed from a single node${shownBy}`;
  return `agreed: ${verified.replace('agreed:', '')} operators showed the same${shownBy}`;
}

function describeDecision(transfer: TransferRecord, causes: readonly Cause[], fit: Fit | null): TimelineEntry {
  const { kind, invoice } = transfer;
  const name = invoice === null ? '' : shorten(invoice.externalId);
  const late = invoice !== null && isLate(transfer.blockTime, invoice.expiresAt);
  const data = {
    transferId: encodeId('trf', transfer.id),
    ...(invoice === null ? {} : { invoiceId: encodeId('inv', invoice.id), externalId: invoice.externalId, late }),
  };
  const entry = { at: transfer.decidedAt, kind };
  switch (kind) {
    case 'matched': {
      const when = late ? 'after its deadline, which counts all the same' : 'in time';
      const text = `the block is irreversible, and this is exactly the amount of ${name}: it is PAID, ${when}`;
      return { ...entry, text, details: [], data };
    }
    case 'duplicate': {
      const text = `exactly the amount of ${name}, which was PAID before: this transfer pays nothing`;
      return { ...entry, text, ...describeCauses(causes, fit, data) };
    }
    case 'unmatched': {
      const text = 'no invoice reserves this amount on this address: this transfer pays nothing';
      return { ...entry, text, ...describeCauses(causes, fit, data) };
    }
    default:
      return assertNever(kind);
  }
}

function describeCauses(
  causes: readonly Cause[],
  fit: Fit | null,
  data: { transferId: string },
): Pick<TimelineEntry, 'details' | 'data'> {
  const [likeliest] = causes;
  const isSame =
    likeliest !== undefined &&
    likeliest.code === fit?.cause.code &&
    likeliest.confidence === fit.cause.confidence &&
    likeliest.invoices[0]?.id === fit.cause.invoices[0]?.id;
  return {
    details: [
      data.transferId,
      ...(fit === null || isSame ? [] : [`for this invoice (${fit.cause.confidence}): ${fit.cause.explanation}`]),
      ...causes.flatMap((cause) => [`likely (${cause.confidence}): ${cause.explanation}`, ...listNear(cause)]),
    ],
    data: {
      ...data,
      ...(fit === null ? {} : { forThisInvoice: viewCause(fit.cause) }),
      causes: causes.map(viewCause),
    },
  };
}

/** The nearest first, where one has to choose among several. */
function listNear({ code, invoices }: Cause): string[] {
  if (invoices.length < 2 || code === 'SUM_OF_INVOICES') return [];
  const names = invoices.map(({ externalId, payableMicro, status, differenceMicro }) => {
    return `${shorten(externalId, 40)} ${formatAmount(payableMicro)} ${status} (${formatSigned(differenceMicro)})`;
  });
  return [`  near: ${names.join(', ')}`];
}

function describeResolution({
  transferId,
  resolution,
  note,
  invoice,
  resolvedBy,
  resolvedAt,
}: Resolution): TimelineEntry {
  const id = encodeId('trf', transferId);
  const linked = invoice === null ? '' : `, for ${shorten(invoice.externalId)}`;
  return {
    at: resolvedAt,
    kind: 'resolved',
    text: `${shorten(resolvedBy)} resolved the transfer as ${resolution}${linked}`,
    details: [id, ...(note === '' ? [] : [`note: ${shorten(note, 300)}`])],
    data: {
      transferId: id,
      resolution,
      note,
      by: resolvedBy,
      invoiceId: invoice && encodeId('inv', invoice.id),
      externalId: invoice?.externalId ?? null,
    },
  };
}

/** `data` names the transfer. */
function toAnnulmentEntry({ deniedBy, at, by, reason }: Annulment, data: TimelineEntry['data']): TimelineEntry {
  return {
    at,
    kind: 'taken-back',
    text: `${shorten(by)} took the transfer back, because the chain denies it: it counts no more`,
    details: [`reason: ${shorten(reason, 300)}`, `the chain has block ${deniedBy} there`],
    data: { ...data, by, reason, deniedBy },
  };
}

/** For a verdict: by whom, when and why a transfer was taken back. */
export function describeAnnulment({ at, by, reason }: Annulment): string {
  return `the chain denies this transfer: ${shorten(by)} took it back at ${toIso(at)} (${shorten(reason)})`;
}

/** Behind a resolution: by which transaction it was sent back. */
export function describeRefund(transfer: Pick<TransferRecord, 'refund'>): string {
  const refund = soundRefund(transfer.refund);
  return refund === null ? '' : `, and sent it back in transaction ${refund.txId}`;
}

/** The transfer (`trf_…`) that an outgoing one sent back. */
export function refundedBy({ refundOf, annulment }: Pick<ExplainedOutgoing, 'refundOf' | 'annulment'>): string | null {
  return refundOf?.isSound === true && annulment === null ? encodeId('trf', refundOf.transferId) : null;
}

export function stepToRefunded(outgoing: ExplainedOutgoing): Step[] {
  const refunded = refundedBy(outgoing);
  return refunded === null
    ? []
    : [{ says: 'what it sent back', hint: { command: 'transfers show', args: [refunded] } }];
}

/** A transfer that left one of our addresses. */
export function describeOutgoing(transfer: ExplainedOutgoing): TimelineEntry[] {
  const { txId, logIndex, annulment } = transfer;
  return [describeSent(transfer), ...(annulment === null ? [] : [toAnnulmentEntry(annulment, { txId, logIndex })])];
}

const NOBODY = accountToAddress(BURNED_TO);

function describeSent(transfer: ExplainedOutgoing): TimelineEntry {
  const refunded = refundedBy(transfer);
  const { address, to, txId, logIndex, blockNumber, blockId, verified, nodes, network } = transfer;
  const amount = formatAmount(transfer.amountMicro);
  return {
    at: transfer.blockTime,
    kind: 'sent',
    text:
      to === NOBODY
        ? `Tether destroyed ${amount} USDT that ${address} held, in block ${blockNumber}`
        : `${amount} USDT left ${address} for ${to}, in block ${blockNumber}`,
    details: [
      `transaction ${txId}, log ${logIndex}`,
      ...(refunded === null ? [] : [`the refund of ${refunded}`]),
      describeVerified(verified, nodes),
    ],
    data: {
      ...{ txId, logIndex, amount, from: address, to, network, blockNumber, blockId, verified, nodes },
      ...(refunded === null ? {} : { refundOf: refunded }),
    },
  };
}

/** For a verdict: `24.000000 USDT from T… at 2026-09-01T12:00:00.000Z (trf_…)`, by the id that resolves it. */
export function nameOpenTransfer(transfer: TransferRecord): string {
  return `${nameTransfer(transfer)} (${encodeId('trf', transfer.id)})`;
}

/** The step for a transfer that paid nothing. */
export function hintResolve({ id }: TransferRecord): Step {
  const hint = { command: 'transfers resolve', args: [encodeId('trf', id)], input: { resolution: '…' } };
  return { says: 'when you have decided', hint };
}

/** For a verdict: `24.000000 USDT from T… at 2026-09-01T12:00:00.000Z`. */
export function nameTransfer({ amountMicro, from, blockTime }: TransferRecord): string {
  return `${formatAmount(amountMicro)} USDT from ${from} at ${toIso(blockTime)}`;
}
