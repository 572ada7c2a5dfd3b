import { randomUUID } from 'node:crypto';
import { request } from 'undici';
import { isCheckoutToken } from '../../domain/checkout-token.ts';
import { AppError } from '../../domain/errors.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import type { InvoiceStatus } from '../../domain/invoice.ts';
import { findCheckoutInvoice } from '../../store/ledger/checkout.ts';
import { findInvoicePayment, type InvoicePayment } from '../../store/ledger/payments.ts';
import type { Sandbox } from './with-sandbox.ts';

/** An invoice of the sandbox as its payer needs to know it. */
export type Payable = Pick<InvoicePayment, 'requestedMicro' | 'payableMicro' | 'address' | 'checkoutToken'> & {
  /** How people name it. */
  reference: string;
  readStatus(): Promise<InvoiceStatus>;
};

/** The invoice behind the URL of a checkout page, or behind `inv_…` or an external id of the demo project. Errors: `NOT_FOUND`, `CONFLICT`. */
export async function findPayable(sandbox: Sandbox, target: string): Promise<Payable> {
  const token = /\/c\/([^/?#]+)/.exec(target)?.[1];
  const look =
    token === undefined
      ? lookById(sandbox, target.startsWith('inv_') ? target : await findByExternalId(sandbox, target))
      : async () => (isCheckoutToken(token) ? findCheckoutInvoice(sandbox.db, token) : null);
  const lookAgain = async () => {
    const invoice = await look();
    if (invoice !== null) return invoice;
    throw token === undefined ? unknownName(target) : new AppError('NOT_FOUND', `the sandbox has no invoice ${target}`);
  };
  const { id, status, ...invoice } = await lookAgain();
  if (token !== undefined && (status === 'CONFIRMING' || status === 'PAID')) {
    throw new AppError('CONFLICT', `${target} already has its payment: to pay it again on purpose, give its invoiceId`);
  }
  // A checkout link reveals no invoice id, and neither do the messages about it.
  const reference = token === undefined ? encodeId('inv', id) : target;
  return { ...invoice, reference, readStatus: async () => (await lookAgain()).status };
}

function lookById({ db, projectUuid }: Sandbox, invoiceId: string): () => Promise<InvoicePayment | null> {
  const id = decodeId('inv', invoiceId);
  return async () => (id === null ? null : findInvoicePayment(db, projectUuid, id));
}

async function findByExternalId(sandbox: Sandbox, externalId: string): Promise<string> {
  // Half of a surrogate pair cannot be asked for, and none is stored.
  if (!externalId.isWellFormed()) throw unknownName(externalId);
  const path = `/v1/invoices?externalId=${encodeURIComponent(externalId)}`;
  const { status, body } = await askApi(sandbox, path, { method: 'GET' });
  const { data } = body as { data?: { invoiceId: string }[] };
  if (data?.[0] !== undefined) return data[0].invoiceId;
  if (data !== undefined) throw unknownName(externalId);
  throw new AppError('SANDBOX_REFUSED', `the sandbox answered ${status} for ${externalId}`);
}

function unknownName(name: string): AppError {
  return new AppError(
    'NOT_FOUND',
    `the demo project of the sandbox has no invoice ${name}; to pay an invoice of another project, give the URL of its checkout page`,
  );
}

/** Asks for a new invoice of the demo project: its id, or what was refused. Error: `SANDBOX_NOT_RUNNING`. */
export async function createInvoice(
  sandbox: Sandbox,
  { amount, externalId }: { amount: string; externalId: string },
): Promise<{ status: number; invoiceId?: string; detail?: string }> {
  const body = JSON.stringify({ amount, asset: 'USDT', network: 'TRON', externalId });
  const headers = { 'Idempotency-Key': randomUUID(), 'Content-Type': 'application/json' };
  const answer = await askApi(sandbox, '/v1/invoices', { method: 'POST', headers, body });
  return { ...(answer.body as { invoiceId?: string; detail?: string }), status: answer.status };
}

/** Sends a request to the sandbox with its key; the answer is JSON. Error: `SANDBOX_NOT_RUNNING`. */
async function askApi(
  { baseUrl, apiKey }: Sandbox,
  path: string,
  { headers, ...options }: { method: 'GET' | 'POST'; headers?: Record<string, string>; body?: string },
): Promise<{ status: number; body: unknown }> {
  const response = await request(baseUrl + path, { ...options, headers: { ...headers, 'X-Api-Key': apiKey } }).catch(
    (cause: unknown) => {
      const message = `the sandbox at ${baseUrl} does not answer: is it still running?`;
      throw new AppError('SANDBOX_NOT_RUNNING', message, { cause });
    },
  );
  return { status: response.statusCode, body: await response.body.json() };
}
