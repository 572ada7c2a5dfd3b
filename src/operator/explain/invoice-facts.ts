import type { UnixMs } from '../../domain/time.ts';
import { type Compared, compareTransfers } from '../../payments/mismatch/diagnose-transfers.ts';
import type { Sql } from '../../store/db/database.ts';
import { findResolutions, findTransfers } from '../subjects/transfer-records.ts';
import {
  type ExplainedSighting,
  findCandidates,
  findDuplicates,
  findLinkedTransfers,
  findSightingsOfInvoice,
} from './candidate-queries.ts';
import { type DescribedEvent, readDeliveries } from './event-entries.ts';
import { findEventsOfInvoice, findEventsOfTransfers } from './event-queries.ts';
import type { Omission } from './explanation.ts';
import type { ExplainedInvoice } from './invoice-queries.ts';
import { readStand, type Stand } from './stand.ts';
import type { DescribedTransfer } from './transfer-entries.ts';

/** All that an explanation of an invoice is made of. */
export type InvoiceFacts = {
  invoice: ExplainedInvoice;
  sightings: readonly ExplainedSighting[];
  /** The payment and the duplicates. */
  exact: readonly DescribedTransfer[];
  duplicateCount: number;
  /** Transfers that an operator linked to it, and transfers that paid nothing and may be meant for it; the likeliest first. */
  near: readonly DescribedTransfer[];
  /** Transfers that paid nothing and came since its creation, to its address or of its amounts. */
  unmatched: Unmatched;
  /** By sequence. */
  events: readonly DescribedEvent[];
  transferEvents: readonly DescribedEvent[];
  stand: Stand;
  omissions: readonly Omission[];
};

/** `fitting` of them may be meant for it; `isAll` is false if there may be more. */
type Unmatched = { total: number; compared: number; fitting: number; isAll: boolean };

/** The most that is shown: nobody would read more. */
const MAX_EVENTS = 60;
const MAX_DUPLICATES = 20;
const MAX_NEAR = 20;
const MAX_LINKED = 20;
const MAX_SIGHTINGS = 20;
/** Unmatched transfers that are diagnosed: the first, the last and the nearest in amount, so many of each. */
const MAX_CANDIDATES = 20;

/** Reads all of it. `now` decides whether the ledger lags behind. */
export async function readInvoiceFacts(db: Sql, invoice: ExplainedInvoice, now: UnixMs): Promise<InvoiceFacts> {
  const duplicates = await findDuplicates(db, invoice, MAX_DUPLICATES);
  const exactIds = [...(invoice.paidTransferId === null ? [] : [invoice.paidTransferId]), ...duplicates.ids];
  const { compared, ids: nearIds, unmatched } = await findNear(db, invoice, exactIds);
  const exact = await findTransfers(db, exactIds);
  const near = (await findTransfers(db, nearIds)).toSorted((a, b) => nearIds.indexOf(a.id) - nearIds.indexOf(b.id));
  const shownIds = [...exact, ...near].map(({ id }) => id);
  const resolutions = await findResolutions(db, shownIds);
  const own = await findEventsOfInvoice(db, invoice, MAX_EVENTS);
  const others = await findEventsOfTransfers(db, shownIds, MAX_EVENTS);
  // A paid transfer has an event of the invoice, which stands among the invoice's own.
  const ofTransfers = others.filter(({ type }) => !type.startsWith('invoice.'));
  const ofInvoice = await readDeliveries(db, own.toReversed());
  const ofOthers = await readDeliveries(db, ofTransfers);
  const described = (list: typeof exact): DescribedTransfer[] =>
    list.map((transfer) => ({
      transfer,
      causes: compared.get(transfer.id)?.causes ?? [],
      fit: compared.get(transfer.id)?.fit ?? null,
      resolutions: resolutions.get(transfer.id) ?? [],
    }));
  return {
    invoice,
    sightings: await findSightingsOfInvoice(db, invoice, MAX_SIGHTINGS),
    exact: described(exact),
    duplicateCount: duplicates.total,
    near: described(near),
    unmatched,
    events: ofInvoice.events,
    transferEvents: ofOthers.events,
    stand: await readStand(db, invoice.network, now),
    omissions: [
      {
        what: 'transfers of exactly its amount that came after the payment',
        shown: duplicates.ids.length,
        total: duplicates.total,
      },
      {
        what: 'transfers that paid nothing and may be meant for it',
        shown: Math.min(unmatched.fitting, MAX_NEAR),
        total: unmatched.fitting,
      },
      { what: 'transfers that paid nothing, compared with it', shown: unmatched.compared, total: unmatched.total },
      { what: 'events of the invoice', shown: own.length, total: invoice.eventCount },
      { what: 'deliveries of its events', ...ofInvoice.deliveries },
      { what: 'deliveries of events of those transfers', ...ofOthers.deliveries },
    ],
  };
}

/** The transfers that paid nothing and have to do with the invoice: linked to it, or meant for it by a likely mistake. */
async function findNear(
  db: Sql,
  invoice: ExplainedInvoice,
  exactIds: readonly string[],
): Promise<{ ids: string[]; compared: Map<string, Compared>; unmatched: Unmatched }> {
  const linked = (await findLinkedTransfers(db, invoice, MAX_LINKED)).filter((id) => !exactIds.includes(id));
  const candidates = await findCandidates(db, invoice, MAX_CANDIDATES);
  const resolutions = await findResolutions(db, candidates.ids);
  // A transfer that an operator gave to another invoice, or called the merchant's own, is decided.
  const isElsewhere = (id: string) => {
    const last = resolutions.get(id)?.at(-1);
    return (
      last?.resolution === 'own-deposit' || (last != null && last.invoice !== null && last.invoice.id !== invoice.id)
    );
  };
  const duplicateIds = exactIds.filter((id) => id !== invoice.paidTransferId);
  const compared = await compareTransfers(db, [...new Set([...candidates.ids, ...linked, ...duplicateIds])], invoice);
  const isResolved = (id: string) => Number(resolutions.has(id));
  const share = (id: string) => compared.get(id)?.fit?.share ?? 0;
  const fitting = candidates.ids
    .filter((id) => compared.get(id)?.fit != null && !isElsewhere(id) && !linked.includes(id))
    .toReversed()
    .sort((a, b) => isResolved(a) - isResolved(b) || share(b) - share(a));
  const { total, isAll, ids } = candidates;
  return {
    ids: [...linked, ...fitting.slice(0, MAX_NEAR)],
    compared,
    unmatched: { total, isAll, compared: ids.length, fitting: fitting.length },
  };
}
