import type { FastifyRequest } from 'fastify';
import { assertNever } from '../../core/domain/assert-never.ts';
import type { ProjectedInvoice } from '../../core/domain/event.ts';
import { decodeId, NIL_UUID } from '../../core/domain/ids.ts';
import { createInvoiceReader, type FoundInvoice } from '../../core/store/ledger/invoices.ts';
import { Problem } from '../web/problem.ts';
import { notesOf } from '../web/request-notes.ts';
import type { ApiDeps } from './api-deps.ts';
import { callerOf, refuseKey } from './guard.ts';

/** Returns the invoice, or `null` if there's none. Throws `UNAUTHENTICATED` if the key is no longer valid. */
export function readable(found: FoundInvoice, deps: ApiDeps, keyId: string) {
  switch (found.kind) {
    case 'found':
      return found.invoice;
    case 'none':
      return null;
    case 'key-not-valid':
      return refuseKey(deps, keyId);
    default:
      return assertNever(found);
  }
}

/** Returns the invoice whose id is in the path, if it belongs to the caller's project. Throws `UNAUTHENTICATED` or `INVOICE_NOT_FOUND`. */
export type ReadInvoice = (request: FastifyRequest) => Promise<ProjectedInvoice>;

export function createReader(deps: ApiDeps): ReadInvoice {
  const findInvoice = createInvoiceReader(deps.db, deps.now);
  return async (request) => {
    const { keyId } = callerOf(request);
    const { invoiceId } = request.params as { invoiceId: string };
    // Looks up an id even if it's malformed, so that the response takes as long as for an unknown one.
    const invoice = readable(await findInvoice({ keyId, id: decodeId('inv', invoiceId) ?? NIL_UUID }), deps, keyId);
    if (invoice === null) {
      throw new Problem('INVOICE_NOT_FOUND', "There is no invoice with this id in this key's project.");
    }
    notesOf(request).externalId = invoice.externalId;
    return invoice;
  };
}
