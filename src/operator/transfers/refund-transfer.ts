import { assertNever } from '../../domain/assert-never.ts';
import { AppError } from '../../domain/errors.ts';
import { describeRefund, describeTransfer, newEvent } from '../../domain/event.ts';
import { encodeId } from '../../domain/ids.ts';
import { say, type Text } from '../../domain/message.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { findRefund, type NoRefund } from '../../domain/refund.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { findSentBack, insertRefund } from '../../store/ledger/transfer-refunds.ts';
import { insertEvents } from '../../store/outbox/events.ts';
import type { Actor } from '../actor.ts';
import { lockDecision, type ResolveRequest, recordDecision } from './resolve-transfers.ts';
import { nameRefund } from './transfer-input.ts';
import { findTransfers, type TransferRecord } from './transfer-records.ts';
import type { RefundedView } from './views.ts';

/** `transferId`: a UUID; `txId`: of the transaction by which it was sent back, 64 hex characters. `note` names it. The rest as in `resolveTransfers`. */
export type RefundRequest = { transferId: string; txId: string } & Pick<ResolveRequest, 'note' | 'invoice' | 'seenAt'>;

/**
 * Ties a transfer that paid nothing to the one by which it was sent back, which the ledger has: it left an address of the same project, for
 * the sender, with exactly the amount, in a later block. Resolves it as `refunded` and tells the shop, in one transaction. Errors: `NOT_FOUND`,
 * `CONFLICT`.
 */
export function refundTransfer(
  { db, now, random }: { db: Database; now(): UnixMs; random(bytes: number): Uint8Array },
  actor: Actor,
  { transferId, txId, note, ...request }: RefundRequest,
): Promise<RefundedView> {
  return db.transaction(async (tx) => {
    const decision = await lockDecision(tx, actor, { ...request, transferIds: [transferId] });
    const [came] = await findTransfers(tx, [transferId]);
    if (came === undefined) throw new Error(`${encodeId('trf', transferId)} vanished; transfers are never deleted`);
    const found = findRefund(came, await findSentBack(tx, came.network, txId, came.projectId));
    if (found.kind !== 'found') throw refused(came, txId, found);
    const { sent } = found;
    const refundedAt = now();
    const { projectId, network } = came;
    const tie = { transferId, projectId, network, txId, logIndex: sent.logIndex, refundedAt };
    if (!(await insertRefund(tx, tie))) throw await tied(tx, came);
    const refund = describeRefund({ ...sent, txId }, came);
    const data = { ...describeTransfer({ ...came, to: came.address, invoiceId: came.invoice?.id ?? null }), refund };
    const told = { type: 'transfer.refunded', projectId, invoiceId: null, transferId, sequence: 1, data } as const;
    await insertEvents(tx, network, [newEvent(told, { timestamp: refundedAt, random })], refundedAt);
    const { invoice } = decision;
    const detail = { txId, logIndex: sent.logIndex, note, invoiceId: invoice && encodeId('inv', invoice.id) };
    const done = { action: 'transfer.refunded' as const, detail };
    const resolved = await recordDecision(tx, actor, {
      ...{ ...decision, resolution: 'refunded', note, resolvedAt: refundedAt, done, random },
    });
    return { ...resolved, refund };
  });
}

/** Somebody was faster, or it was tied to a transfer that the chain denies by now. */
async function tied(tx: Sql, { id }: TransferRecord): Promise<AppError> {
  const refund = (await findTransfers(tx, [id]))[0]?.refund;
  const by = refund == null ? 'to another transfer' : `to the transfer in ${refund.txId}`;
  return conflict(`${encodeId('trf', id)} is tied ${by} already`);
}

const conflict = (reason: Text) => new AppError('CONFLICT', say`nothing was resolved: ${reason}`);

function refused({ id, from, amountMicro, blockNumber }: TransferRecord, txId: string, why: NoRefund): AppError {
  const args = [encodeId('trf', id)];
  const elsewhere = say`if the money left another wallet, or went to another address, note it instead: "${{ command: 'transfers resolve', args, input: { resolution: 'refunded', note: nameRefund(txId) } }}"`;
  switch (why.kind) {
    case 'none-left':
      return conflict(
        say`the ledger has no transfer from an address of this project in transaction ${txId}. It has one about a minute after it was sent, when its block is irreversible: then do this again. And ${elsewhere}`,
      );
    case 'denied':
      return conflict(`the chain denies what was recorded of transaction ${txId}, and it was taken back`);
    case 'other-recipient':
      return conflict(
        say`it came from ${from}, and transaction ${txId} went to ${why.recipients.slice(0, 3).join(', ')}: ${elsewhere}`,
      );
    case 'other-amount': {
      const [size, how] = why.differenceMicro < 0n ? [-why.differenceMicro, 'less'] : [why.differenceMicro, 'more'];
      return conflict(
        say`transaction ${txId} sent ${formatAmount(microUsdt(size))} USDT ${how} than the ${formatAmount(amountMicro)} that came; ${elsewhere}`,
      );
    }
    case 'too-early':
      return conflict(
        `transaction ${txId} stands in block ${why.sent.blockNumber}, and the transfer came later, in block ${blockNumber}`,
      );
    case 'taken':
      return conflict(`transaction ${txId} is the refund of ${encodeId('trf', why.refundOf)} already`);
    default:
      return assertNever(why);
  }
}
