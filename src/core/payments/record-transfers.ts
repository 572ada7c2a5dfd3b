import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { type ChainTransfer, type SolidBlock, type Verified, verifiedBy } from '../domain/chain-block.ts';
import { encodeId, firstIdOf, timeOfId, uuidV7 } from '../domain/ids.ts';
import { type Match, matchTransfer } from '../domain/invoice.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import { reasonOf } from '../runtime/reason-of.ts';
import {
  deleteHeadBlocksAbove,
  deleteHeadBlocksUpTo,
  findDetected,
  findHeadBlockId,
  findInvoicesDetectedAbove,
  findInvoicesDetectedUpTo,
  type InvoiceKey,
  updateCursor,
} from '../store/chain/cursor.ts';
import {
  findIncoming,
  findOurAccounts,
  forgetOldArrivals,
  type Incoming,
  noteArrivals,
} from '../store/chain/incoming.ts';
import { findBehindSetAside, insertSetAside, type SetAside } from '../store/chain/set-aside.ts';
import type { Sql } from '../store/db/database.ts';
import { answerOf } from '../store/db/rows-of.ts';
import { hexSeal, type LeftOut } from '../store/db/seal.ts';
import { SEALED_OUTGOING, SEALED_TRANSFER } from '../store/db/sealed-tables.ts';
import { count, hex, jsonRows, maybeHex, micro, type Row, statement, text } from '../store/db/statement.ts';
import { outgoingAnnulment } from '../store/ledger/annulments.ts';
import { type ChangeableInvoice, findChangeable, type PlannedChange, recordChanges } from './record-changes.ts';
import { assertLinked, type Recording, type Watching, withCursorApart } from './watching.ts';

type Placed = { block: SolidBlock; transfer: ChainTransfer };

/** `index` is the transfer's position among all transfers in these blocks that involve a project's address. */
type DecidedTransfer = NewTransfer & { index: number };

/** The number of transfers of each kind. A transfer between two of our addresses is counted on both sides. */
export type TransferCounts = { matched: number; duplicate: number; unmatched: number; outgoing: number };

/**
 * Whether a block with this time can matter for an address that was added at `createdAt`. The database decides whether a transfer in it can
 * pay an invoice.
 */
type Concerns = (createdAt: UnixMs, blockTime: UnixMs) => boolean;

/**
 * `isAgain`: annulled transfers are recorded again, because an operator has seen that they are on the chain. `mayOvertake`: the transfers
 * were set aside before, and no earlier equal transfer is still set aside.
 */
type Rules = { concerns?: Concerns; isAgain?: boolean; mayOvertake?: boolean };

/**
 * `incoming`: incoming transfers that aren't in the ledger yet, in chain order, each with its kind. `invoices`: their invoices. `aside`:
 * transfers that can't be recorded now, because the row of their address or invoice fails its check, or because an earlier equal transfer
 * is waiting for such a row.
 */
type Decided = {
  incoming: DecidedTransfer[];
  outgoing: ReturnType<typeof describeOutgoing>;
  invoices: ChangeableInvoice[];
  aside: SetAside[];
};

/**
 * Determines the kind of each transfer to or from our addresses. The caller's transaction must hold the cursor's lock, so that no other
 * process can decide at the same time.
 */
