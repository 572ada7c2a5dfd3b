import { encodeId } from '../../domain/ids.ts';
import { INVOICE_STATUSES } from '../../domain/invoice.ts';
import type { Fit } from '../../domain/mismatch/fit-invoice.ts';
import type { Cause } from '../../domain/mismatch.ts';
import type { Network } from '../../domain/network.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { compareTransfers, diagnoseTransfers } from '../../payments/mismatch/diagnose-transfers.ts';
import { listOperatorActions } from '../../store/access/audit-log.ts';
import { type ChainCursor, findCursor, findHalt } from '../../store/chain/cursor.ts';
import { findChainStatus } from '../../store/chain/status.ts';
import type { Sql } from '../../store/db/database.ts';
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
 * An incoming transfer, why it may fit nothing (best first), how it fits the invoice that was asked about (`null` if it hardly
 * does, or none was), and what operators did about it (oldest first).
 */
export type DescribedTransfer = {
  transfer: TransferRecord;
  causes: readonly Cause[];
  fit: Fit | null;
  resolutions: readonly Resolution[];
};

/** An event and its deliveries; `null` if they are among those that are not shown. */
export type DescribedEvent = { event: ExplainedEvent; deliveries: readonly DescribedDelivery[] | null };
export type DescribedDelivery = { delivery: ExplainedDelivery; attempts: readonly ExplainedAttempt[] };

/** The most that is shown of each kind: nobody would read more. */
const [MAX_SHOWN, MAX_EVENTS, MAX_DELIVERIES] = [20, 60, 60];
/** Of each delivery. It has 12 by its schedule, and up to 240 while its endpoint fails. */
const MAX_ATTEMPTS = 60;

export const omit = (what: string, shown: number, total: number): Omission => {
  return { what, shown: Math.min(shown, total), total };
};

/** Reads the deliveries of events. Only the newest ones are read. */
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

/** Up to where the ledger of a network knows the chain, and what keeps it from going on. */
export type Stand = { network: Network; cursor: ChainCursor | null; trouble: string | null };

/** A chain that goes on has a block every 3 s; nodes and the watcher may take a moment. */
const LAG_MS = 120_000;

export async function readStand(db: Sql, network: Network, now: UnixMs): Promise<Stand> {
  const cursor = await findCursor(db, network);
  const halt = await findHalt(db, network);
  const blind = (await findChainStatus(db, network))?.status.blind ?? null;
  return { network, cursor, trouble: describeTrouble() };

  function describeTrouble(): string | null {
    if (halt !== null) return `the watcher of ${network} has been halted since ${toIso(halt.at)}: ${halt.reason}`;
    if (cursor === null) return `the watcher has not seen ${network} yet`;
    const { number, time } = cursor.head;
    if (now - time <= LAG_MS) return null;
    const seen = `${network} was examined only up to block ${number} (${toIso(time)}), so later transfers are not known yet`;
    return blind === null ? seen : `${seen}: ${blind}`;
  }
}

/** All that an explanation of an invoice is made of. `now` decides whether the ledger lags behind. */
export async function readInvoiceFacts(db: Sql, invoice: ExplainedInvoice, now: UnixMs) {
  const duplicates = await statements.findDuplicates(db, invoice, MAX_SHOWN);
  const { paidTransferId } = invoice;
  const exactIds = [...(paidTransferId === null ? [] : [paidTransferId]), ...duplicates.ids];
  const { compared, nearIds, unmatched } = await findNear(db, invoice, exactIds);
  const ids = [...exactIds, ...nearIds];
  const records = await findTransfers(db, ids);
  const resolutions = await findResolutions(db, ids);
  const own = await statements.findEventsOfInvoice(db, invoice, MAX_EVENTS);
  // A paid transfer has an event of the invoice, which stands among the invoice's own.
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
    payment: transfers.find(({ transfer }) => transfer.id === paidTransferId) ?? null,
    /** Of exactly its amount, after the payment; the newest last. */
    duplicates: {
      shown: transfers.filter(({ transfer }) => duplicates.ids.includes(transfer.id)),
      total: duplicates.total,
    },
    /** Transfers that an operator linked to it, and transfers that paid nothing and may be meant for it; the likeliest first. */
    near: nearIds.flatMap((id) => transfers.find(({ transfer }) => transfer.id === id) ?? []),
    unmatched,
    /** By sequence. */
    events: ofInvoice.events,
    transferEvents: ofOthers.events,
    stand: await readStand(db, invoice.network, now),
    omissions: [
      omit('transfers of exactly its amount that arrived after the payment', duplicates.ids.length, duplicates.total),
      omit('unmatched transfers that may be meant for it', MAX_SHOWN, unmatched.fitting),
      omit('unmatched transfers compared with it', unmatched.compared, unmatched.total),
      omit('events of the invoice', own.length, invoice.eventCount),
      { what: 'deliveries of its events', ...ofInvoice.deliveries },
      { what: 'deliveries of events of those transfers', ...ofOthers.deliveries },
    ],
  };
}

