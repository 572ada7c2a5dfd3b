import { encodeId } from '../../../core/domain/ids.ts';
import { INVOICE_STATUSES } from '../../../core/domain/invoice.ts';
import type { Fit } from '../../../core/domain/mismatch/rank-causes.ts';
import type { Cause } from '../../../core/domain/mismatch.ts';
import type { Network } from '../../../core/domain/network.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { compareTransfers, diagnoseTransfers } from '../../../core/payments/mismatch/diagnose-transfers.ts';
import { listOperatorActions } from '../../../core/store/access/audit-log.ts';
import { findOpenAlarms } from '../../../core/store/chain/alarms.ts';
import { type ChainCursor, findCursor, findHalt } from '../../../core/store/chain/cursor.ts';
import { readSetAside } from '../../../core/store/chain/set-aside.ts';
import { findChainStatus } from '../../../core/store/chain/status.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import type { Actor } from '../actor.ts';
import {
  findResolutions,
  findTransfers,
  findTransfersOfTransaction,
  findTransfersToAddress,
  type Resolution,
  type TransferRecord,
} from '../subjects/transfer-export.ts';
import type { Omission } from './explanation.ts';
import type {
  ExplainedAddress,
  ExplainedAttempt,
  ExplainedDelivery,
  ExplainedEvent,
  ExplainedInvoice,
  ExplainedSighting,
} from './statements.ts';
import * as statements from './statements.ts';

/**
 * An incoming transfer. `causes` are the reasons why it may match no invoice, best first. `fit` is how the transfer fits the invoice in
 * question. It's `null` if the transfer hardly fits, or if no invoice is in question. The operators' resolutions are oldest first.
 */
export type DescribedTransfer = {
  transfer: TransferRecord;
  causes: readonly Cause[];
  fit: Fit | null;
  resolutions: readonly Resolution[];
};

/** An event and its deliveries; `null` if those were omitted. */
export type DescribedEvent = { event: ExplainedEvent; deliveries: readonly DescribedDelivery[] | null };
export type DescribedDelivery = { delivery: ExplainedDelivery; attempts: readonly ExplainedAttempt[] };

/** No one would read longer lists. */
const [MAX_SHOWN, MAX_EVENTS, MAX_DELIVERIES] = [20, 60, 60];
/** The limit for each delivery. A schedule has 12 attempts, and up to 240 while the endpoint fails. */
const MAX_ATTEMPTS = 60;

export const omit = (what: string, shown: number, total: number): Omission => {
  return { what, shown: Math.min(shown, total), total };
};

/** Reads the newest deliveries of events. */
export async function readDeliveries(
  db: Sql,
  events: readonly ExplainedEvent[],
): Promise<{ events: DescribedEvent[]; deliveries: Omit<Omission, 'what'> }> {
  const ids = events.map(({ id }) => id);
  const deliveries = await statements.findDeliveries(db, ids, MAX_DELIVERIES);
  const total = deliveries[0]?.total ?? 0;
  const attempts = await statements.findAttempts(db, deliveries, MAX_ATTEMPTS);
  const described = events.map((event) => {
    const own = deliveries.filter(({ eventId }) => eventId === event.id);
    if (own.length === 0 && total > deliveries.length) return { event, deliveries: null };
    const isOf = (delivery: ExplainedDelivery) => (attempt: ExplainedAttempt) =>
      attempt.eventId === event.id && attempt.endpointId === delivery.endpointId;
    return {
      event,
      deliveries: own.map((delivery) => ({ delivery, attempts: attempts.filter(isOf(delivery)) })),
    };
  });
  return { events: described, deliveries: { shown: deliveries.length, total } };
}

/** How far the ledger has followed a network, and what keeps it from continuing. */
export type Stand = { network: Network; cursor: ChainCursor | null; trouble: string | null };

/** A running chain has a block every 3 s; the rest is an allowance for slow nodes and the watcher. */
const LAG_MS = 120_000;

