import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import { findInvoicePayment } from '../../store/ledger/payments.ts';
import { withdrawInvoice } from '../../store/ledger/withdraw-invoice.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { findInvoiceId } from '../select-invoice.ts';
import { selectProject } from '../select-project.ts';

type Withdrawn = { invoiceId: string; projectId: string; withdrawnAt: string };

/**
 * Withdraws the page of an invoice as the API does, in one transaction with the record of who did it. Doing it again changes nothing.
 * Errors: `NOT_FOUND`; `CONFLICT` of a paid one.
 */
export async function withdrawInvoiceByHand(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
  { projectId, invoiceId }: { projectId: string | undefined; invoiceId: string },
): Promise<Withdrawn> {
  const project = await selectProject(db, actor, projectId);
  const at = now();
  return db.transaction(async (tx) => {
    const id = await findInvoiceId(tx, project.id, invoiceId);
    const before = await findInvoicePayment(tx, project.id, id);
    await withdrawInvoice(tx, { id, projectId: project.id, network: project.network, at });
    const withdrawnAt = (await findInvoicePayment(tx, project.id, id))?.withdrawnAt ?? null;
    if (withdrawnAt === null) {
      const message = 'the invoice is PAID, so there is nothing left to withdraw; send the money back if you have to';
      throw new AppError('CONFLICT', message);
    }
    // Two that come at once wait for each other at the row, and the second one finds the time of the first.
    if (before?.withdrawnAt === null && withdrawnAt === at) {
      await recordActions(tx, actor, at, [
        { projectId: project.id, action: 'invoice.withdrawn', subject: encodeId('inv', id), detail: {} },
      ]);
    }
    return {
      ...{ invoiceId: encodeId('inv', id), projectId: encodeId('prj', project.id) },
      withdrawnAt: toIso(withdrawnAt),
    };
  });
}
