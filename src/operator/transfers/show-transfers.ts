import { AppError } from '../../domain/errors.ts';
import { describeRefund } from '../../domain/event.ts';
import { encodeId } from '../../domain/ids.ts';
import { readTransactionReference } from '../../domain/lookup/transaction-reference.ts';
import { type Hint, say } from '../../domain/message.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import { findClaims } from '../../payments/claims.ts';
import { diagnoseTransfers } from '../../payments/mismatch/diagnose-transfers.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { soundRefund } from '../../store/ledger/transfer-refunds.ts';
import { accountToAddress } from '../../tron/address.ts';
import { type Actor, maySee } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { describeCause, describeResolution, nameInvoice } from './describe-transfer.ts';
import { findResolutions, findTransferEvents, type TransferEvent } from './transfer-desk.ts';
import { readTransferId } from './transfer-input.ts';
import { findTransfers, findTransfersOfTransaction, type TransferRecord } from './transfer-records.ts';
import type { ShownTransfersView, TransferEventView, TransferView } from './views.ts';

/** Above the 200 that one multisend pays, and as many as can be diagnosed at once. */
const MAX_TRANSFERS = 500;
/** The most deliveries of one transfer: more than anybody has endpoints. */
const MAX_DELIVERIES = 100;

/** `projectNames`: of each transfer, for people. `hint`: how the first one that waits for a decision is resolved. */
type Shown = { view: ShownTransfersView; projectNames: readonly string[]; hint: Hint | null };

/**
 * All that is known at one moment of one transfer (`trf_…`), or of each transfer to us in one transaction (its id or Tronscan link).
 * Errors: `NOT_FOUND`, `INVALID_ARGUMENT`.
 */
export function showTransfers(
  { db }: { db: Database },
  actor: Actor,
  { reference }: { reference: string },
): Promise<Shown> {
  return db.snapshot(async (tx) => {
    const transfers = await findReferenced(tx, actor, reference);
    const ids = transfers.map(({ id }) => id);
    const causes = await diagnoseTransfers(tx, ids);
    const events = await findTransferEvents(tx, ids, MAX_DELIVERIES);
    const claims = await findClaims(tx, ids);
    const resolutions = await findResolutions(tx, ids);
    const open = transfers.find(({ id, kind, annulment }) => {
      return kind !== 'matched' && annulment === null && !resolutions.has(id);
    });
    const data = transfers.map((transfer) => ({
      ...describeTransfer(transfer),
      causes: (causes.get(transfer.id) ?? []).map(describeCause),
      claims: (claims.get(transfer.id) ?? []).map(({ invoice, claimedAt }) => {
        return { invoice: nameInvoice(invoice), claimedAt: toIso(claimedAt) };
      }),
      events: events.filter(({ transferId }) => transferId === transfer.id).map(describeEvent),
      resolutions: (resolutions.get(transfer.id) ?? []).map(describeResolution),
    }));
    return {
      view: { data },
      projectNames: transfers.map(({ projectName }) => projectName),
      hint:
        open === undefined
          ? null
          : { command: 'transfers resolve', args: [encodeId('trf', open.id)], input: { resolution: '…' } },
    };
  });
}

async function findReferenced(db: Sql, actor: Actor, reference: string): Promise<TransferRecord[]> {
  const transaction = readTransactionReference(reference.trim().replace(/^0x(?=[0-9a-f]{64}$)/i, ''));
  if (transaction.kind !== 'id') {
    if (!reference.startsWith('trf_')) {
      throw new AppError(
        'INVALID_ARGUMENT',
        `${clip(reference)} is neither a transfer id (trf_…) nor a transaction id (64 hexadecimal characters, or its Tronscan link)`,
      );
    }
    const found = (await findTransfers(db, [readTransferId(reference)])).filter(({ projectId }) =>
      maySee(actor, projectId),
    );
    if (found.length === 0) throw new AppError('NOT_FOUND', `there is no transfer ${reference}`);
    return found;
  }
  const { txId } = transaction;
  const found = await findTransfersOfTransaction(db, txId, actor.projects, MAX_TRANSFERS);
  if (found.length > 0) return found;
  throw new AppError(
    'NOT_FOUND',
    say`the ledger has no transfer to one of your addresses in transaction ${txId}. A transfer stands there once its block is irreversible, about a minute after it was sent; one of 0, of another token or to another address never does: "${{ command: 'explain', args: [txId] }}" says what the transaction is`,
  );
}

function describeTransfer(
  transfer: TransferRecord,
): Omit<TransferView, 'causes' | 'claims' | 'events' | 'resolutions'> {
  const { network, kind, from, address: to, txId, logIndex, blockNumber, blockId, verified, nodes } = transfer;
  const { retiredAt, producer, invoice, annulment } = transfer;
  const refund = soundRefund(transfer.refund);
  return {
    transferId: encodeId('trf', transfer.id),
    projectId: encodeId('prj', transfer.projectId),
    ...{ network, kind, amount: formatAmount(transfer.amountMicro), from, to },
    toRetiredAt: retiredAt && toIso(retiredAt),
    ...{ time: toIso(transfer.blockTime), txId, logIndex },
    evidence: {
      ...{ blockNumber, blockId, producer: producer && accountToAddress(producer), verified, nodes },
      recordedAt: toIso(transfer.recordedAt),
    },
    invoice: invoice && nameInvoice(invoice),
    takenBack: annulment && { ...annulment, at: toIso(annulment.at) },
    refund: refund && describeRefund(refund, transfer),
  };
}

function describeEvent({ eventId, type, createdAt, delivery }: TransferEvent): TransferEventView {
  return {
    ...{ eventId: encodeId('evt', eventId), type, createdAt: toIso(createdAt) },
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
  };
}