export async function readStand(db: Sql, network: Network, now: UnixMs): Promise<Stand> {
  const cursor = await findCursor(db, network);
  const halt = await findHalt(db, network);
  const blind = (await findChainStatus(db, network))?.status.blind ?? null;
  return { network, cursor, trouble: describeTrouble() };

  function describeTrouble(): string | null {
    if (halt !== null) return `the ${network} watcher has been halted since ${toIso(halt.at)}: ${halt.reason}`;
    if (cursor === null) return `the watcher has not read a block of ${network} yet`;
    const { number, time } = cursor.head;
    if (now - time <= LAG_MS) return null;
    const seen = `${network} was examined only up to block ${number} (${toIso(time)}), so later transfers are not known yet`;
    return blind === null ? seen : `${seen}: ${blind}`;
  }
}

/** Reads everything that explains an invoice. `now` is used to decide whether the ledger is lagging behind. */
export async function readInvoiceFacts(db: Sql, invoice: ExplainedInvoice, now: UnixMs) {
  const duplicates = await statements.findDuplicates(db, invoice, MAX_SHOWN);
  const { paidTransferId } = invoice;
  const exactIds = [...(paidTransferId === null ? [] : [paidTransferId]), ...duplicates.ids];
  const { compared, nearIds, unmatched } = await findNear(db, invoice, exactIds);
  const ids = [...exactIds, ...nearIds];
  const records = await findTransfers(db, ids);
  const resolutions = await findResolutions(db, ids);
  const own = await statements.findEventsOfInvoice(db, invoice, MAX_EVENTS);
  // The payment's event belongs to the invoice and is listed there.
  const others = (await statements.findEventsOfTransfers(db, ids, MAX_EVENTS)).filter(
    ({ type }) => !type.startsWith('invoice.'),
  );
  const ofInvoice = await readDeliveries(db, own.toReversed());
  const ofOthers = await readDeliveries(db, others);
  const transfers = records.map((transfer): DescribedTransfer => {
    const { causes = [], fit = null } = compared.get(transfer.id) ?? {};
    return { transfer, causes, fit, resolutions: resolutions.get(transfer.id) ?? [] };
  });
  const made = await listOperatorActions(db, encodeId('inv', invoice.id));
  const actions = [...made, ...(await listOperatorActions(db, invoice.address))].filter(
    ({ projectId, actedAt }) => projectId === invoice.projectId && actedAt >= invoice.createdAt,
  );
  return {
    invoice,
    actions: actions.slice(-MAX_SHOWN),
    sightings: await statements.findSightingsOfInvoice(db, invoice, MAX_SHOWN),
    setAside: (await statements.findSetAsideOfInvoice(db, invoice, MAX_SHOWN)).map(readEntry),
    payment: transfers.find(({ transfer }) => transfer.id === paidTransferId) ?? null,
    /** Later transfers of exactly its amount, newest last. */
    duplicates: {
      shown: transfers.filter(({ transfer }) => duplicates.ids.includes(transfer.id)),
      total: duplicates.total,
    },
    /** Transfers that an operator has linked to the invoice, and unmatched transfers that may have been meant for it, likeliest first. */
    near: nearIds.flatMap((id) => transfers.find(({ transfer }) => transfer.id === id) ?? []),
    unmatched,
    isTampered: await isTampered(db, [invoice.network], [invoice.id, ...ids]),
    /** The events are in sequence order. */
    events: ofInvoice.events,
    transferEvents: ofOthers.events,
    stand: await readStand(db, invoice.network, now),
    omissions: [
      omit('transfers of exactly this amount after the payment', duplicates.ids.length, duplicates.total),
      omit('unmatched transfers that may be meant for this invoice', MAX_SHOWN, unmatched.fitting),
      omit('unmatched transfers compared with this invoice', unmatched.compared, unmatched.total),
      omit('events of the invoice', own.length, invoice.eventCount),
      { what: 'deliveries of these events', ...ofInvoice.deliveries },
      { what: 'deliveries of events of the transfers', ...ofOthers.deliveries },
    ],
  };
}

const ROW_ALARMS: readonly string[] = ['row-changed', 'row-unsealed', 'rows-missing'];

