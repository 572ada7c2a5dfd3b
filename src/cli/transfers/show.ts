import { formatSigned } from '../../chain/reconcile-address.ts';
import { encodeId } from '../../domain/ids.ts';
import type { Cause } from '../../domain/mismatch.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import { readTransactionReference } from '../../domain/transaction-reference.ts';
import { diagnoseTransfers } from '../../payments/diagnose-transfers.ts';
import type { Sql } from '../../store/database.ts';
import type { Annulment } from '../../store/standing.ts';
import { findResolutions, findTransferEvents, type Resolution, type TransferEvent } from '../../store/transfer-desk.ts';
import { findTransfers, findTransfersOfTransaction, type TransferRecord } from '../../store/transfer-records.ts';
import { accountToAddress } from '../../tron/address.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { formatFields, formatTable, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { describeNamedInvoice, describeResolution, readTransferId } from './options.ts';

/** Above the 200 that one multisend pays, and as many as can be diagnosed at once. */
const MAX_TRANSFERS = 500;
/** Of one transfer: above the endpoints that anybody has. */
const MAX_DELIVERIES = 100;

type Shown = {
  transfer: TransferRecord;
  causes: Cause[];
  events: TransferEvent[];
  resolutions: Resolution[];
};

/** Shows all that is known at one moment of one transfer, or of each transfer to us in one transaction. */
export async function showTransfers(terminal: Terminal, reference: string): Promise<Result> {
  const shown = await withDatabase(terminal, ({ db }) => db.snapshot((tx) => readShown(tx, reference)));
  const open = shown.find(({ transfer, resolutions }) => {
    return transfer.kind !== 'matched' && transfer.annulment === null && resolutions.length === 0;
  });
  return {
    data: { data: shown.map(describe) },
    text: shown.map(toText).join('\n\n'),
    ...(open === undefined
      ? {}
      : { next: `when you have decided: quittance transfers resolve ${encodeId('trf', open.transfer.id)} --as …` }),
  };
}

async function readShown(db: Sql, reference: string): Promise<Shown[]> {
  const transfers = await findReferenced(db, reference);
  const ids = transfers.map(({ id }) => id);
  const unsettled = transfers.filter(({ kind }) => kind !== 'matched').map(({ id }) => id);
  const causes = await diagnoseTransfers(db, unsettled);
  const events = await findTransferEvents(db, ids, MAX_DELIVERIES);
  const resolutions = await findResolutions(db, ids);
  return transfers.map((transfer) => ({
    transfer,
    causes: causes.get(transfer.id) ?? [],
    events: events.filter(({ transferId }) => transferId === transfer.id),
    resolutions: resolutions.get(transfer.id) ?? [],
  }));
}

async function findReferenced(db: Sql, reference: string): Promise<TransferRecord[]> {
  const transaction = readTransactionReference(reference.trim().replace(/^0x(?=[0-9a-f]{64}$)/i, ''));
  if (transaction.kind !== 'id') {
    if (!reference.startsWith('trf_')) {
      throw new CliError(
        'INVALID_ARGUMENT',
        `${clip(reference)} is neither a transfer id (trf_…) nor a transaction id (64 hexadecimal characters, or its Tronscan link)`,
      );
    }
    const found = await findTransfers(db, [readTransferId(reference)]);
    if (found.length === 0) throw new CliError('NOT_FOUND', `there is no transfer ${reference}`);
    return found;
  }
  const { txId } = transaction;
  const found = await findTransfersOfTransaction(db, txId, null, MAX_TRANSFERS);
  if (found.length > 0) return found;
  throw new CliError(
    'NOT_FOUND',
    `the ledger has no transfer to one of your addresses in transaction ${txId}. A transfer stands there once its block is irreversible, about a minute after it was sent; one of 0, of another token or to another address never does: "quittance explain ${txId}" says what the transaction is`,
  );
}

function describe({ transfer, causes, events, resolutions }: Shown) {
  return {
    transferId: encodeId('trf', transfer.id),
    projectId: encodeId('prj', transfer.projectId),
    network: transfer.network,
    kind: transfer.kind,
    amount: formatAmount(transfer.amountMicro),
    from: transfer.from,
    to: transfer.address,
    toRetiredAt: transfer.retiredAt && toIso(transfer.retiredAt),
    time: toIso(transfer.blockTime),
    txId: transfer.txId,
    logIndex: transfer.logIndex,
    evidence: {
      blockNumber: transfer.blockNumber,
      blockId: transfer.blockId,
      producer: transfer.producer && accountToAddress(transfer.producer),
      verified: transfer.verified,
      nodes: transfer.nodes,
      recordedAt: toIso(transfer.recordedAt),
    },
    invoice: describeNamedInvoice(transfer.invoice),
    takenBack: transfer.annulment && { ...transfer.annulment, at: toIso(transfer.annulment.at) },
    causes: causes.map(({ code, confidence, explanation, evidence, invoices }) => ({
      code,
      confidence,
      explanation,
      evidence,
      invoices: invoices.map((invoice) => ({
        ...describeNamedInvoice(invoice),
        payableAmount: formatAmount(invoice.payableMicro),
        difference: formatSigned(invoice.differenceMicro),
      })),
    })),
    events: events.map(({ eventId, type, createdAt, delivery }) => ({
      eventId: encodeId('evt', eventId),
      type,
      createdAt: toIso(createdAt),
      delivery: delivery && {
        endpointId: encodeId('whe', delivery.endpointId),
        status: delivery.status,
        isEndpointDisabled: delivery.isDisabled,
        attempts: delivery.attemptCount,
        nextAttemptAt: delivery.status === 'pending' ? toIso(delivery.nextAttemptAt) : null,
        finishedAt: delivery.finishedAt && toIso(delivery.finishedAt),
        lastStatus: delivery.lastStatus,
        lastError: delivery.lastError,
      },
    })),
    resolutions: resolutions.map(describeResolution),
  };
}

