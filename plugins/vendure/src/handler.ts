import { isFulfillable, QuittanceError } from '@quittance/sdk';
import {
  type CreatePaymentErrorResult,
  type CreatePaymentResult,
  type Injector,
  isGraphQlErrorResult,
  LanguageCode,
  Logger,
  type Order,
  type Payment,
  PaymentMethodHandler,
  PaymentService,
  type RequestContext,
} from '@vendure/core';
import { askFor, toInput, toPriceCurrency } from './amount';
import { loggerCtx } from './options';
import { NOT_SHOWN, QuittanceService } from './quittance.service';
import { readStored, toMetadata } from './stored';

let service: QuittanceService;
let payments: PaymentService;

export const quittanceHandler = new PaymentMethodHandler({
  code: 'quittance',
  description: [{ languageCode: LanguageCode.en, value: 'USDT on TRON, with Quittance' }],
  args: {},
  init(injector: Injector) {
    service = injector.get(QuittanceService);
    payments = injector.get(PaymentService);
  },
  createPayment: (ctx, order) => createPayment(ctx, order),
  // Whoever asks for it, a person included: what the API says decides.
  async settlePayment(_ctx, order, payment) {
    const problem = await findProblem(order, payment);
    if (problem === null) return { success: true };
    return { success: false, state: payment.state as 'AwaitingTransfer', errorMessage: problem };
  },
  cancelPayment: (_ctx, _order, payment) => cancelPayment(payment),
  // The shop cannot send USDT: a person sends it and settles the refund with the id of the transaction.
  createRefund: () => ({
    state: 'Pending',
    metadata: {
      sendByHand: 'Quittance holds no money. Send the USDT, then settle this refund with the transaction id.',
    },
  }),
});

/**
 * Vendure calls it inside of the transaction of the storefront's request. Vendure computed its own amount before the lock, when the payment
 * of a simultaneous click wasn't stored yet, so the plugin computes the amount again.
 */
async function createPayment(ctx: RequestContext, { id, code, currencyCode }: Order): Promise<Result> {
  await service.lockOrder(ctx, id);
  const earlier = await service.paymentsOf(ctx, id);
  const open = earlier.find(({ state }) => state === 'AwaitingTransfer');
  const amount = await service.amountLeft(ctx, id, open);
  if (open !== undefined) {
    const stored = readStored(open);
    const isWanted = open.amount === amount && stored?.currency === toPriceCurrency(currencyCode);
    const page = await service.readPageState(open);
    // The second of two clicks, or of two tabs, gets the invoice of the first. So does a customer who has paid it, also if the total changed.
    if (page === 'paid' || (isWanted && page === 'open')) {
      return { amount: 0, state: 'Cancelled', metadata: { repeats: true, public: stored?.public } };
    }
    const cancelled = await payments.cancelPayment(ctx, open.id);
    if (isGraphQlErrorResult(cancelled) || cancelled.state !== 'Cancelled') {
      const reason = isGraphQlErrorResult(cancelled) ? cancelled.message : cancelled.errorMessage;
      const errorMessage = `The order has changed, but Quittance did not withdraw its earlier invoice. ${reason} Please try again in a minute.`;
      return { amount, state: 'Error', errorMessage };
    }
  }
  return ask(amount, code, currencyCode, earlier.length + 1);
}

type Result = CreatePaymentResult | CreatePaymentErrorResult;

async function ask(amount: number, code: string, currencyCode: string, attempt: number): Promise<Result> {
  try {
    const asked = askFor(amount, currencyCode, service.precision);
    // The same for every retry of this attempt, also if this transaction is lost; another amount is another attempt.
    const externalId = [code, attempt, amount, asked.currency].filter(Boolean).join('.');
    const invoice = await service.client.invoices.create(
      { ...toInput(asked), asset: 'USDT', network: 'TRON', externalId },
      { idempotencyKey: externalId },
    );
    const { invoiceId, checkoutUrl, expiresAt, status } = invoice;
    const shown = { checkoutUrl, ...asked, expiresAt, status };
    const metadata = toMetadata({
      ...{ externalId, ...asked, asset: 'USDT', network: 'TRON', noted: [], public: shown },
    });
    return { amount, state: 'AwaitingTransfer', transactionId: invoiceId, metadata };
  } catch (error) {
    if (error instanceof RangeError) return { amount, state: 'Error', errorMessage: error.message };
    if (!(error instanceof QuittanceError)) throw error;
    Logger.error(
      `could not create an invoice for order ${code}: ${error.code} ${error.message} ${error.requestId}`,
      loggerCtx,
    );
    return { amount, state: 'Error', errorMessage: describe(error, currencyCode) };
  }
}

/** Says what happened and what to do. A missing rate is for the merchant: trying again doesn't help the customer. */
function describe({ code, errors }: QuittanceError, currency: string): string {
  if (errors.some((each) => each.code === 'NO_RATE')) {
    return `You cannot pay this order in USDT, because Quittance has no rate for ${currency}. The operator can set a rate with: quittance adapter enable --kind price --currency ${currency} --rate …`;
  }
  const reason = code === 'RATE_UNAVAILABLE' ? ', because Quittance has no current rate' : '';
  return `You cannot pay in USDT at the moment${reason}. Please try again.`;
}

async function findProblem({ currencyCode }: Order, payment: Payment): Promise<string | null> {
  const stored = readStored(payment);
  if (stored === null) return 'This payment has no invoice.';
  if (stored.currency !== toPriceCurrency(currencyCode)) {
    return `The invoice is for ${stored.currency ?? 'USDT'}, but the order is now in ${currencyCode}.`;
  }
  try {
    const invoice = await service.readInvoice(payment);
    if (invoice === null)
      return 'The invoice does not belong to this payment: its id, external id or price is different.';
    return isFulfillable(invoice, stored.externalId) ? null : `The invoice is ${invoice.status}, not PAID.`;
  } catch (error) {
    // After any other error, the sweep or the next webhook tries again.
    if (!(error instanceof QuittanceError) || !NOT_SHOWN.includes(error.code)) throw error;
    return `Quittance returned ${error.code}.`;
  }
}

async function cancelPayment(payment: Payment) {
  if (payment.state !== 'AwaitingTransfer' || readStored(payment) === null) return { success: true as const };
  try {
    await service.client.invoices.withdraw(payment.transactionId);
    return { success: true as const };
  } catch (error) {
    if (!(error instanceof QuittanceError)) throw error;
    // Quittance lost it in a restore, or the key is now another project's: it asks for nothing.
    if (error.code === 'INVOICE_NOT_FOUND') return { success: true as const };
    const errorMessage = error.code === 'INVOICE_PAID' ? 'The invoice is paid.' : `Quittance returned ${error.code}.`;
    return { success: false as const, state: 'AwaitingTransfer' as const, errorMessage };
  }
}
