import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { Type } from '../../runtime/type.ts';
import { gatherProblems } from '../input/gather-problems.ts';
import { Line, Period, ProjectId } from '../input/given.ts';
import { readNote } from '../input/read-note.ts';
import { operation } from '../operation.ts';
import { listTransfers, readTransferFilter } from './list-transfers.ts';
import { refundTransfer } from './refund-transfer.ts';
import {
  type ResolveRequest,
  readInvoiceName,
  readResolution,
  readTransferIds,
  resolveTransfers,
} from './resolve-transfers.ts';
import { showTransfers } from './show-transfers.ts';
import { readRefundNote, readRefundTx, readTransferId } from './transfer-input.ts';
import { RefundedView, ResolvedView, ShownTransfersView, TransferListView } from './views.ts';

export const listTransfersOperation = operation({
  action: 'listTransfers',
  summary:
    'Transfers to the addresses of a project: those that pay nothing and wait for a decision, unless it says otherwise',
  ...{ method: 'GET', path: '/transfers', output: TransferListView },
  input: Type.Object({
    ...{ projectId: ProjectId, kind: Line, state: Type.Optional(Type.Enum(['open', 'resolved', 'all'])) },
    ...{ ...Period, before: Line, limit: Line },
  }),
  read: ({ projectId, limit = '50', ...given }) => ({ projectId, ...readTransferFilter({ ...given, limit }) }),
  run: listTransfers,
});

export const showTransfersOperation = operation({
  action: 'showTransfers',
  summary: 'A transfer, or those of a transaction: evidence, likely causes, webhooks, and what was done about it',
  ...{ method: 'GET', path: '/transfers/:reference', output: ShownTransfersView },
  input: Type.Object({ reference: Type.String({ description: 'trf_…, or the id of a transaction' }) }),
  read: ({ reference }) => ({ reference }),
  run: showTransfers,
});

type Resolving = {
  transfers: readonly string[];
  resolution: string;
  note: string | undefined;
  invoice: string | undefined;
};

/** Tells all problems at once. */
function readRequest(given: Resolving): ResolveRequest {
  const problems: FieldProblem[] = [];
  const transferIds = gatherProblems(problems, () => readTransferIds(given.transfers));
  const resolution = gatherProblems(problems, () => readResolution(given.resolution));
  const note = readNote(given.note, problems);
  const invoice = gatherProblems(problems, () => readInvoiceName(given.invoice));
  if (transferIds === undefined || resolution === undefined || invoice === undefined || problems.length > 0) {
    throw new AppError('INVALID_ARGUMENT', 'nothing was resolved', { problems });
  }
  return { transferIds, resolution, note, invoice };
}

export const resolveTransfersOperation = operation({
  action: 'resolveTransfers',
  summary:
    'Note what was done about transfers that paid nothing; your shop is told by `transfer.resolved`. No invoice changes its status, but the page of one that you credited outside asks for no payment',
  ...{ method: 'POST', path: '/transfers/resolve', output: ResolvedView },
  input: Type.Object({ transfers: Type.Array(Type.String()), resolution: Type.String(), note: Line, invoice: Line }),
  read: ({ transfers, resolution, note, invoice }) => readRequest({ transfers, resolution, note, invoice }),
  run: resolveTransfers,
});

export const refundTransferOperation = operation({
  action: 'refundTransfer',
  summary:
    'Tie a transfer that paid nothing to the one by which it was sent back in full from an address of the project; your shop is told by `transfer.refunded` and `transfer.resolved`',
  ...{ method: 'POST', path: '/transfers/:transferId/refund', output: RefundedView },
  input: Type.Object({
    transferId: Type.String({ description: 'trf_…' }),
    tx: Type.String({ description: 'The transaction of the refund: 64 hexadecimal characters, or its Tronscan link' }),
    ...{ note: Line, invoice: Line },
  }),
  read: (given) => {
    const problems: FieldProblem[] = [];
    const transferId = readTransferId(given.transferId);
    const txId = gatherProblems(problems, () => readRefundTx('tx', given.tx));
    const note = readRefundNote(txId ?? '', given.note, problems);
    const invoice = gatherProblems(problems, () => readInvoiceName(given.invoice));
    if (txId === undefined || invoice === undefined || problems.length > 0) {
      throw new AppError('INVALID_ARGUMENT', 'nothing was resolved', { problems });
    }
    return { transferId, txId, note, invoice };
  },
  run: refundTransfer,
});
