import type { Cause } from '../../domain/mismatch.ts';
import type { UnixMs } from '../../domain/time.ts';
import { diagnoseTransfers } from '../../payments/diagnose-transfers.ts';
import type { Sql } from '../../store/database.ts';
import {
  type ExplainedSighting,
  findCandidates,
  findDuplicates,
  findLinkedTransfers,
  findSightingsOfInvoice,
} from '../../store/explain-candidates.ts';
import { findEventsOfInvoice, findEventsOfTransfers } from '../../store/explain-events.ts';
import type { ExplainedInvoice } from '../../store/explain-invoice.ts';
import { findTransfers } from '../../store/explain-transfers.ts';
import { findResolutions } from '../../store/transfer-desk.ts';
import { readDeliveries, type ToldEvent } from './event-entries.ts';
import type { Omission } from './explanation.ts';
import { readStand, type Stand } from './stand.ts';
import type { ToldTransfer } from './transfer-entries.ts';

/** All that an explanation of an invoice is made of. */
export type InvoiceFacts = {
  invoice: ExplainedInvoice;
  sightings: readonly ExplainedSighting[];
  /** The payment and the duplicates. */
  exact: readonly ToldTransfer[];
  duplicateCount: number;
  /** What paid nothing and may have been meant for it, or was linked to it by an operator. */
  near: readonly ToldTransfer[];
  /** By sequence. */
  events: readonly ToldEvent[];
  transferEvents: readonly ToldEvent[];
  stand: Stand;
  omissions: readonly Omission[];
};

/** Shown at most: more would be read by nobody. */
const MAX_EVENTS = 60;
const MAX_DUPLICATES = 20;
const MAX_NEAR = 20;
const MAX_LINKED = 20;
const MAX_SIGHTINGS = 20;
/** Unmatched transfers that are diagnosed: so many from each end, which is within what can be diagnosed at once. */
const MAX_CANDIDATES = 100;

/** Reads all of it. `now` decides whether the ledger lags behind. */
export async function readInvoiceFacts(db: Sql, invoice: ExplainedInvoice, now: UnixMs): Promise<InvoiceFacts> {
  const duplicates = await findDuplicates(db, invoice, MAX_DUPLICATES);
  const exactIds = [...(invoice.paidTransferId === null ? [] : [invoice.paidTransferId]), ...duplicates.ids];
  const { causes, ids: nearIds, omissions } = await findNear(db, invoice, exactIds);
  const exact = await findTransfers(db, exactIds);
  const near = await findTransfers(db, nearIds);
  const shownIds = [...exact, ...near].map(({ id }) => id);
  const resolutions = await findResolutions(db, shownIds);
  const own = await findEventsOfInvoice(db, invoice, MAX_EVENTS);
  const others = await findEventsOfTransfers(db, shownIds, MAX_EVENTS);
  // What is paid has an event of its own, which is one of the invoice.
  const ofTransfers = others.filter(({ type }) => !type.startsWith('invoice.'));
  const ofInvoice = await readDeliveries(db, own.toReversed());
  const ofOthers = await readDeliveries(db, ofTransfers);
  const told = (list: typeof exact): ToldTransfer[] =>
    list.map((transfer) => ({
      transfer,
      causes: causes.get(transfer.id) ?? [],
      resolutions: resolutions.get(transfer.id) ?? [],
    }));
  return {
    invoice,
    sightings: await findSightingsOfInvoice(db, invoice, MAX_SIGHTINGS),
    exact: told(exact),
    duplicateCount: duplicates.total,
    near: told(near),
    events: ofInvoice.events,
    transferEvents: ofOthers.events,
    stand: await readStand(db, invoice.network, now),
    omissions: [
      {
        what: 'transfers of exactly its amount that came after the payment',
        shown: duplicates.ids.length,
        total: duplicates.total,
      },
      ...omissions,
      { what: 'events of the invoice', shown: own.length, total: invoice.eventCount },
      { what: 'deliveries of its events', ...ofInvoice.deliveries },
      { what: 'deliveries of events of those transfers', ...ofOthers.deliveries },
    ],
  };
}

/** The transfers that paid nothing and have to do with the invoice: linked to it, or their likely cause names it. */
async function findNear(
  db: Sql,
  invoice: ExplainedInvoice,
  exactIds: readonly string[],
): Promise<{ ids: string[]; causes: Map<string, Cause[]>; omissions: Omission[] }> {
  const linked = (await findLinkedTransfers(db, invoice, MAX_LINKED)).filter((id) => !exactIds.includes(id));
  const candidates = await findCandidates(db, invoice, MAX_CANDIDATES);
  const duplicateIds = exactIds.filter((id) => id !== invoice.paidTransferId);
  const causes = await diagnoseTransfers(db, [...new Set([...candidates.ids, ...linked, ...duplicateIds])]);
  const named = candidates.ids.filter((id) => {
    const [likeliest] = causes.get(id) ?? [];
    return likeliest?.invoices.some((near) => near.id === invoice.id) === true;
  });
  const ids = [...new Set([...linked, ...named.slice(0, MAX_NEAR)])];
  const omissions = [
    {
      what: 'transfers that paid nothing and may be meant for it',
      shown: Math.min(named.length, MAX_NEAR),
      total: named.length,
    },
    { what: 'transfers that paid nothing, compared with it', shown: candidates.ids.length, total: candidates.total },
  ];
  return { ids, causes, omissions };
}
