import { encodeId } from '../../domain/ids.ts';
import { formatAmount } from '../../domain/money.ts';
import { diagnoseTransfers } from '../../payments/mismatch/diagnose-transfers.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Annulment } from '../../store/ledger/standing.ts';
import type { Actor } from '../actor.ts';
import { shorten } from '../input/clip.ts';
import { findResolutions, findTransfersOfTransaction, type TransferRecord } from '../subjects/transfer-records.ts';
import { type ExplainedOutgoing, findOutgoingOfTransaction } from './address-queries.ts';
import { type ExplainedSighting, findSightingsOfInvoice, findSightingsOfTransaction } from './candidate-queries.ts';
import { describeTransaction, stepToInvoice, type Transaction } from './describe-transaction.ts';
import { describeEvent, readDeliveries } from './event-entries.ts';
import { findEventsOfTransfers } from './event-queries.ts';
import type { Explanation, Step } from './explanation.ts';
import { describeSighting } from './invoice-entries.ts';
import {
  type DescribedTransfer,
  describeAnnulment,
  describeOutgoing,
  describeRefund,
  describeTransfer,
  hintResolve,
  refundedBy,
  stepToRefunded,
} from './transfer-entries.ts';

/** A multisend may pay hundreds; this many are told. */
const MAX_TRANSFERS = 50;
const MAX_EVENTS = 100;

/** Every transfer of ours in a transaction, on any network; `null` if there is none. */
export async function explainTransaction(
  db: Sql,
  subject: Transaction,
  projects: Actor['projects'],
): Promise<Explanation | null> {
  const { txId } = subject;
  const found = await findTransfersOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  const left = await findOutgoingOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  const seen = await findSightingsOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  if (found.length + left.length + seen.length === 0) return null;
  const transfers = found.slice(0, MAX_TRANSFERS);
  const [outgoing, sightings] = [left.slice(0, MAX_TRANSFERS), seen.slice(0, MAX_TRANSFERS)];
  const ids = transfers.map(({ id }) => id);
  const causes = await diagnoseTransfers(db, ids);
  const resolutions = await findResolutions(db, ids);
  const described = transfers.map((transfer) => ({
    transfer,
    causes: causes.get(transfer.id) ?? [],
    fit: null,
    resolutions: resolutions.get(transfer.id) ?? [],
  }));
  const { events, deliveries } = await readDeliveries(db, await findEventsOfTransfers(db, ids, MAX_EVENTS));
  return {
    verdict: [
      ...described.slice(0, MAX_JUDGED).flatMap(judgeTransfer),
      ...(await judgeSightings(db, sightings.slice(0, MAX_JUDGED))),
      ...outgoing.slice(0, MAX_JUDGED).map(judgeOutgoing),
      ...judgeRest(described.length + sightings.length + outgoing.length),
    ],
    ...describeTransaction(subject),
    timeline: [
      ...described.flatMap(describeTransfer),
      ...outgoing.flatMap(describeOutgoing),
      ...sightings.map(describeSighting),
      ...events.flatMap(describeEvent),
    ],
    omissions: [
      ...[found, left, seen].map((all, index) => {
        const what = `${['incoming transfers', 'outgoing transfers', 'sightings'][index]} of the transaction, at least`;
        return { what, shown: Math.min(all.length, MAX_TRANSFERS), total: all.length };
      }),
      { what: 'deliveries of its events', ...deliveries },
    ],
    next: [...nextSteps(described, sightings), ...outgoing.slice(0, MAX_JUDGED).flatMap(stepToRefunded)],
  };
}

/** Sentences of a verdict for each kind of transfer. */
const MAX_JUDGED = 3;