/** Whether an open alarm says that one of these rows (UUIDs) was changed directly in the database. The subject of such an alarm ends in its id. */
async function isTampered(db: Sql, networks: Iterable<Network>, ids: readonly string[]): Promise<boolean> {
  for (const network of new Set(networks)) {
    const alarms = await findOpenAlarms(db, network);
    if (alarms.some(({ kind, subject }) => ROW_ALARMS.includes(kind) && ids.some((id) => subject.endsWith(id))))
      return true;
  }
  return false;
}

/** Finds unmatched transfers that are linked to the invoice, or that were probably meant for it. */
async function findNear(db: Sql, invoice: ExplainedInvoice, exactIds: readonly string[]) {
  const linked = await statements.findLinkedTransfers(db, invoice, MAX_SHOWN);
  const others = linked.filter((id) => !exactIds.includes(id));
  // Returns the oldest, the newest and those nearest in amount, up to the limit for each of these groups.
  const { total, isAll, ids } = await statements.findCandidates(db, invoice, MAX_SHOWN);
  const resolutions = await findResolutions(db, ids);
  // If an operator has linked a transfer to another invoice, or marked it as the merchant's own, it's settled.
  const isElsewhere = (id: string) => {
    const last = resolutions.get(id)?.at(-1);
    return last?.resolution === 'own-deposit' || (last?.invoice != null && last.invoice.id !== invoice.id);
  };
  const duplicateIds = exactIds.filter((id) => id !== invoice.paidTransferId);
  const compared = await compareTransfers(db, [...new Set([...ids, ...others, ...duplicateIds])], invoice);
  const isResolved = (id: string) => Number(resolutions.has(id));
  const share = (id: string) => compared.get(id)?.fit?.share ?? 0;
  const fitting = ids
    .filter((id) => compared.get(id)?.fit != null && !isElsewhere(id) && !others.includes(id))
    .toReversed()
    .sort((a, b) => isResolved(a) - isResolved(b) || share(b) - share(a));
  // `compared` is the number of unmatched transfers since the invoice's creation that went to its address or have one of its amounts.
  // `isAll` is false if there may be more.
  return {
    nearIds: [...others, ...fitting.slice(0, MAX_SHOWN)],
    compared,
    unmatched: { total, isAll, compared: ids.length, fitting: fitting.length },
  };
}

/** `transfer` is `null` if the entry is about an invoice's status, or was changed directly in the database. */
function readEntry(row: statements.ExplainedSetAside) {
  const entry = row.isSound ? readSetAside(row) : null;
  const [transfer] = entry?.kind === 'transfer' ? entry.block.transfers : [];
  return {
    network: row.network,
    reason: row.isSound ? row.reason : 'its entry was changed directly in the database',
    transfer:
      entry?.kind === 'transfer' && transfer !== undefined ? { ...transfer, blockNumber: entry.block.number } : null,
  };
}

/** A transaction may pay hundreds of addresses, but only this many are shown. */
const MAX_TRANSFERS = 50;

/** Reads all our transfers in a transaction, on any network. Returns `null` if there are none. */
export async function readTransactionFacts(db: Sql, txId: string, projects: Actor['projects']) {
  const found = await findTransfersOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  const left = await statements.findOutgoingOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  const seen = await statements.findSightingsOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  const aside = await statements.findSetAsideOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  if (found.length + left.length + seen.length + aside.length === 0) return null;
  const transfers = found.slice(0, MAX_TRANSFERS);
  const ids = transfers.map(({ id }) => id);
  const causes = await diagnoseTransfers(db, ids);
  const resolutions = await findResolutions(db, ids);
  const { events, deliveries } = await readDeliveries(db, await statements.findEventsOfTransfers(db, ids, 100));
  const sightings = [];
  for (const sighting of seen.slice(0, MAX_TRANSFERS)) sightings.push(await withRival(db, sighting));
  return {
    transfers: transfers.map((transfer): DescribedTransfer => {
      const { id } = transfer;
      return { transfer, causes: causes.get(id) ?? [], fit: null, resolutions: resolutions.get(id) ?? [] };
    }),
    outgoing: left.slice(0, MAX_TRANSFERS),
    sightings,
    setAside: aside.slice(0, MAX_TRANSFERS).map(readEntry),
    isTampered: await isTampered(
      db,
      transfers.map(({ network }) => network),
      [...ids, ...transfers.flatMap(({ invoice }) => invoice?.id ?? [])],
    ),
    events,
    omissions: [
      omit('incoming transfers in this transaction (there may be more)', transfers.length, found.length),
      omit('outgoing transfers in this transaction (there may be more)', MAX_TRANSFERS, left.length),
      omit('sightings in this transaction (there may be more)', sightings.length, seen.length),
      omit('payments in this transaction that are set aside (there may be more)', MAX_TRANSFERS, aside.length),
      { what: 'deliveries of events of this transaction', ...deliveries },
    ],
  };
}

