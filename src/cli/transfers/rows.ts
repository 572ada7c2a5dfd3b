import { encodeId, NIL_UUID } from '../../domain/ids.ts';
import type { Cause } from '../../domain/mismatch.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import { diagnoseTransfers } from '../../payments/diagnose-transfers.ts';
import type { Sql } from '../../store/database.ts';
import {
  type ChainPlace,
  type ExportedOutgoing,
  type ExportedTransfer,
  type ExportFilter,
  findIncomingAfter,
  findNewestOutgoing,
  findNewestTransfer,
  findOutgoingAfter,
} from '../../store/ledger-export.ts';
import type { Project } from '../../store/projects.ts';

/** The columns of an export, in their order. Scripts and spreadsheets rely on them: new ones come last. */
export const EXPORT_COLUMNS = [
  'direction',
  'time',
  'amount',
  'kind',
  'from',
  'to',
  'txId',
  'logIndex',
  'blockNumber',
  'verified',
  'recordedAt',
  'projectId',
  'network',
  'transferId',
  'invoiceId',
  'externalId',
  'reason',
  'confidence',
  'nearestInvoiceId',
  'nearestExternalId',
  'resolution',
  'resolvedAt',
  'resolvedBy',
  'note',
  'resolvedInvoiceId',
  'resolvedExternalId',
] as const;

/** One line of an export; what does not apply is `null`. */
export type ExportRow = Record<(typeof EXPORT_COLUMNS)[number], string | number | null>;

/** As many as can be diagnosed at once. */
const BATCH = 500;

/**
 * What came in, in the order of its records, in batches. Batches go on from the last id instead of standing in one transaction,
 * which a slow reader would keep open for hours. The ledger is append-only, so what was there at the start comes exactly once.
 */
export async function* incomingRows(db: Sql, project: Project, filter: ExportFilter): AsyncGenerator<ExportRow[]> {
  const last = await findNewestTransfer(db, project.id);
  let after = NIL_UUID;
  while (last !== null) {
    const transfers = await findIncomingAfter(db, project.id, { after, last, limit: BATCH }, filter);
    const newest = transfers.at(-1);
    if (newest === undefined) return;
    const unsettled = transfers.filter(({ kind }) => kind !== 'matched').map(({ id }) => id);
    const causes = unsettled.length === 0 ? new Map<string, Cause[]>() : await diagnoseTransfers(db, unsettled);
    yield transfers.map((transfer) => incomingRow(project, transfer, causes.get(transfer.id)?.[0]));
    after = newest.id;
  }
}

/** What left, in the order of the chain, in batches as above. */
export async function* outgoingRows(
  db: Sql,
  project: Project,
  times: Pick<ExportFilter, 'from' | 'until'>,
): AsyncGenerator<ExportRow[]> {
  const last = await findNewestOutgoing(db, project.id);
  let after: ChainPlace = { blockNumber: -1, txId: '', logIndex: 0 };
  while (last !== null) {
    const transfers = await findOutgoingAfter(db, project.id, { after, last, limit: BATCH }, times);
    const newest = transfers.at(-1);
    if (newest === undefined) return;
    yield transfers.map((transfer) => ({ ...NOTHING, ...sharedCells(project, transfer), direction: 'out' }));
    after = newest;
  }
}

const NOTHING = Object.fromEntries(EXPORT_COLUMNS.map((column) => [column, null])) as ExportRow;

function sharedCells({ id, network }: Project, transfer: ExportedOutgoing) {
  return {
    time: toIso(transfer.blockTime),
    amount: formatAmount(transfer.amountMicro),
    from: transfer.from,
    to: transfer.to,
    txId: transfer.txId,
    logIndex: transfer.logIndex,
    blockNumber: transfer.blockNumber,
    verified: transfer.verified,
    recordedAt: toIso(transfer.recordedAt),
    projectId: encodeId('prj', id),
    network,
  };
}

function incomingRow(project: Project, transfer: ExportedTransfer, cause: Cause | undefined): ExportRow {
  const { invoice, resolution } = transfer;
  const nearest = cause?.invoices[0];
  const done = resolution?.invoice;
  return {
    ...NOTHING,
    ...sharedCells(project, transfer),
    direction: 'in',
    kind: transfer.kind,
    transferId: encodeId('trf', transfer.id),
    ...(invoice === null ? {} : { invoiceId: encodeId('inv', invoice.id), externalId: invoice.externalId }),
    ...(cause === undefined ? {} : { reason: cause.code, confidence: cause.confidence }),
    ...(nearest === undefined
      ? {}
      : { nearestInvoiceId: encodeId('inv', nearest.id), nearestExternalId: nearest.externalId }),
    ...(resolution === null
      ? {}
      : {
          resolution: resolution.resolution,
          resolvedAt: toIso(resolution.resolvedAt),
          resolvedBy: resolution.resolvedBy,
          note: resolution.note,
        }),
    ...(done ? { resolvedInvoiceId: encodeId('inv', done.id), resolvedExternalId: done.externalId } : {}),
  };
}