function judgeTransfer({ transfer, causes, resolutions }: DescribedTransfer): string[] {
  const { kind, invoice, address, amountMicro, annulment } = transfer;
  const came = `${formatAmount(amountMicro)} USDT came to ${address}${kind === 'matched' ? '' : ` (${encodeId('trf', transfer.id)})`}`;
  const name = invoice === null ? '' : shorten(invoice.externalId, 60);
  if (annulment !== null) return [judgeAnnulled(transfer, annulment)];
  if (kind === 'matched') return [`${came} and paid ${name}.`];
  const last = resolutions.at(-1);
  const resolved =
    last === undefined
      ? 'it is not resolved'
      : `${shorten(last.resolvedBy)} resolved it as ${last.resolution}${describeRefund(transfer)}`;
  if (kind === 'duplicate') return [`${came} and pays nothing, because ${name} was PAID before; ${resolved}.`];
  const [likeliest] = causes;
  return [
    `${came} and pays nothing, because no invoice reserves that amount there; ${resolved}.`,
    ...(likeliest === undefined ? [] : [`Likely (${likeliest.confidence}): ${likeliest.explanation}`]),
  ];
}

function judgeAnnulled({ id, kind, invoice, address, amountMicro }: TransferRecord, annulment: Annulment): string {
  const recorded = `${formatAmount(amountMicro)} USDT to ${address} (${encodeId('trf', id)}) were recorded, and ${describeAnnulment(annulment)}`;
  if (kind !== 'matched' || invoice === null) return `${recorded}.`;
  return `${recorded}. It had made ${shorten(invoice.externalId, 60)} PAID, which is never left: that invoice was not paid by this.`;
}

/** If several exact transfers are on their way, the first one in the chain pays. */
async function judgeSightings(db: Sql, sightings: readonly ExplainedSighting[]): Promise<string[]> {
  const described: string[] = [];
  for (const { projectId, invoiceId, externalId, txId, logIndex, amountMicro, blockNumber } of sightings) {
    const [first] = await findSightingsOfInvoice(db, { projectId, id: invoiceId }, 1);
    const name = shorten(externalId, 60);
    const isFirst = first === undefined || (first.txId === txId && first.logIndex === logIndex);
    const stands = `${formatAmount(amountMicro)} USDT, exactly what ${name} waits for, stands in block ${blockNumber}`;
    described.push(
      isFirst
        ? `${stands}. It is PAID as soon as that block is irreversible, normally within a minute or two.`
        : `${stands}. Another transfer of exactly this amount comes first, in block ${first.blockNumber}, transaction ${first.txId}: unless that block is orphaned, this one pays nothing.`,
    );
  }
  return described;
}

function judgeOutgoing(outgoing: ExplainedOutgoing): string {
  const { amountMicro, address, to, annulment } = outgoing;
  const refunded = refundedBy(outgoing);
  const amount = `${formatAmount(amountMicro)} USDT`;
  if (annulment !== null)
    return `${amount} from ${address} for ${to} were recorded, and ${describeAnnulment(annulment)}.`;
  return `${amount} left ${address} for ${to}${refunded === null ? '' : `: the refund of ${refunded}`}.`;
}

function judgeRest(count: number): string[] {
  return count > MAX_JUDGED ? [`All ${count} transfers shown stand below.`] : [];
}

/** It came, and pays nothing. */
function isOpen({ kind, annulment }: TransferRecord): boolean {
  return kind !== 'matched' && annulment === null;
}

function nextSteps(described: readonly DescribedTransfer[], sightings: readonly ExplainedSighting[]): Step[] {
  const invoiceIds = [
    ...described.map(({ transfer }) => transfer.invoice?.id),
    ...sightings.map(({ invoiceId }) => invoiceId),
  ];
  const known = [...new Set(invoiceIds.filter((id) => id !== undefined))].slice(0, MAX_JUDGED);
  const open = described
    .slice(0, MAX_JUDGED)
    .filter(({ transfer, resolutions }) => isOpen(transfer) && resolutions.length === 0);
  return [...known.map(stepToInvoice), ...open.map(({ transfer }) => hintResolve(transfer))];
}