/** `rival` is another sighting of exactly this amount that is earlier on the chain, and therefore pays the invoice. */
async function withRival(db: Sql, sighting: ExplainedSighting) {
  const { projectId, invoiceId: id, txId, logIndex } = sighting;
  const [first] = await statements.findSightingsOfInvoice(db, { projectId, id }, 1);
  const isFirst = first === undefined || (first.txId === txId && first.logIndex === logIndex);
  return { ...sighting, rival: isFirst ? null : first };
}

/** Searches recent events for a transaction that has neither a transfer nor a sighting, because its block was seen and then orphaned. */
export async function readOrphaned(db: Sql, txId: string, projects: Actor['projects']) {
  const seen = (await statements.findConfirmingOf(db, txId, projects, MAX_SHOWN)).filter(
    (event) => statements.transactionOf(event)?.txId === txId,
  );
  const found = [];
  for (const [id, event] of new Map(seen.map((one) => [one.invoiceId, one]))) {
    const invoice = await statements.findExplainedInvoice(db, event.projectId, id);
    const transaction = statements.transactionOf(event);
    if (invoice === null || transaction === null) continue;
    const events = (await statements.findEventsOfInvoice(db, invoice, MAX_EVENTS)).toReversed();
    found.push({
      invoice,
      transaction,
      events: events.map((one): DescribedEvent => ({ event: one, deliveries: null })),
    });
  }
  return found;
}

/** Reads everything that explains one of our addresses. */
export async function readAddressFacts(db: Sql, address: ExplainedAddress) {
  const { id, projectId, balance } = address;
  const counts = await statements.countInvoicesOfAddress(db, id, statements.MAX_COUNTED + 1);
  const moved = await statements.countTransfersOfAddress(db, id, -1, statements.MAX_COUNTED + 1);
  const incoming = await findTransfersToAddress(db, id, MAX_SHOWN);
  const outgoing = await statements.findOutgoingOfAddress(db, id, MAX_SHOWN);
  const all = (await listOperatorActions(db, address.address)).filter((action) => action.projectId === projectId);
  const actions = all.slice(-50);
  return {
    address,
    /** The number of invoices by status. A number of invoices or transfers above `MAX_COUNTED` only means "more than `MAX_COUNTED`". */
    invoices: Object.fromEntries(
      INVOICE_STATUSES.map((status) => [status, counts.find((each) => each.status === status)?.count ?? 0]),
    ),
    total: counts.reduce((sum, { count }) => sum + count, 0),
    moved,
    /** Transfers after the last comparison with the chain. */
    since: await statements.countTransfersOfAddress(db, id, balance?.checkedBlock ?? -1, statements.MAX_COUNTED + 1),
    ...{ incoming, outgoing, actions },
    omissions: [
      omit('operator actions', actions.length, all.length),
      omit('incoming transfers (the newest are shown)', incoming.length, moved.incoming),
      omit('outgoing transfers (the newest are shown)', outgoing.length, moved.outgoing),
    ],
  };
}

export type SetAsideFacts = ReturnType<typeof readEntry>;
type Read<Reader extends (...args: never[]) => unknown> = NonNullable<Awaited<ReturnType<Reader>>>;
export type InvoiceFacts = Read<typeof readInvoiceFacts>;
export type TransactionFacts = Read<typeof readTransactionFacts>;
export type OrphanedFacts = Read<typeof readOrphaned>[number];
export type AddressFacts = Read<typeof readAddressFacts>;
