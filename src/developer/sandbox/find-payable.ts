import { randomUUID } from 'node:crypto';
import { request } from 'undici';
import { isCheckoutToken } from '../../core/domain/checkout-token.ts';
import { AppError } from '../../core/domain/errors.ts';
import { decodeId, encodeId } from '../../core/domain/ids.ts';
import type { InvoiceStatus } from '../../core/domain/invoice.ts';
import { findCheckoutInvoice } from '../../core/store/ledger/checkout.ts';
import { findInvoicePayment, type InvoicePayment } from '../../core/store/ledger/payments.ts';
import { clip } from '../../faces/operator/input/problems.ts';
import { findIdOfOrder } from './sandbox-project.ts';
import type { Sandbox } from './with-sandbox.ts';

/** A sandbox's invoice with everything that its payer needs to know. */
export type Payable = Pick<InvoicePayment, 'requestedMicro' | 'payableMicro' | 'address' | 'checkoutToken'> & {
  /** The invoice's name in messages to people. */
  reference: string;
  readStatus(): Promise<InvoiceStatus>;
};

type Found = Omit<Payable, 'reference' | 'readStatus'> & Pick<InvoicePayment, 'id' | 'status'>;

/**
 * Finds an invoice by its `inv_…` id, its checkout URL, or its external id in the project. An external id can look like the other two, so
 * it's tried last. With a key, only invoices in the key's own project are found, even by URL. Throws `NOT_FOUND` or `CONFLICT`.
 */
export async function findPayable(sandbox: Sandbox, target: string): Promise<Payable> {
  const byLink = () => lookByLink(sandbox, target);
  const looks = [() => lookById(sandbox, decodeId('inv', target)), byLink, () => lookByExternalId(sandbox, target)];
  for (const look of looks) {
    const found = await look();
    if (found === null) continue;
    const { id, status, ...invoice } = found;
    if (look === byLink && (status === 'CONFIRMING' || status === 'PAID')) {
      throw new AppError('CONFLICT', `${target} already has a payment: to pay it again on purpose, use its invoiceId`);
    }
    const readStatus = async () => {
      const again = await look();
      if (again === null) throw unknownName(sandbox, target);
      return again.status;
    };
    // A checkout link doesn't reveal the invoice id, so messages about the link don't reveal it either.
    return { ...invoice, reference: look === byLink ? target : encodeId('inv', id), readStatus };
  }
  throw unknownName(sandbox, target);
}

async function lookById({ db, projectUuid }: Sandbox, id: string | null): Promise<Found | null> {
  return id === null ? null : findInvoicePayment(db, projectUuid, id);
}

async function lookByLink(sandbox: Sandbox, target: string): Promise<Found | null> {
  const token = /\/c\/([^/?#]+)/.exec(target)?.[1] ?? '';
  const found = isCheckoutToken(token) ? await findCheckoutInvoice(sandbox.db, token) : null;
  return found === null || !sandbox.isOfKey ? found : lookById(sandbox, found.id);
}

async function lookByExternalId(sandbox: Sandbox, externalId: string): Promise<Found | null> {
  // Half of a surrogate pair can't be stored or queried.
  if (!externalId.isWellFormed()) return null;
  return lookById(sandbox, await findIdOfOrder(sandbox.db, sandbox.projectUuid, externalId));
}

function unknownName({ isOfKey }: Sandbox, name: string): AppError {
  const shown = clip(name);
  if (isOfKey) return new AppError('NOT_FOUND', `This key's project has no invoice ${shown}.`);
  const advice = /\/c\//.test(name) ? '' : "; to pay another project's invoice, use its checkout page URL";
  const whose = advice === '' ? 'the sandbox' : 'the sandbox demo project';
  return new AppError('NOT_FOUND', `${whose} has no invoice ${shown}${advice}`);
}

/** Creates an invoice in the project. Returns its id, or the refusal. Throws `SANDBOX_NOT_RUNNING`. */
export async function orderInvoice(
  sandbox: Sandbox,
  { amount, externalId }: { amount: string; externalId: string },
): Promise<{ status: number; invoiceId?: string; detail?: string }> {
  const body = JSON.stringify({ amount, asset: 'USDT', network: 'TRON', externalId });
  const headers = { 'Idempotency-Key': randomUUID(), 'Content-Type': 'application/json' };
  const { baseUrl, apiKey } = sandbox;
  const response = await request(`${baseUrl}/v1/invoices`, {
    method: 'POST',
    headers: { ...headers, 'X-Api-Key': apiKey },
    body,
  }).catch((cause: unknown) => {
    const message = `the sandbox at ${baseUrl} does not respond: is it still running?`;
    throw new AppError('SANDBOX_NOT_RUNNING', message, { cause });
  });
  const answer = (await response.body.json()) as { invoiceId?: string; detail?: string };
  return { ...answer, status: response.statusCode };
}
