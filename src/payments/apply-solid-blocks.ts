import type { ChainBlock, ChainTransfer } from '../domain/chain-block.ts';
import { uuidV7 } from '../domain/ids.ts';
import { matchTransfer } from '../domain/match.ts';
import type { MicroUsdt } from '../domain/money.ts';
import { updateCursor } from '../store/chain-cursor.ts';
import type { Sql } from '../store/database.ts';
import {
  deleteHeadBlocksAbove,
  deleteHeadBlocksUpTo,
  findHeadBlockId,
  findInvoicesSightedAbove,
  findInvoicesSightedUpTo,
  findSighted,
} from '../store/head-blocks.ts';
import { findIncoming, type Incoming } from '../store/incoming.ts';
import { type ChangeableInvoice, findChangeable } from '../store/invoice-changes.ts';
import { insertTransfers, type NewTransfer } from '../store/transfers.ts';
import { accountToAddress, type TronAddress } from '../tron/address.ts';
import { type PlannedChange, type PlannedNotice, recordChanges } from './record-changes.ts';
import { assertLinked, type Watching, withCursor } from './watching.ts';

type Placed = { block: ChainBlock; transfer: ChainTransfer };

type Decided = NewTransfer & { toAddress: TronAddress };

/** How many transfers of a batch were what. */
export type AppliedCounts = { matched: number; duplicate: number; unmatched: number };

/**
 * Records a batch of contiguous irreversible blocks in one transaction: every transfer to our addresses once, the invoices
 * they pay, the events, the deliveries, and the cursor. After a crash anywhere, all of it is there or none.
 * Errors: `LEASE_LOST`; `CHAIN_CONTRADICTION` when the batch does not continue the cursor.
 */
export function applySolidBlocks(watching: Watching, blocks: ChainBlock[]): Promise<AppliedCounts> {
  return withCursor(watching, async (tx, cursor) => {
    const last = blocks.at(-1);
    if (last === undefined) return { matched: 0, duplicate: 0, unmatched: 0 };
    assertLinked(cursor.solid, blocks);
    const placed = blocks.flatMap((block) => block.transfers.map((transfer) => ({ block, transfer })));
    const incoming = await findIncoming(
      tx,
      watching.network,
      placed.map(({ transfer }) => transfer),
    );
    const transfers = decide(watching, placed, incoming);
    if (transfers.length > 0) await insertTransfers(tx, watching.network, transfers);

    const orphaned = await settleSightings(watching, tx, last);
    const headNumber = orphaned.isHeadOrphaned ? last.number : Math.max(cursor.head.number, last.number);
    const examinedTime = orphaned.isHeadOrphaned || cursor.head.number < last.number ? last.time : cursor.head.time;
    await updateCursor(tx, watching.network, last);

    const invoices = await findChangeable(tx, watching.network, [
      ...transfers.flatMap(({ projectId, invoiceId }) => (invoiceId === null ? [] : [{ projectId, invoiceId }])),
      ...orphaned.invoices,
    ]);
    const paid = planPaid(transfers, new Map(invoices.map((invoice) => [invoice.id, invoice])));
    const paidIds = new Set(paid.map(({ invoice }) => invoice.id));
    const reverted = invoices
      .filter(({ id }) => !paidIds.has(id))
      .map((invoice): PlannedChange => {
        const change = { kind: 'orphaned', clock: examinedTime } as const;
        return { invoice, change, transaction: null, transferId: null };
      });
    await recordChanges(watching, tx, [...paid, ...reverted], planNotices(transfers), headNumber);
    return count(transfers);
  });
}

/** Decides each incoming transfer in chain order; the first exact one of an invoice pays it, the next is a duplicate. */
function decide(watching: Watching, placed: Placed[], incoming: Incoming[]): Decided[] {
  const paidHere = new Set<string>();
  return incoming.map(({ index, projectId, addressId, address, invoice }) => {
    const { block, transfer } = placedAt(placed, index);
    const reservedBy = invoice && {
      invoiceId: invoice.id,
      status: paidHere.has(invoice.id) ? ('PAID' as const) : invoice.status,
    };
    const { kind } = matchTransfer(reservedBy);
    if (kind === 'matched' && invoice !== null) paidHere.add(invoice.id);
    return {
      id: uuidV7(watching.now(), watching.random(10)),
      projectId,
      addressId,
      txId: transfer.txId,
      logIndex: transfer.logIndex,
      blockNumber: block.number,
      blockId: block.id,
      blockTime: block.time,
      fromAddress: accountToAddress(transfer.from),
      amountMicro: transfer.amount,
      kind,
      invoiceId: invoice?.id ?? null,
      toAddress: address,
    };
  });
}

function placedAt(placed: Placed[], index: number): Placed {
  const found = placed[index];
  if (found === undefined) throw new Error(`the database answered about transfer ${index} of ${placed.length}`);
  return found;
}

/**
 * Lets the solid chain speak for the blocks up to `last`: drops their sightings, and if the head chain that we examined
 * disagrees with it, all of that chain. Returns the invoices that had a sighting and have none any more.
 */
async function settleSightings({ network }: Watching, tx: Sql, last: ChainBlock) {
  const examinedId = await findHeadBlockId(tx, network, last.number);
  const isHeadOrphaned = examinedId !== null && examinedId !== last.id;
  const sighted = await findInvoicesSightedUpTo(tx, network, last.number);
  if (isHeadOrphaned) {
    sighted.push(...(await findInvoicesSightedAbove(tx, network, last.number)));
    await deleteHeadBlocksAbove(tx, network, last.number);
  }
  await deleteHeadBlocksUpTo(tx, network, last.number);
  const remaining =
    sighted.length === 0
      ? new Set()
      : await findSighted(
          tx,
          network,
          sighted.map((i) => i.invoiceId),
        );
  return { isHeadOrphaned, invoices: sighted.filter(({ invoiceId }) => !remaining.has(invoiceId)) };
}

function planPaid(transfers: NewTransfer[], invoices: Map<string, ChangeableInvoice>): PlannedChange[] {
  return transfers.flatMap((transfer) => {
    const invoice = transfer.invoiceId === null ? undefined : invoices.get(transfer.invoiceId);
    if (transfer.kind !== 'matched' || invoice === undefined) return [];
    return [{ invoice, change: { kind: 'paid' }, transaction: seen(transfer), transferId: transfer.id }];
  });
}

function planNotices(transfers: Decided[]): PlannedNotice[] {
  return transfers.flatMap((transfer) => {
    if (transfer.kind === 'matched') return [];
    return [
      {
        type: transfer.kind === 'duplicate' ? 'transfer.duplicate' : 'transfer.unmatched',
        projectId: transfer.projectId,
        transfer: { ...seen(transfer), id: transfer.id, to: transfer.toAddress, invoiceId: transfer.invoiceId },
      },
    ];
  });
}

function seen(transfer: NewTransfer) {
  const { txId, logIndex, blockNumber, blockTime, fromAddress, amountMicro } = transfer;
  return { txId, logIndex, blockNumber, blockTime, from: fromAddress, amountMicro: amountMicro as MicroUsdt };
}

function count(transfers: NewTransfer[]): AppliedCounts {
  const counts = { matched: 0, duplicate: 0, unmatched: 0 };
  for (const { kind } of transfers) counts[kind]++;
  return counts;
}
