import { type ChainTransfer, type SolidBlock, verifiedBy } from '../domain/chain-block.ts';
import { encodeId, firstIdOf, timeOfId, uuidV7 } from '../domain/ids.ts';
import { matchTransfer } from '../domain/match.ts';
import type { MicroUsdt } from '../domain/money.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import { findIncoming, type Incoming, noteArrivals } from '../store/chain/incoming.ts';
import type { Sql } from '../store/db/database.ts';
import type { ChangeableInvoice } from '../store/ledger/invoice-changes.ts';
import { findOutgoing, insertOutgoing, type Outgoing } from '../store/ledger/outgoing-transfers.ts';
import { findNewestTransfer, insertTransfers, type NewTransfer } from '../store/ledger/transfers.ts';
import { accountToAddress, type TronAddress } from '../tron/address.ts';
import type { PlannedChange } from './record-changes.ts';
import type { Recording } from './watching.ts';

type Placed = { block: SolidBlock; transfer: ChainTransfer };

export type DecidedTransfer = NewTransfer & { toAddress: TronAddress };

/** The number of transfers of each kind. A transfer between two of our addresses is counted on both sides. */
export type TransferCounts = { matched: number; duplicate: number; unmatched: number; outgoing: number };

/** Whether a block of that time can concern an address that was added then. Whether it can pay an invoice is asked of the database. */
type Concerns = (createdAt: UnixMs, blockTime: UnixMs) => boolean;

/** `isAgain`: transfers that were taken back are recorded again, because an operator saw that the chain has them. */
type Rules = { concerns?: Concerns; isAgain?: boolean };

/**
 * Writes the transfers to and from our addresses that the ledger does not have yet, in chain order, and decides what each incoming one is.
 * The caller's transaction holds the cursor's lock, so that no other process decides at the same time.
 */
export async function recordTransfers(
  recording: Recording,
  tx: Sql,
  blocks: readonly SolidBlock[],
  { concerns = () => true, isAgain = false }: Rules = {},
): Promise<{ incoming: DecidedTransfer[]; counts: TransferCounts }> {
  const { network } = recording;
  const placed = blocks.flatMap((block) =>
    block.transfers.filter(({ amount }) => amount > 0n).map((transfer) => ({ block, transfer })),
  );
  const transfers = placed.map(({ block, transfer }) => ({ ...transfer, blockId: block.id, blockTime: block.time }));
  // The order matters: an address that is added between the two statements then misses incoming transfers, never outgoing ones, so the
  // balance it had before the ledger knew it is not negative.
  const arrived = await findIncoming(tx, network, transfers, isAgain);
  const left = await findOutgoing(tx, network, transfers);
  const idTime = arrived.length === 0 ? recording.now() : await timeOfNext(recording, tx, arrived);
  const incoming = decide(placed, arrived, concerns, (place) => uuidV7(idTime, recording.random(10), place));
  if (incoming.length > 0) await insertTransfers(tx, network, incoming);
  await noteArrivals(tx, network, transfers, arrived);
  const outgoing = await insertOutgoing(tx, network, describeOutgoing(placed, left, concerns), isAgain);
  const counts = { matched: 0, duplicate: 0, unmatched: 0, outgoing };
  for (const { kind } of incoming) counts[kind]++;
  return { incoming, counts };
}

/** So far apart are two clocks at most of which none is told as wrong, each by 30 s. Whoever plants an id beyond it moves no other. */
const MOST_APART_MS = 60_000;

/** The time for ids above all that the projects have, so that who reads on behind the last one misses none, whosever clock was ahead. */
async function timeOfNext({ now }: Recording, tx: Sql, arrived: Incoming[]): Promise<UnixMs> {
  const at = now();
  const projectIds = [...new Set(arrived.map(({ projectId }) => projectId))];
  const newest = await findNewestTransfer(tx, projectIds, firstIdOf(at + MOST_APART_MS));
  return newest === null ? at : unixMs(Math.max(at, timeOfId(encodeId('trf', newest)) + 1));
}

/** Decides each incoming transfer in chain order; the first exact one of an invoice pays it, the next is a duplicate. */
function decide(
  placed: Placed[],
  arrived: Incoming[],
  concerns: Concerns,
  newId: (place: number) => string,
): DecidedTransfer[] {
  const paidHere = new Set<string>();
  return arrived.flatMap(({ index, projectId, addressId, addressCreatedAt, address, invoice }, place) => {
    const { block, transfer } = placedAt(placed, index);
    if (!concerns(addressCreatedAt, block.time)) return [];
    const reservedBy = invoice && {
      invoiceId: invoice.id,
      status: paidHere.has(invoice.id) ? ('PAID' as const) : invoice.status,
    };
    const { kind } = matchTransfer(reservedBy);
    if (kind === 'matched' && invoice !== null) paidHere.add(invoice.id);
    return [
      {
        // Ids rise in chain order, and events follow it.
        id: newId(place),
        projectId,
        addressId,
        ...describe(block, transfer),
        fromAddress: accountToAddress(transfer.from),
        kind,
        invoiceId: invoice?.id ?? null,
        producer: block.producer,
        toAddress: address,
      },
    ];
  });
}

function describeOutgoing(placed: Placed[], left: Outgoing[], concerns: Concerns) {
  return left.flatMap(({ index, projectId, addressId, addressCreatedAt }) => {
    const { block, transfer } = placedAt(placed, index);
    if (!concerns(addressCreatedAt, block.time)) return [];
    return [{ projectId, addressId, ...describe(block, transfer), toAddress: accountToAddress(transfer.to) }];
  });
}

/** Both sides of a transfer keep this of it. */
function describe(block: SolidBlock, transfer: ChainTransfer) {
  return {
    txId: transfer.txId,
    logIndex: transfer.logIndex,
    blockNumber: block.number,
    blockId: block.id,
    blockTime: block.time,
    amountMicro: transfer.amount,
    verified: verifiedBy(transfer, block.evidence),
    nodes: [...block.evidence.nodes],
  };
}

function placedAt(placed: Placed[], index: number): Placed {
  const found = placed[index];
  if (found === undefined) throw new Error(`the database answered about transfer ${index} of ${placed.length}`);
  return found;
}

/** The invoices of those transfers, as `findChangeable` wants them. */
export function invoicesOf(transfers: readonly NewTransfer[]): { projectId: string; invoiceId: string }[] {
  return transfers.flatMap(({ projectId, invoiceId }) => (invoiceId === null ? [] : [{ projectId, invoiceId }]));
}

/** The changes of the invoices that the transfers pay. */
export function planPaid(transfers: readonly NewTransfer[], invoices: readonly ChangeableInvoice[]): PlannedChange[] {
  const byId = new Map(invoices.map((invoice) => [invoice.id, invoice]));
  return transfers.flatMap((transfer) => {
    const invoice = transfer.invoiceId === null ? undefined : byId.get(transfer.invoiceId);
    if (transfer.kind !== 'matched' || invoice === undefined) return [];
    return [{ invoice, change: { kind: 'paid' }, transaction: seen(transfer), transferId: transfer.id }];
  });
}

function seen(transfer: NewTransfer) {
  const { txId, logIndex, blockNumber, blockTime, fromAddress, amountMicro } = transfer;
  return { txId, logIndex, blockNumber, blockTime, from: fromAddress, amountMicro: amountMicro as MicroUsdt };
}
