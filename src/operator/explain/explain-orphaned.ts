import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { shorten } from '../input/clip.ts';
import { describeTransaction, stepToInvoice, type Transaction } from './describe-transaction.ts';
import { findConfirmingOf, findEventsOfInvoice, transactionOf } from './event-queries.ts';
import type { Explanation } from './explanation.ts';
import { describeStatuses } from './invoice-entries.ts';
import { findExplainedInvoice } from './invoice-queries.ts';

/** A transaction pays few invoices, and each may be sighted in several blocks. */
const MAX_SIGHTINGS = 20;
const MAX_EVENTS = 60;

/**
 * A transaction that was seen in a block which left the chain, as the events of its invoices tell; `null` if no event of late does.
 * Only for one that the ledger has neither as a transfer nor as a sighting.
 */
export async function explainOrphaned(
  db: Sql,
  subject: Transaction,
  projects: Actor['projects'],
): Promise<Explanation | null> {
  const { txId } = subject;
  const found = await findConfirmingOf(db, txId, projects, MAX_SIGHTINGS);
  const seen = found.filter((event) => transactionOf(event)?.txId === txId);
  const byInvoice = new Map(seen.map((one) => [one.invoiceId, one]));
  if (byInvoice.size === 0) return null;
  const described = [];
  for (const event of byInvoice.values()) {
    const invoice = { projectId: event.projectId, id: event.invoiceId };
    const events = (await findEventsOfInvoice(db, invoice, MAX_EVENTS)).toReversed();
    const whole = await findExplainedInvoice(db, invoice.projectId, invoice.id);
    const entries = describeStatuses({
      events: events.map((one) => ({ event: one, deliveries: null })),
      sightings: [],
    });
    described.push({
      invoice: whole,
      transaction: transactionOf(event),
      entries: entries.filter(({ data }) => data['txId'] === txId),
    });
  }
  return {
    verdict: described.map(({ invoice, transaction }) => {
      const name = shorten(invoice?.externalId ?? '', 60);
      const isPaid = invoice?.status === 'PAID';
      return `${transaction?.amount} USDT, exactly what ${name} waited for, was seen in block ${transaction?.blockNumber} of ${transaction?.blockTime}, but that block was orphaned, and this transaction is no longer on the chain as far as it is known. ${isPaid ? `${name} is PAID by another one.` : 'It may come again in another block, and pays then.'}`;
    }),
    ...describeTransaction(subject),
    timeline: described.flatMap(({ entries }) => entries),
    omissions: [],
    next: described.flatMap(({ invoice }) => (invoice === null ? [] : [stepToInvoice(invoice.id)])),
  };
}
