import { assertNever } from '../../domain/assert-never.ts';
import { encodeId } from '../../domain/ids.ts';
import { isLate } from '../../domain/invoice.ts';
import type { Cause } from '../../domain/mismatch.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import type { TimelineEntry } from '../../domain/timeline.ts';
import type { ExplainedOutgoing } from '../../store/explain-address.ts';
import type { ExplainedTransfer } from '../../store/explain-transfers.ts';
import type { Resolution } from '../../store/transfer-desk.ts';
import { accountToAddress } from '../../tron/address.ts';
import { shorten } from './explanation.ts';

/** An incoming transfer, why it may fit nothing (best first), and what operators did about it (oldest first). */
export type ToldTransfer = {
  transfer: ExplainedTransfer;
  causes: readonly Cause[];
  resolutions: readonly Resolution[];
};

/** Its block with the evidence, what was decided, and what was done about it. */
export function tellTransfer({ transfer, causes, resolutions }: ToldTransfer): TimelineEntry[] {
  return [tellBlock(transfer), tellDecision(transfer, causes), ...resolutions.map(tellResolution)];
}

function tellBlock(transfer: ExplainedTransfer): TimelineEntry {
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

function tellDecision(transfer: ExplainedTransfer, causes: readonly Cause[]): TimelineEntry {
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
      return { ...entry, text, ...tellCauses(causes, data) };
    }
    case 'unmatched': {
      const text = 'no invoice reserves this amount on this address: this transfer pays nothing';
      return { ...entry, text, ...tellCauses(causes, data) };
    }
    default:
      return assertNever(kind);
  }
}

function tellCauses(causes: readonly Cause[], data: { transferId: string }): Pick<TimelineEntry, 'details' | 'data'> {
  return {
    details: [data.transferId, ...causes.map((cause) => `likely (${cause.confidence}): ${cause.explanation}`)],
    data: { ...data, causes: causes.map(describeCause) },
  };
}

/** For machines, with the ids and amounts as they are everywhere else. */
function describeCause({ invoices, ...cause }: Cause): object {
  return {
    ...cause,
    invoices: invoices.map(({ id, externalId, status, payableMicro }) => {
      return { invoiceId: encodeId('inv', id), externalId, status, payableAmount: formatAmount(payableMicro) };
    }),
  };
}

function tellResolution({ transferId, resolution, note, invoice, resolvedBy, resolvedAt }: Resolution): TimelineEntry {
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

/** A transfer that left one of our addresses. */
export function tellOutgoing(transfer: ExplainedOutgoing): TimelineEntry {
  const { address, to, txId, logIndex, blockNumber, blockId, verified, nodes, network } = transfer;
  const amount = formatAmount(transfer.amountMicro);
  return {
    at: transfer.blockTime,
    kind: 'sent',
    text: `${amount} USDT left ${address} for ${to}, in block ${blockNumber}`,
    details: [`transaction ${txId}, log ${logIndex}`, describeVerified(verified, nodes)],
    data: { txId, logIndex, amount, from: address, to, network, blockNumber, blockId, verified, nodes },
  };
}

/** For a verdict: `24.000000 USDT from T… at 2026-09-01T12:00:00.000Z`. */
export function nameTransfer({ amountMicro, from, blockTime }: ExplainedTransfer): string {
  return `${formatAmount(amountMicro)} USDT from ${from} at ${toIso(blockTime)}`;
}
