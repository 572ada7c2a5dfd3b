import type { FastifyInstance, FastifyRequest } from 'fastify';
import { projectInvoice } from '../domain/event.ts';
import { encodeId } from '../domain/ids.ts';
import { toIso } from '../domain/time.ts';
import { findInvoicePayment } from '../store/ledger/payments.ts';
import { withdrawInvoice } from '../store/ledger/withdraw-invoice.ts';
import { Problem } from '../web/problem.ts';
import type { ApiDeps } from './api-deps.ts';
import { callerOf, guarded } from './guard.ts';
import { problemResponses } from './problem-responses.ts';
import { readQuery } from './read-query.ts';
import type { ReadInvoice } from './readable.ts';
import { InvoicePath, WithdrawnInvoiceSchema } from './schemas.ts';

/** `POST /v1/invoices/:invoiceId/withdraw`. A body is not read: there is nothing to say. */
export function registerWithdrawal(app: FastifyInstance, deps: ApiDeps, readInvoice: ReadInvoice): void {
  app.post('/v1/invoices/:invoiceId/withdraw', guarded(deps, 'create', schema), (request) =>
    withdraw(deps, readInvoice, request),
  );
}

async function withdraw(deps: ApiDeps, readInvoice: ReadInvoice, request: FastifyRequest) {
  const { projectId, network } = callerOf(request);
  readQuery(request, []);
  const { id } = await readInvoice(request);
  await withdrawInvoice(deps.db, { id, projectId, network, at: deps.now() });
  const invoice = await findInvoicePayment(deps.db, projectId, id);
  if (invoice === null) throw new Error(`invoice ${encodeId('inv', id)} vanished; rows of invoices are never deleted`);
  if (invoice.withdrawnAt === null)
    throw new Problem(
      'INVOICE_PAID',
      'The invoice is PAID, so there is nothing left to withdraw. Send the money back yourself if you have to.',
    );
  return { ...projectInvoice(invoice, deps.publicUrl()), withdrawnAt: toIso(invoice.withdrawnAt) };
}

const schema = {
  operationId: 'withdrawInvoice',
  tags: ['invoices'],
  summary: 'Withdraw the page of an invoice',
  description:
    'The page shows no way to pay any more, and says so. It is no status: a payment that is under way, or comes all the same, still pays. Doing it again changes nothing.',
  params: InvoicePath,
  response: { 200: WithdrawnInvoiceSchema, ...problemResponses(400, 401, 403, 404, 409, 413, 415, 429, 500, 503) },
};
