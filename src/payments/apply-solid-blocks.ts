import type { SolidBlock } from '../domain/chain-block.ts';
import { updateCursor } from '../store/chain/cursor.ts';
import {
  deleteHeadBlocksAbove,
  deleteHeadBlocksUpTo,
  findDetected,
  findHeadBlockId,
  findInvoicesDetectedAbove,
  findInvoicesDetectedUpTo,
} from '../store/chain/head-blocks.ts';
import { forgetOldArrivals } from '../store/chain/incoming.ts';
import type { Sql } from '../store/db/database.ts';
import { findChangeable } from '../store/ledger/invoice-changes.ts';
import { type PlannedChange, recordChanges } from './record-changes.ts';
import { invoicesOf, planPaid, recordTransfers, type TransferCounts } from './record-transfers.ts';
import { assertLinked, type Watching, withCursor } from './watching.ts';

/**
 * Records a batch of contiguous irreversible blocks in one transaction: every transfer to and from our addresses once, the
 * invoices they pay, the events, the deliveries, and the cursor. After a crash anywhere, all of it is there or none.
 * Errors: `LEASE_LOST`; `CHAIN_CONTRADICTION` when the batch does not continue the cursor.
 */
export function applySolidBlocks(watching: Watching, blocks: readonly SolidBlock[]): Promise<TransferCounts> {
  return withCursor(watching, async (tx, cursor) => {
    const last = blocks.at(-1);
    if (last === undefined) return { matched: 0, duplicate: 0, unmatched: 0, outgoing: 0 };
    assertLinked(cursor.solid, blocks);
    const { incoming, counts } = await recordTransfers(watching, tx, blocks);

    const orphaned = await settleSightings(watching, tx, last);
    const headNumber = orphaned.isHeadOrphaned ? last.number : Math.max(cursor.head.number, last.number);
    const examinedTime = orphaned.isHeadOrphaned || cursor.head.number < last.number ? last.time : cursor.head.time;
    await updateCursor(tx, watching.network, last);
    await forgetOldArrivals(tx, watching.network, last.time);

    const touched = [...invoicesOf(incoming), ...orphaned.invoices];
    const invoices = await findChangeable(tx, watching.network, touched);
    const paid = planPaid(incoming, invoices);
    const paidIds = new Set(paid.map(({ invoice }) => invoice.id));
    const reverted = invoices
      .filter(({ id }) => !paidIds.has(id))
      .map((invoice): PlannedChange => {
        const change = { kind: 'orphaned', clock: examinedTime } as const;
        return { invoice, change, transaction: null, transferId: null };
      });
    await recordChanges(watching, tx, [...paid, ...reverted], headNumber);
    return counts;
  });
}

/**
 * Lets the solid chain speak for the blocks up to `last`: drops their sightings, and if the head chain that we examined
 * disagrees with it or has a gap, all of that chain. Returns the invoices that had a sighting and have none any more.
 */
async function settleSightings({ network }: Watching, tx: Sql, last: SolidBlock) {
  const examinedId = await findHeadBlockId(tx, network, last.number);
  // What stands beyond a gap, nobody examined on this chain.
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
