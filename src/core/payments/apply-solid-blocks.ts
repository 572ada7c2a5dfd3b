import type { SolidBlock } from '../domain/chain-block.ts';
import { reasonOf } from '../runtime/reason-of.ts';
import { updateCursor } from '../store/chain/cursor.ts';
import {
  deleteHeadBlocksAbove,
  deleteHeadBlocksUpTo,
  findDetected,
  findHeadBlockId,
  findInvoicesDetectedAbove,
  findInvoicesDetectedUpTo,
  type InvoiceKey,
} from '../store/chain/head-blocks.ts';
import { forgetOldArrivals } from '../store/chain/incoming.ts';
import { insertSetAside, type SetAside } from '../store/chain/set-aside.ts';
import type { Sql } from '../store/db/database.ts';
import type { LeftOut } from '../store/db/seal.ts';
import { findChangeable } from '../store/ledger/invoice-changes.ts';
import { insertOutgoing } from '../store/ledger/outgoing-transfers.ts';
import { insertTransfers } from '../store/ledger/transfers.ts';
import { type PlannedChange, recordChanges } from './record-changes.ts';
import {
  countTransfers,
  type DecidedTransfer,
  decideTransfers,
  planPaid,
  setAsideOf,
  type TransferCounts,
} from './record-transfers.ts';
import { assertLinked, type Watching } from './watching.ts';
import { withCursorApart } from './write-rows.ts';

/**
 * Records a batch of contiguous irreversible blocks in one transaction: every transfer to or from our addresses exactly once, the invoices
 * that they pay, the events, the deliveries, and the cursor. Even if the process crashes, the batch is stored completely or not at all. If
 * a row fails its check or the database refuses it, everything that depends on the row is set aside in the same transaction, and the rest
 * is recorded. Errors: `LEASE_LOST`; `CHAIN_CONTRADICTION` if the batch doesn't continue from the cursor.
 */
export function applySolidBlocks(watching: Watching, blocks: readonly SolidBlock[]): Promise<TransferCounts> {
  return withCursorApart(watching, async (tx, cursor, write) => {
    const { network } = watching;
    const last = blocks.at(-1);
    if (last === undefined) return { matched: 0, duplicate: 0, unmatched: 0, outgoing: 0 };
    assertLinked(cursor.solid, blocks);
    const { incoming, invoices, outgoing, aside } = await decideTransfers(watching, tx, blocks);
    const left = await insertOutgoing(tx, network, outgoing);

    const orphaned = await settleSightings(watching, tx, last);
    const headNumber = orphaned.isHeadOrphaned ? last.number : Math.max(cursor.head.number, last.number);
    const examinedTime = orphaned.isHeadOrphaned || cursor.head.number < last.number ? last.time : cursor.head.time;
    await updateCursor(tx, network, last);
    await forgetOldArrivals(tx, network, last.time);

    const paid = planPaid(incoming, invoices);
    const paidIds = new Set(paid.map(({ invoice }) => invoice.id));
    const unsound: LeftOut[] = [];
    const lost = orphaned.invoices.filter(({ invoiceId }) => !paidIds.has(invoiceId));
    const reverted = (await findChangeable(tx, network, lost, unsound)).map((invoice): Written => {
      const change = { kind: 'orphaned', clock: examinedTime } as const;
      return { transfers: [], change: { invoice, change, transaction: null, transferId: null } };
    });
    const changes = new Map(paid.map((change) => [change.transferId, change]));
    const arrived = equalTransfers(incoming).map((transfers): Written => {
      const change = transfers.map(({ id }) => changes.get(id)).find((each) => each !== undefined);
      return { transfers, change: change ?? null };
    });
    const failed = await write(tx, [...arrived, ...reverted], async (some) => {
      const transfers = some.flatMap((item) => item.transfers);
      if (transfers.length > 0) await insertTransfers(tx, network, transfers);
      await recordChanges(
        watching,
        tx,
        some.flatMap(({ change }) => change ?? []),
        headNumber,
      );
    });
    const waiting = failed.flatMap(({ item: { transfers, change }, error }): SetAside[] => {
      const reason = reasonOf(error);
      if (transfers.length > 0) return transfers.map((transfer) => setAsideOf(blocks, transfer, reason));
      return change === null ? [] : [{ kind: 'invoice', invoice: keyOf(change), reason }];
    });
    const unread = unsound.map(({ row, error }): SetAside => {
      const invoice = lost.find(({ invoiceId }) => invoiceId === row['id']);
      if (invoice === undefined) throw error;
      return { kind: 'invoice', invoice, reason: error.message };
    });
    await insertSetAside(tx, network, [...aside, ...waiting, ...unread]);
    const isWritten = (transfer: DecidedTransfer) => !failed.some(({ item }) => item.transfers.includes(transfer));
    return countTransfers(incoming.filter(isWritten), left);
  });
}

/**
 * Either equal transfers and the invoice change that one of them causes, or only the change to an invoice that lost its transfer.
 * Everything in it is written together or set aside together.
 */
type Written = { transfers: DecidedTransfer[]; change: PlannedChange | null };

/**
 * Groups transfers of the same amount to the same address. Only the first transfer in a group may pay an invoice; no other may take its
 * place.
 */
function equalTransfers(incoming: readonly DecidedTransfer[]): DecidedTransfer[][] {
  const groups = new Map<string, DecidedTransfer[]>();
  for (const transfer of incoming) {
    const key = `${transfer.addressId} ${transfer.amountMicro}`;
    groups.set(key, [...(groups.get(key) ?? []), transfer]);
  }
  return [...groups.values()];
}

function keyOf({ invoice: { projectId, id: invoiceId } }: PlannedChange): InvoiceKey {
  return { projectId, invoiceId };
}

/**
 * Replaces the head chain with the solid chain up to `last`, and deletes the sightings up to that block. If the examined head chain differs
 * from the solid chain or has a gap, drops the whole head chain. Returns the invoices that lost their only sighting.
 */
async function settleSightings({ network }: Watching, tx: Sql, last: SolidBlock) {
  const examinedId = await findHeadBlockId(tx, network, last.number);
  // Blocks after a gap weren't examined on this chain.
  const isHeadOrphaned = examinedId !== last.id || (await findHeadBlockId(tx, network, last.number + 1)) === null;
  const detected = await findInvoicesDetectedUpTo(tx, network, last.number);
  if (isHeadOrphaned) {
    detected.push(...(await findInvoicesDetectedAbove(tx, network, last.number)));
    await deleteHeadBlocksAbove(tx, network, last.number, []);
  }
  await deleteHeadBlocksUpTo(tx, network, last.number);
  const remaining =
    detected.length === 0
      ? new Set()
      : await findDetected(
          tx,
          network,
          detected.map((i) => i.invoiceId),
        );
  return { isHeadOrphaned, invoices: detected.filter(({ invoiceId }) => !remaining.has(invoiceId)) };
}