const KIND_MEANS = {
  matched: 'it paid its invoice',
  duplicate: 'exactly the amount of an invoice that was paid before',
  unmatched: 'no invoice waits for exactly this amount at this address',
} as const;

function toText({ transfer, causes, events, resolutions }: Shown): string {
  const { invoice, kind, producer, verified, nodes, retiredAt, annulment } = transfer;
  const inForce = resolutions.at(-1);
  const fields = formatFields([
    ['transfer', encodeId('trf', transfer.id)],
    ['project', `${encodeId('prj', transfer.projectId)} (${transfer.projectName}), ${transfer.network}`],
    ['kind', `${kind}: ${KIND_MEANS[kind]}`],
    ['taken back', annulment && describeTakenBack(annulment, transfer)],
    [
      'resolution',
      kind === 'matched' || annulment !== null ? null : (inForce?.resolution ?? 'open: nothing was decided yet'),
    ],
    ['amount', `${formatAmount(transfer.amountMicro)} USDT`],
    ['from', transfer.from],
    ['to', retiredAt === null ? transfer.address : `${transfer.address} (retired ${toIso(retiredAt)})`],
    ['invoice', invoice && `${encodeId('inv', invoice.id)} (${invoice.externalId}), ${invoice.status}`],
    ['time', toIso(transfer.blockTime)],
    ['transaction', `${transfer.txId}, log ${transfer.logIndex}`],
    ['block', `${transfer.blockNumber}, ${transfer.blockId}`],
    ['made by', producer === null ? 'not kept at the time' : accountToAddress(producer)],
    ['verified', nodes.length === 0 ? verified : `${verified}, shown by ${nodes.join(', ')}`],
    ['recorded', toIso(transfer.recordedAt)],
  ]);
  const parts = [
    fields,
    causes.length === 0 ? '' : causesText(causes),
    eventsText(events),
    resolutionsText(resolutions),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function describeTakenBack({ at, by, reason, deniedBy }: Annulment, { kind }: TransferRecord): string {
  const means =
    kind === 'matched' ? 'the chain denies this payment, and the invoice stays PAID' : 'the chain denies it';
  return `${means}; by ${by}, ${toIso(at)}: ${reason} (the chain has block ${deniedBy} there)`;
}

function causesText(causes: readonly Cause[]): string {
  const parts = causes.map(({ code, confidence, explanation, invoices }, index) => {
    const told = formatFields([[`${index + 1}. ${code}, ${confidence}`, explanation]]);
    const rows = invoices.map(({ id, externalId, status, payableMicro, differenceMicro }) => [
      `   ${encodeId('inv', id)}`,
      status,
      formatAmount(payableMicro),
      `${differenceMicro > 0n ? '+' : ''}${formatSigned(differenceMicro)}`,
      externalId,
    ]);
    return [told, formatTable(['   INVOICE', 'STATUS', 'TO PAY', 'DIFFERENCE', 'EXTERNAL ID'], rows)]
      .filter(Boolean)
      .join('\n');
  });
  return `LIKELY CAUSES, the best first; the chain shows amounts, not intentions\n${parts.join('\n')}`;
}

function eventsText(events: readonly TransferEvent[]): string {
  const rows = events.map(({ eventId, type, createdAt, delivery }) => [
    encodeId('evt', eventId),
    type,
    toIso(createdAt),
    delivery === null ? 'no endpoint at the time' : encodeId('whe', delivery.endpointId),
    delivery === null ? '' : deliveryText(delivery),
  ]);
  return formatTable(['EVENT', 'TYPE', 'CREATED', 'ENDPOINT', 'DELIVERY'], rows);
}

function deliveryText({
  status,
  isDisabled,
  attemptCount,
  nextAttemptAt,
  lastStatus,
  lastError,
}: NonNullable<TransferEvent['delivery']>): string {
  const attempts = attemptCount === 1 ? '1 attempt' : `${attemptCount} attempts`;
  const last = lastError ?? (lastStatus === null ? null : `status ${lastStatus}`);
  const next = isDisabled ? 'its endpoint is disabled' : `next ${toIso(nextAttemptAt)}`;
  const parts = [`${status} after ${attempts}`, last, status === 'pending' ? next : null];
  return parts.filter((part) => part !== null).join(', ');
}

function resolutionsText(resolutions: readonly Resolution[]): string {
  const rows = resolutions.map(({ resolution, resolvedAt, resolvedBy, invoice, note }) => {
    return [toIso(resolvedAt), resolution, resolvedBy, invoice?.externalId ?? '', note];
  });
  return formatTable(['RESOLVED', 'AS', 'BY', 'INVOICE', 'NOTE'], rows);
}
