import { randomBytes } from 'node:crypto';
import { assertNever } from '../../core/domain/assert-never.ts';
import { AppError } from '../../core/domain/errors.ts';
import { unixMs } from '../../core/domain/time.ts';
import { systemClock } from '../../core/runtime/clock.ts';
import { requestClaim } from '../../core/store/ledger/checkout.ts';
import { commandActor } from '../../faces/operator/actor.ts';
import { resolveTransfers } from '../../faces/operator/subjects/transfer-decisions.ts';
import type { FeedEvent, Until } from '../listen/follow-feed.ts';
import { findPayable, letExpire, orderInvoice, orphanPayment, type Payable } from '../sandbox/find-payable.ts';
import { sendPayment } from '../sandbox/pay-invoice.ts';
import type { Sandbox } from '../sandbox/with-sandbox.ts';
import type { Trigger } from './triggers.ts';

/** The fields for creating the invoice, if they matter. */
export type InvoiceOptions = { amount?: string | undefined; externalId?: string | undefined };

type InvoiceTrigger = Exclude<Trigger, 'ping' | 'endpoint.disabled' | 'transfer.refunded'>;

/** Creates an invoice in the demo project and makes the event happen to it. Throws `INVALID_ARGUMENT` or `SANDBOX_REFUSED`. */
export async function happenToInvoice(
  sandbox: Sandbox,
  { type, options, until }: { type: InvoiceTrigger; options: InvoiceOptions; until: Until },
): Promise<FeedEvent> {
  const { amount = '25.00', externalId = `trigger-${type}-${systemClock.now()}` } = options;
  const deps = { db: sandbox.db, now: () => unixMs(systemClock.now()), random: randomBytes };
  const create = (name: string) => makeInvoice(sandbox, { amount, externalId: name });
  if (type === 'invoice.pending' || type === 'invoice.confirming') {
    return whileConfirming(create, externalId, async ({ id, invoice }) => {
      if (type === 'invoice.pending') {
        const { txIds } = await sendPayment(sandbox, 'orphaned', invoice, null);
        const { wasConfirming } = await orphanPayment(sandbox, invoice, txIds[0] ?? '');
        return wasConfirming ? until(isAbout(type, 'invoiceId', [id])) : null;
      }
      await sendPayment(sandbox, 'exact', invoice, null);
      const isConfirming = isAbout(type, 'invoiceId', [id]);
      const isPaid = isAbout('invoice.paid', 'invoiceId', [id]);
      const event = await until((each) => isConfirming(each) || isPaid(each));
      return isConfirming(event) ? event : null;
    });
  }
  const { id, invoice } = await create(externalId);
  switch (type) {
    case 'invoice.paid':
      await sendPayment(sandbox, 'exact', invoice, null);
      return until(isAbout(type, 'invoiceId', [id]));
    case 'invoice.expired':
      await letExpire(sandbox.db, invoice);
      return until(isAbout(type, 'invoiceId', [id]));
    case 'transfer.unmatched':
    case 'transfer.duplicate': {
      const { txIds } = await sendPayment(sandbox, type === 'transfer.unmatched' ? 'short' : 'twice', invoice, null);
      return until(isAbout(type, 'txId', txIds));
    }
    case 'transfer.claimed': {
      const { txIds } = await sendPayment(sandbox, 'short', invoice, null);
      for (const txId of txIds) await requestClaim(sandbox.db, invoice.checkoutToken, txId);
      return until(isAbout(type, 'txId', txIds));
    }
    case 'transfer.resolved': {
      const { txIds } = await sendPayment(sandbox, 'short', invoice, null);
      const { data } = await until(isAbout('transfer.unmatched', 'txId', txIds));
      const wanted = { transfers: [String(data['transferId'])], resolution: 'fulfilled-manually', invoice: id };
      await resolveTransfers.run(deps, commandActor('trigger'), resolveTransfers.read(wanted, deps.now()));
      return until(isAbout(type, 'txId', txIds));
    }
    default:
      return assertNever(type);
  }
}

function isAbout(type: string, field: 'invoiceId' | 'txId', values: readonly string[]): (event: FeedEvent) => boolean {
  return (event) => event.type === type && values.some((value) => event.data[field] === value);
}

type Created = { id: string; invoice: Payable };

async function makeInvoice(sandbox: Sandbox, wanted: Parameters<typeof orderInvoice>[1]): Promise<Created> {
  const { status, invoiceId, detail = status } = await orderInvoice(sandbox, wanted);
  // A conflict also returns an id, but it's the existing invoice's.
  if (status === 201 && invoiceId !== undefined)
    return { id: invoiceId, invoice: await findPayable(sandbox, invoiceId) };
  if (status === 409) throw new AppError('CONFLICT', `the invoice was refused: ${detail}`);
  if (status === 400) throw new AppError('INVALID_ARGUMENT', `the invoice was refused: ${detail}`);
  throw new AppError('SANDBOX_REFUSED', `the invoice could not be created: ${detail}`);
}

/** On a fast network, blocks may become irreversible before their payment is seen. */
const MAX_TRIES = 5;

/** Creates invoices until `pay` returns the event for an invoice that was seen CONFIRMING. It returns `null` for an invoice that wasn't. */
async function whileConfirming(
  create: (externalId: string) => Promise<Created>,
  externalId: string,
  pay: (created: Created) => Promise<FeedEvent | null>,
): Promise<FeedEvent> {
  for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
    const event = await pay(await create(tries === 1 ? externalId : `${externalId}-${tries}`));
    if (event !== null) return event;
  }
  throw new AppError(
    'SANDBOX_REFUSED',
    `no payment was seen CONFIRMING before its block became irreversible, in ${MAX_TRIES} tries: is the machine very busy?`,
  );
}