/** The transfers that paid nothing and have to do with the invoice: linked to it, or meant for it by a likely mistake. */
async function findNear(db: Sql, invoice: ExplainedInvoice, exactIds: readonly string[]) {
  const linked = await statements.findLinkedTransfers(db, invoice, MAX_SHOWN);
  const others = linked.filter((id) => !exactIds.includes(id));
  // The first, the last and the nearest in amount, so many of each.
  const { total, isAll, ids } = await statements.findCandidates(db, invoice, MAX_SHOWN);
  const resolutions = await findResolutions(db, ids);
  // A transfer that an operator gave to another invoice, or called the merchant's own, is decided.
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
  // So many paid nothing and came since its creation, to its address or of its amounts; `isAll` is false if there may be more.
  return {
    nearIds: [...others, ...fitting.slice(0, MAX_SHOWN)],
    compared,
    unmatched: { total, isAll, compared: ids.length, fitting: fitting.length },
  };
}

/** A multisend may pay hundreds; this many are told. */
const MAX_TRANSFERS = 50;

/** All of ours in a transaction, on any network; `null` if there is none. */
export async function readTransactionFacts(db: Sql, txId: string, projects: Actor['projects']) {
  const found = await findTransfersOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  const left = await statements.findOutgoingOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  const seen = await statements.findSightingsOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  if (found.length + left.length + seen.length === 0) return null;
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
    events,
    omissions: [
      omit('incoming transfers of the transaction, at least', transfers.length, found.length),
      omit('outgoing transfers of the transaction, at least', MAX_TRANSFERS, left.length),
      omit('sightings of the transaction, at least', sightings.length, seen.length),
      { what: 'deliveries of its events', ...deliveries },
    ],
  };
}

/** `rival`: another one of exactly this amount, which comes first in the chain and so pays. */
async function withRival(db: Sql, sighting: ExplainedSighting) {
  const { projectId, invoiceId: id, txId, logIndex } = sighting;
  const [first] = await statements.findSightingsOfInvoice(db, { projectId, id }, 1);
  const isFirst = first === undefined || (first.txId === txId && first.logIndex === logIndex);
  return { ...sighting, rival: isFirst ? null : first };
}

/**
 * What events of late tell of a transaction that the ledger has neither as a transfer nor as a sighting: it was seen in a block which left
 * the chain.
 */
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

/** All that an explanation of an address of ours is made of. */
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
    /** By status. More than `MAX_COUNTED` of these or of transfers mean only that there are more. */
    invoices: Object.fromEntries(
      INVOICE_STATUSES.map((status) => [status, counts.find((each) => each.status === status)?.count ?? 0]),
    ),
    total: counts.reduce((sum, { count }) => sum + count, 0),
    moved,
    /** Transfers that came after the last comparison with the chain. */
    since: await statements.countTransfersOfAddress(db, id, balance?.checkedBlock ?? -1, statements.MAX_COUNTED + 1),
    ...{ incoming, outgoing, actions },
    omissions: [
      omit('operator actions', actions.length, all.length),
      omit('incoming transfers, the newest of which are shown', incoming.length, moved.incoming),
      omit('outgoing transfers, the newest of which are shown', outgoing.length, moved.outgoing),
    ],
  };
}

type Read<Reader extends (...args: never[]) => unknown> = NonNullable<Awaited<ReturnType<Reader>>>;
export type InvoiceFacts = Read<typeof readInvoiceFacts>;
export type TransactionFacts = Read<typeof readTransactionFacts>;
export type OrphanedFacts = Read<typeof readOrphaned>[number];
export type AddressFacts = Read<typeof readAddressFacts>;