async function decideTransfers(
  recording: Recording,
  tx: Sql,
  blocks: readonly SolidBlock[],
  { concerns = () => true, isAgain = false, mayOvertake = false }: Rules = {},
): Promise<Decided> {
  const { network } = recording;
  const parties = blocks.flatMap(({ transfers }) => transfers.flatMap(({ from, to }) => [from, to]));
  // Nearly all transfers are between strangers. An address that is added later can't have any transfers in these blocks, incoming or
  // outgoing.
  const ours = await findOurAccounts(tx, network, [...new Set(parties)]);
  const placed = blocks.flatMap((block) =>
    block.transfers
      .filter(({ from, to, amount }) => amount > 0n && (ours.has(from) || ours.has(to)))
      .map((transfer) => ({ block, transfer })),
  );
  const transfers = placed.map(({ block, transfer }) => ({ ...transfer, blockId: block.id, blockTime: block.time }));
  const aside: SetAside[] = [];
  const setAside = (index: number, reason: string) => aside.push(asideOf(placedAt(placed, index), reason));
  const damaged: LeftOut[] = [];
  const isOfOurs = (side: 'from' | 'to') => (row: { index: number }) =>
    ours.has(placedAt(placed, row.index).transfer[side]);
  const found = (await findIncoming(tx, network, transfers, isAgain, damaged)).filter(isOfOurs('to'));
  const left = (await findOutgoing(tx, network, transfers)).filter(isOfOurs('from'));
  for (const { row, error } of damaged) setAside(Number(row['index']), error.message);
  const behind = mayOvertake
    ? new Set()
    : await findBehindSetAside(
        tx,
        network,
        found.map(({ index }) => placedAt(placed, index).transfer),
      );
  const arrived = found.filter((_, place) => !behind.has(place));
  for (const [place, { index }] of found.entries()) if (behind.has(place)) setAside(index, BEHIND);
  const idTime = arrived.length === 0 ? recording.now() : await timeOfNext(recording, tx, arrived);
  const decided = decide(placed, arrived, concerns, (place) => uuidV7(idTime, recording.random(10), place));
  await noteArrivals(tx, network, transfers, found);
  const unsound: LeftOut[] = [];
  const invoices = await findChangeable(tx, network, invoicesOf(decided), unsound);
  const reasons = new Map(unsound.map(({ row, error }) => [row['id'], error.message]));
  const incoming = decided.filter(({ invoiceId, index }) => {
    const reason = reasons.get(invoiceId);
    if (reason !== undefined) setAside(index, reason);
    return reason === undefined;
  });
  return { incoming, invoices, aside, outgoing: describeOutgoing(placed, left, concerns) };
}

export const BEHIND =
  'an earlier transfer of the same amount to the same address is set aside, and must be recorded first';

function asideOf({ block, transfer }: Placed, reason: string): SetAside {
  return { kind: 'transfer', block: { ...block, transfers: [transfer] }, reason };
}

/** Describes a transfer whose kind was decided, but which couldn't be written. */
function setAsideOf(blocks: readonly SolidBlock[], { txId, logIndex, blockId }: NewTransfer, reason: string) {
  const block = blocks.find(({ id }) => id === blockId);
  const transfer = block?.transfers.find((each) => each.txId === txId && each.logIndex === logIndex);
  if (block === undefined || transfer === undefined) throw new Error(`transfer ${txId} is in none of the blocks`);
  return asideOf({ block, transfer }, reason);
}

function countTransfers(incoming: readonly NewTransfer[], outgoing: number): TransferCounts {
  const counts = { matched: 0, duplicate: 0, unmatched: 0, outgoing };
  for (const { kind } of incoming) counts[kind]++;
  return counts;
}

/**
 * Writes the transfers that aren't in the ledger yet, and the invoices that they pay, with their events. Transfers that can't be recorded
 * now are set aside.
 */
export async function recordTransfers(
  recording: Recording,
  tx: Sql,
  blocks: readonly SolidBlock[],
  headNumber: number,
  rules: Rules = {},
): Promise<{ counts: TransferCounts; aside: readonly SetAside[] }> {
  const { network } = recording;
  const { incoming, invoices, aside, outgoing } = await decideTransfers(recording, tx, blocks, rules);
  if (incoming.length > 0) await insertTransfers(tx, network, incoming);
  const left = await insertOutgoing(tx, network, outgoing, rules.isAgain);
  await recordChanges(recording, tx, planPaid(incoming, invoices), headNumber);
  await insertSetAside(tx, network, aside);
  return { counts: countTransfers(incoming, left), aside };
}

/**
 * The largest difference between two clocks that doesn't raise an alarm, because each may be off by 30 s. An attacker's id that is further
 * ahead doesn't affect other ids.
 */
const MOST_APART_MS = 60_000;

/**
 * Returns a time that makes ids higher than all of the projects' existing ids. This way, a reader that continues after the last id never
 * misses a transfer, whichever process's clock is ahead.
 */
async function timeOfNext({ now }: Recording, tx: Sql, arrived: Incoming[]): Promise<UnixMs> {
  const at = now();
  const projectIds = [...new Set(arrived.map(({ projectId }) => projectId))];
  const newest = await findNewestTransfer(tx, projectIds, firstIdOf(at + MOST_APART_MS));
  return newest === null ? at : unixMs(Math.max(at, timeOfId(encodeId('trf', newest)) + 1));
}

