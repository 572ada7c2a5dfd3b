import { encodeId } from '../../domain/ids.ts';
import type { Sql } from '../../store/database.ts';
import { findConfirmingOf, findEventsOfInvoice } from '../../store/explain-events.ts';
import { findExplainedInvoice } from '../../store/explain-invoice.ts';
import { describeTransaction, type Transaction } from './describe-transaction.ts';
import { type Explanation, shorten } from './explanation.ts';
import { tellStatuses } from './invoice-entries.ts';

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
  projectId: string | null,
): Promise<Explanation | null> {
  const { txId } = subject;
  const seen = await findConfirmingOf(db, txId, projectId, MAX_SIGHTINGS);
  const byInvoice = new Map(seen.map((one) => [one.invoiceId, one]));
  if (byInvoice.size === 0) return null;
  const told = [];
  for (const { event, ...owner } of byInvoice.values()) {
    const invoice = { projectId: owner.projectId, id: owner.invoiceId };
    const events = (await findEventsOfInvoice(db, invoice, MAX_EVENTS)).toReversed();
    const found = await findExplainedInvoice(db, invoice.projectId, invoice.id);
    const entries = tellStatuses({ events: events.map((one) => ({ event: one, deliveries: null })), sightings: [] });
    told.push({
      invoice: found,
      transaction: event.transaction,
      entries: entries.filter(({ data }) => data['txId'] === txId),
    });
  }
  return {
    verdict: told.map(({ invoice, transaction }) => {
      const name = shorten(invoice?.externalId ?? '', 60);
      const isPaid = invoice?.status === 'PAID';
      return `${transaction?.amount} USDT, exactly what ${name} waited for, was seen in block ${transaction?.blockNumber} of ${transaction?.blockTime}, but that block was orphaned, and this transaction is no longer on the chain as far as it is known. ${isPaid ? `${name} is PAID by another one.` : 'It may come again in another block, and pays then.'}`;
    }),
    ...describeTransaction(subject),
    timeline: told.flatMap(({ entries }) => entries),
    omissions: [],
    next: told.flatMap(({ invoice }) =>
      invoice === null ? [] : [`all about the invoice: quittance explain ${encodeId('inv', invoice.id)}`],
    ),
  };
}
