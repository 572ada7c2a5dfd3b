import { accountToAddress } from '@quittance/tron/address';
import type { ChainBlock } from '../domain/chain-block.ts';
import { AppError } from '../domain/errors.ts';
import type { SeenTransfer } from '../domain/event.ts';
import type { MicroUsdt } from '../domain/money.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import { reasonOf } from '../runtime/reason-of.ts';
import {
  type ChainCursor,
  deleteHeadBlocksAbove,
  findDetected,
  findHeadBlockId,
  findInvoicesDetectedAbove,
  type InvoiceKey,
  insertHeadBlocks,
  insertSightings,
  type Sighting,
} from '../store/chain/cursor.ts';
import { findIncoming, noteArrivals } from '../store/chain/incoming.ts';
import { insertSetAside, type SetAside } from '../store/chain/set-aside.ts';
import type { Sql } from '../store/db/database.ts';
import type { LeftOut } from '../store/db/seal.ts';
import { findChangeable, type PlannedChange, recordChanges } from './record-changes.ts';
import { assertLinked, type Watching, withCursorApart } from './watching.ts';

type Detected = { sighting: Sighting; seen: SeenTransfer };

/**
 * Records examined blocks above the solid one in one transaction, and returns the heights of the blocks that contain an exact transfer for
 * an invoice. Invoices with an exact transfer become `CONFIRMING`, and invoices that lost their transfer change back.
 * - `ancestorNumber`: the height that the blocks build on. Blocks that were examined above it are orphaned, and are dropped first, so that
 *   a transfer that moves to the new branch doesn't change any status.
 * - `certainTime`: the time of the newest block whose transfers are all known. An invoice that lost its transfer must not expire by a later
 *   time, because its transfer may be in a block that is still waiting.
 * - `open`: the blocks whose transfers aren't all known yet. Earlier sightings in them are kept, because the watcher knew more then.
 * - `orphaned`: blocks that were examined before these, needed because an address may have been added since then.
 *   Errors: `LEASE_LOST`; `CHAIN_CONTRADICTION` if the blocks don't link to the block at `ancestorNumber`.
 */
export function detectBlocks(
  watching: Watching,
  ancestorNumber: number,
  blocks: ChainBlock[],
  certainTime: UnixMs,
  open: readonly { number: number; id: string }[] = [],
  orphaned: readonly ChainBlock[] = [],
): Promise<ReadonlySet<number>> {
  return withCursorApart(watching, async (tx, cursor, write) => {
    const { network } = watching;
    const head = blocks.at(-1);
    if (head === undefined) return new Set();
    const ancestor = await findAncestor(watching, tx, cursor, ancestorNumber);
    assertLinked(ancestor, blocks);
    const lost = ancestorNumber < cursor.head.number ? await dropAbove(watching, tx, ancestorNumber, open) : [];
    await insertHeadBlocks(tx, network, blocks);
    if (orphaned.length > 0) await findExact(watching, tx, orphaned);
    const detected = await findExact(watching, tx, blocks);
    if (detected.length > 0)
      await insertSightings(
        tx,
        network,
        detected.map(({ sighting }) => sighting),
      );

    const touched: InvoiceKey[] = [...lost, ...detected.map(({ sighting }) => sighting)];
    const detectedNumbers = new Set(detected.map(({ sighting }) => sighting.blockNumber));
    if (touched.length === 0) return detectedNumbers;
    const stillDetected = await findDetected(
      tx,
      network,
      touched.map(({ invoiceId }) => invoiceId),
    );
    const unsound: LeftOut[] = [];
    const invoices = await findChangeable(tx, network, touched, unsound);
    const clock = unixMs(Math.min(head.time, certainTime));
    const changes = invoices.map((invoice): PlannedChange => {
      const seen = detected.find(({ sighting }) => sighting.invoiceId === invoice.id)?.seen ?? null;
      const change = stillDetected.has(invoice.id)
        ? ({ kind: 'sighted' } as const)
        : ({ kind: 'orphaned', clock } as const);
      return { invoice, change, transaction: seen, transferId: null };
    });
    const failed = await write(tx, changes, (some) => recordChanges(watching, tx, [...some], head.number));
    const reasons = new Map([
      ...failed.map(({ item, error }) => [item.invoice.id, reasonOf(error)] as const),
      ...unsound.map(({ row, error }) => [String(row['id']), error.message] as const),
    ]);
    // An invoice that isn't marked as sighted can still be marked as paid later, but an invoice with a stale sighting would keep that
    // sighting.
    const waiting = lost.flatMap((invoice): SetAside[] => {
      const reason = reasons.get(invoice.invoiceId);
      return reason === undefined ? [] : [{ kind: 'invoice', invoice, reason }];
    });
    await insertSetAside(tx, network, waiting);
    return detectedNumbers;
  });
}

async function findAncestor({ network }: Watching, tx: Sql, { solid }: ChainCursor, number: number) {
  if (number === solid.number) return solid;
  const id = await findHeadBlockId(tx, network, number);
  if (id === null) {
    throw new AppError('CHAIN_CONTRADICTION', `block ${number} was never examined; the solid block is ${solid.number}`);
  }
  return { number, id };
}

async function dropAbove(
  { network }: Watching,
  tx: Sql,
  number: number,
  kept: readonly { number: number; id: string }[],
): Promise<InvoiceKey[]> {
  const lost = await findInvoicesDetectedAbove(tx, network, number);
  await deleteHeadBlocksAbove(tx, network, number, kept);
  return lost;
}

/**
 * Returns the transfers that would pay an invoice: exact transfers to its address, made after its creation, if the invoice isn't paid yet.
 * All transfers to our addresses are stored.
 */
async function findExact({ network }: Watching, tx: Sql, blocks: readonly ChainBlock[]): Promise<Detected[]> {
  const placed = blocks.flatMap((block) => block.transfers.map((transfer) => ({ block, transfer })));
  const transfers = placed.map(({ block, transfer }) => ({ ...transfer, blockId: block.id, blockTime: block.time }));
  // Transfers to an address that fails its check are set aside when they become irreversible.
  const incoming = await findIncoming(tx, network, transfers, false, []);
  await noteArrivals(tx, network, transfers, incoming);
  return incoming.flatMap(({ index, projectId, invoice }) => {
    const found = placed[index];
    if (found === undefined || invoice === null || invoice.status === 'PAID') return [];
    const { txId, logIndex, from, amount } = found.transfer;
    const fromAddress = accountToAddress(from);
    const blockNumber = found.block.number;
    return [
      {
        sighting: {
          blockNumber,
          position: index,
          txId,
          logIndex,
          projectId,
          invoiceId: invoice.id,
          fromAddress,
          amountMicro: amount,
        },
        seen: {
          txId,
          logIndex,
          blockNumber,
          blockTime: found.block.time,
          from: fromAddress,
          amountMicro: amount as MicroUsdt,
        },
      },
    ];
  });
}