/** Decides each incoming transfer in chain order. The first exact transfer for an invoice pays it; any further one is a duplicate. */
function decide(
  placed: Placed[],
  arrived: Incoming[],
  concerns: Concerns,
  newId: (place: number) => string,
): DecidedTransfer[] {
  const paidHere = new Set<string>();
  return arrived.flatMap(({ index, projectId, addressId, addressCreatedAt, invoice }, place) => {
    const { block, transfer } = placedAt(placed, index);
    if (!concerns(addressCreatedAt, block.time)) return [];
    const kind = matchTransfer(invoice && (paidHere.has(invoice.id) ? 'PAID' : invoice.status));
    if (kind === 'matched' && invoice !== null) paidHere.add(invoice.id);
    return [
      {
        // Ids increase in chain order, and events have the same order.
        id: newId(place),
        projectId,
        addressId,
        ...describe(block, transfer),
        fromAddress: accountToAddress(transfer.from),
        kind,
        invoiceId: invoice?.id ?? null,
        producer: block.producer,
        index,
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

/** Returns the fields that are stored for both sides of a transfer. */
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
  if (found === undefined)
    throw new Error(`the database returned transfer ${index}, but only ${placed.length} were sent`);
  return found;
}

/** Returns these transfers' invoices in the form that `findChangeable` expects. */
function invoicesOf(transfers: readonly NewTransfer[]): { projectId: string; invoiceId: string }[] {
  return transfers.flatMap(({ projectId, invoiceId }) => (invoiceId === null ? [] : [{ projectId, invoiceId }]));
}

/** Returns the changes to the invoices that the transfers pay. */
function planPaid(transfers: readonly NewTransfer[], invoices: readonly ChangeableInvoice[]): PlannedChange[] {
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
    await updateCursor(tx, network, last);
    await forgetOldArrivals(tx, network, last.time);

    const paid = planPaid(incoming, invoices);
    const paidIds = new Set(paid.map(({ invoice }) => invoice.id));
    const unsound: LeftOut[] = [];
    const lost = orphaned.invoices.filter(({ invoiceId }) => !paidIds.has(invoiceId));
    const reverted = (await findChangeable(tx, network, lost, unsound)).map((invoice): Written => {
      // Operators may not agree yet on the blocks above `last`, and one of those may contain the payment.
      const change = { kind: 'orphaned', clock: last.time } as const;
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

/** An irreversible transfer to or from one of our addresses. */
const recorded = {
  projectId: 'uuid',
  addressId: 'uuid',
  txId: hex(),
  logIndex: 'int4',
  blockNumber: count,
  blockId: hex(),
  blockTime: 'timestamptz',
  amountMicro: micro(),
  /** How the transfer was verified, and the origins of the nodes that showed it. */
  verified: text<Verified>(),
  nodes: 'text[]',
} as const;

const arrival = {
  ...recorded,
  id: 'uuid',
  fromAddress: 'text',
  kind: text<Match>(),
  invoiceId: 'uuid?',
  /** The account that produced the block. */
  producer: hex<AccountHex>(),
} as const;

/** A transfer to one of our addresses, in its stored form. */
export type NewTransfer = Row<typeof arrival>;

const arrivals = jsonRows({ ...arrival, mac: maybeHex });

/**
 * Records transfers, and marks those that didn't pay an invoice, so that events are written for them. The caller must leave out transfers
 * that are already in the ledger. A constraint refuses a second record, unless all earlier ones were annulled.
 */
export async function insertTransfers(tx: Sql, network: Network, transfers: readonly NewTransfer[]): Promise<void> {
  const sealer = await tx.sealer();
  const mac = (row: NewTransfer) => hexSeal(sealer, SEALED_TRANSFER, { ...row, network });
  await tx.run(insertArrivals, [network, arrivals.bind(transfers.map((row) => ({ ...row, mac: mac(row) })))]);
  const untold = transfers.filter(({ kind }) => kind !== 'matched');
  if (untold.length === 0) return;
  await tx.run(insertUntold, [network, untold.map(({ projectId }) => projectId), untold.map(({ id }) => id)]);
}

const insertArrivals = statement(
  'transfer-insert',
  {},
  `insert into transfers (network, reserved_micro, correction, ${arrivals.columns})
   select $1, case when t.kind <> 'unmatched' then t.amount_micro::int8 end,
     (select count(*) from transfers r join transfer_annulments n on n.transfer_id = r.id
      where r.network = $1 and r.tx_id = t.tx_id and r.log_index = t.log_index), ${arrivals.columns}
   from ${arrivals.table('$2')}`,
);

const insertUntold = statement(
  'untold-insert',
  {},
  'insert into untold_transfers (network, project_id, transfer_id) select $1, * from unnest($2::uuid[], $3::uuid[])',
);

/** Returns the newest transfer (UUID) below `below` to any of the projects, or `null`. */
const findNewestTransfer = answerOf(
  'transfer-newest',
  { id: 'uuid' },
  `select t.id from unnest($1::uuid[]) as p (id)
   cross join lateral (select id from transfers where project_id = p.id and id < $2 order by id desc limit 1) t
   order by t.id desc limit 1`,
  (projectIds: readonly string[], below: string) => [projectIds, below],
  ([row]) => row?.id ?? null,
);

const selectOutgoing = statement(
  'outgoing-select',
  { index: count, projectId: 'uuid', addressId: 'uuid', addressCreatedAt: 'timestamptz' },
  `select t.index - 1 as index, a.project_id, a.id as address_id, a.created_at as address_created_at
   from unnest($2::text[]) with ordinality as t(account, index)
   join addresses a on a.network = $1 and a.account = decode(t.account, 'hex')
   order by t.index`,
);

/** A transfer from one of our addresses. `index` is its position in the given list. */
type Outgoing = Row<typeof selectOutgoing.shape>;

/** Finds the transfers from our addresses, whether active or retired, in the given order. */
async function findOutgoing(tx: Sql, network: Network, transfers: Pick<ChainTransfer, 'from'>[]): Promise<Outgoing[]> {
  if (transfers.length === 0) return [];
  return tx.run(selectOutgoing, [network, transfers.map(({ from }) => from)]);
}

const departure = { ...recorded, toAddress: 'text' } as const;
const departures = jsonRows({ ...departure, mac: maybeHex });

const insertDepartures = statement(
  'outgoing-insert',
  { logIndex: 'int4' },
  `insert into outgoing_transfers (network, ${departures.columns})
   select $1, ${departures.columns} from ${departures.table('$2')}
   on conflict (network, tx_id, log_index) do nothing
   returning log_index`,
);

// Adds another record of a transfer log if all its earlier records were annulled. A transfer that is the same as an annulled one is
// recorded again only if $3 allows that.
const correctDepartures = statement(
  'outgoing-correct',
  { logIndex: 'int4' },
  `insert into outgoing_corrections (network, correction, ${departures.columns})
   select $1, before.count, ${departures.columns}
   from ${departures.table('$2')}
   cross join lateral (
     select count(*)::int4 as count, coalesce(bool_and(n.tx_id is not null), false) as are_annulled,
       coalesce(bool_or(o.address_id = t.address_id and o.amount_micro = t.amount_micro and o.block_id = t.block_id), false) as was_denied
     from outgoing_transfers o left join outgoing_annulments n on ${outgoingAnnulment('o')}
     where o.network = $1 and o.tx_id = t.tx_id and o.log_index = t.log_index) before
   where before.are_annulled and ($3::bool or not before.was_denied)
   returning log_index`,
);

/**
 * Records outgoing transfers. Skips transfers that are already in the ledger and, unless `isAgain`, annulled transfers. Returns how many
 * were new.
 */
export async function insertOutgoing(
  tx: Sql,
  network: Network,
  transfers: Row<typeof departure>[],
  isAgain = false,
): Promise<number> {
  if (transfers.length === 0) return 0;
  const sealer = await tx.sealer();
  const sealed = departures.bind(
    transfers.map((row) => ({ ...row, mac: hexSeal(sealer, SEALED_OUTGOING, { ...row, network }) })),
  );
  const added = (await tx.run(insertDepartures, [network, sealed])).length;
  if (added === transfers.length) return added;
  return added + (await tx.run(correctDepartures, [network, sealed, isAgain])).length;
}
