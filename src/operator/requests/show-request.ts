import { AppError } from '../../domain/errors.ts';
import { encodeId, NIL_UUID } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { Sql } from '../../store/db/database.ts';
import { type Actor, maySee } from '../actor.ts';
import { findNamedInvoice } from '../transfers/transfer-desk.ts';
import { viewRequest } from './list-requests.ts';
import { findDeskRequest } from './request-desk.ts';
import type { ShownRequestView } from './views.ts';

/** What became of one request of the last 30 days, and the invoice that its externalId has. Errors: `NOT_FOUND`. */
export async function showRequest(
  { db }: { db: Sql },
  actor: Actor,
  { requestId }: { requestId: string },
): Promise<ShownRequestView> {
  const found = await findDeskRequest(db, requestId);
  if (found === null || !maySee(actor, found.projectId)) {
    throw new AppError(
      'NOT_FOUND',
      say`no request ${requestId} is known. Requests are kept for 30 days, and known a second or two after their answer; of a flood that was turned away, not all are: "${{ command: 'request list' }}" shows those there are`,
    );
  }
  const { projectId, externalId } = found;
  const invoice = externalId === null ? null : await findNamedInvoice(db, projectId, { id: NIL_UUID, externalId });
  return { ...viewRequest(found), invoiceId: invoice && encodeId('inv', invoice.id) };
}
