import { request } from 'undici';
import { isCheckoutToken } from '../../domain/checkout-token.ts';
import { AppError } from '../../domain/errors.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import type { InvoiceStatus } from '../../domain/invoice.ts';
import { formatAmount } from '../../domain/money.ts';
import { findCheckoutInvoice } from '../../store/checkout.ts';
import type { Database } from '../../store/database.ts';
import { findInvoicePayment, type InvoicePayment } from '../../store/payments.ts';
import { CliError } from '../cli-error.ts';
import type { SandboxFile } from './sandbox-file.ts';

/** An invoice of the sandbox as its payer needs to know it. */
export type Payable = Pick<InvoicePayment, 'requestedMicro' | 'payableMicro' | 'address' | 'checkoutToken'> & {
  /** How people name it. */
  reference: string;
  readStatus(): Promise<InvoiceStatus>;
};

/** The invoice behind the URL of a checkout page, or behind `inv_…` or an external id of the demo project. Errors: `NOT_FOUND`, `CONFLICT`. */
export async function findPayable(db: Database, sandbox: SandboxFile, target: string): Promise<Payable> {
  const token = /\/c\/([^/?#]+)/.exec(target)?.[1];
  const look =
    token === undefined
      ? lookById(db, sandbox, target.startsWith('inv_') ? target : await findByExternalId(sandbox, target))
      : async () => (isCheckoutToken(token) ? findCheckoutInvoice(db, token) : null);
  const lookAgain = async () => {
    const invoice = await look();
    if (invoice !== null) return invoice;
    throw token === undefined ? unknownName(target) : new CliError('NOT_FOUND', `the sandbox has no invoice ${target}`);
  };
  const { id, status, ...invoice } = await lookAgain();
  if (token !== undefined && (status === 'CONFIRMING' || status === 'PAID')) {
    throw new CliError(
      'CONFLICT',
      `${target} has its payment already and asks for none: to pay it again on purpose, name its invoiceId`,
    );
  }
  // A checkout link reveals no invoice id, and neither does what is said of it.
  const reference = token === undefined ? encodeId('inv', id) : target;
  return { ...invoice, reference, readStatus: async () => (await lookAgain()).status };
}

function lookById(db: Database, sandbox: SandboxFile, invoiceId: string): () => Promise<InvoicePayment | null> {
  const [projectId, id] = [decodeId('prj', sandbox.projectId), decodeId('inv', invoiceId)];
  return async () => (projectId === null || id === null ? null : findInvoicePayment(db, projectId, id));
}

async function findByExternalId(sandbox: SandboxFile, externalId: string): Promise<string> {
  const path = `/v1/invoices?externalId=${encodeURIComponent(externalId)}`;
  const { status, body } = await askApi(sandbox, path, { method: 'GET' });
  const { data } = body as { data?: { invoiceId: string }[] };
  if (data?.[0] !== undefined) return data[0].invoiceId;
  if (data !== undefined) throw unknownName(externalId);
  throw new AppError('SANDBOX_REFUSED', `the sandbox answered ${status} for ${externalId}`);
}

function unknownName(name: string): CliError {
  return new CliError(
    'NOT_FOUND',
    `the demo project of the sandbox has no invoice ${name}; one of another project is paid by the URL of its checkout page`,
  );
}

/** A new invoice of the demo project for the amount of another. Error: `SANDBOX_REFUSED`. */
export async function createAlike(db: Database, sandbox: SandboxFile, first: Payable, name: string): Promise<Payable> {
  const { status, body } = await askApi(sandbox, '/v1/invoices', {
    method: 'POST',
    headers: { 'Idempotency-Key': name, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      amount: formatAmount(first.requestedMicro),
      asset: 'USDT',
      network: 'TRON',
      externalId: name,
    }),
  });
  const { invoiceId, detail } = body as { invoiceId?: string; detail?: string };
  if (invoiceId !== undefined) return findPayable(db, sandbox, invoiceId);
  throw new AppError('SANDBOX_REFUSED', `the second invoice could not be created: ${detail ?? status}`);
}

/** One request to the sandbox with its key, answered in JSON. Error: `SANDBOX_NOT_RUNNING`. */
export async function askApi(
  { baseUrl, apiKey }: SandboxFile,
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
