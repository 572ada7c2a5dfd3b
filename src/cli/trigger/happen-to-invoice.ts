import { randomUUID } from 'node:crypto';
import { assertNever } from '../../domain/assert-never.ts';
import { AppError } from '../../domain/errors.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Database } from '../../store/database.ts';
import { CliError } from '../cli-error.ts';
import { askApi, findPayable, type Payable } from '../sandbox/find-payable.ts';
import { letExpire } from '../sandbox/let-expire.ts';
import { orphanPayment } from '../sandbox/orphan-payment.ts';
import { sendPayment } from '../sandbox/pay.ts';
import type { SandboxFile } from '../sandbox/sandbox-file.ts';
import type { Trigger } from './triggers.ts';
import type { Told, Until } from './until.ts';

/** What the invoice is made with, where it matters. */
export type InvoiceOptions = { amount?: string; externalId?: string };

type InvoiceTrigger = Exclude<Trigger, 'ping' | 'endpoint.disabled'>;

/** Makes an invoice of the demo project and lets happen to it what the event tells of. Errors: `INVALID_ARGUMENT`, `SANDBOX_REFUSED`. */
export async function happenToInvoice(
  db: Database,
  {
    sandbox,
    type,
    options,
    until,
  }: { sandbox: SandboxFile; type: InvoiceTrigger; options: InvoiceOptions; until: Until },
): Promise<Told> {
  const { amount = '25.00', externalId = `trigger-${type}-${systemClock.now()}` } = options;
  const create = (id: string) => createInvoice(db, sandbox, { amount, externalId: id });
  switch (type) {
    case 'invoice.confirming':
    case 'invoice.paid': {
      const { id, invoice } = await create(externalId);
      await sendPayment(sandbox, 'exact', invoice, null);
      return until(isAbout(type, 'invoiceId', [id]));
    }
    case 'invoice.expired': {
      const { id, invoice } = await create(externalId);
      await letExpire(db, invoice);
      return until(isAbout(type, 'invoiceId', [id]));
    }
    case 'invoice.pending':
      return until(isAbout(type, 'invoiceId', [await orphanOne(sandbox, create, externalId)]));
    case 'transfer.unmatched':
    case 'transfer.duplicate': {
      const { invoice } = await create(externalId);
      const { txIds } = await sendPayment(sandbox, type === 'transfer.unmatched' ? 'short' : 'twice', invoice, null);
      return until(isAbout(type, 'txId', txIds));
    }
    default:
      return assertNever(type);
  }
}

function isAbout(type: string, field: 'invoiceId' | 'txId', values: readonly string[]): (event: Told) => boolean {
  return (event) => event.type === type && values.some((value) => event.data[field] === value);
}

type Created = { id: string; invoice: Payable };

async function createInvoice(
  db: Database,
  sandbox: SandboxFile,
  { amount, externalId }: { amount: string; externalId: string },
): Promise<Created> {
  const { status, body } = await askApi(sandbox, '/v1/invoices', {
    method: 'POST',
    headers: { 'Idempotency-Key': randomUUID(), 'Content-Type': 'application/json' },
    body: JSON.stringify({ amount, asset: 'USDT', network: 'TRON', externalId }),
  });
  const { invoiceId, detail } = body as { invoiceId?: string; detail?: string };
  // A conflict names the invoice that there is.
  if (status === 201 && invoiceId !== undefined)
    return { id: invoiceId, invoice: await findPayable(db, sandbox, invoiceId) };
  if (status === 400 || status === 409) {
    throw new CliError(
      status === 409 ? 'CONFLICT' : 'INVALID_ARGUMENT',
      `the invoice was refused: ${detail ?? status}`,
    );
  }
  throw new AppError('SANDBOX_REFUSED', `the invoice could not be made: ${detail ?? status}`);
}

/** Blocks of a fast network may become irreversible before their payment was seen. */
const MAX_TRIES = 5;

/** Pays invoices until the block of one was orphaned while it was CONFIRMING, and answers its id. */
async function orphanOne(
  sandbox: SandboxFile,
  create: (externalId: string) => Promise<Created>,
  externalId: string,
): Promise<string> {
  for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
    const { id, invoice } = await create(tries === 1 ? externalId : `${externalId}-${tries}`);
    const { txIds } = await sendPayment(sandbox, 'orphaned', invoice, null);
    const isConfirming = async () => (await invoice.readStatus()) === 'CONFIRMING';
    const orphaned = await orphanPayment({ nodeUrl: sandbox.nodeUrl, txId: txIds[0] ?? '', isConfirming });
    if (orphaned.wasConfirming) return id;
  }
  throw new AppError(
    'SANDBOX_REFUSED',
    `no payment was seen CONFIRMING before its block was orphaned, in ${MAX_TRIES} tries: is the machine very busy?`,
  );
}
