import type { FastifyInstance, FastifyRequest } from 'fastify';
import { projectInvoice } from '../../core/domain/event.ts';
import { decodeId, encodeId } from '../../core/domain/ids.ts';
import type { InvoiceStatus } from '../../core/domain/invoice.ts';
import { formatAmount } from '../../core/domain/money.ts';
import { withdrawInvoice } from '../../core/store/ledger/invoices.ts';
import { findInvoicePayment, type InvoicePayment } from '../../core/store/ledger/payments.ts';
import type { AdapterKind } from '../../core/store/outbox/adapter-orders.ts';
import { asNumber, type Fields, isSigned, PID } from '../../core/webhooks/adapter-dialect.ts';
import { clientOf } from '../web/client-address.ts';
import { refuseLimited } from '../web/rate-limit.ts';
import { ADAPTER_FAILURES, type AdapterDeps, type Admitted, admit, findEnabled, kindOf } from './authenticate.ts';
import { createAdaptedOrder, findOrder } from './create-adapted-order.ts';
import { checkFields, type FORMS, readBody } from './fields.ts';
import { CODES, notHere, Refusal, routeOptions } from './refusal.ts';

const BASE = '/adapters/:adapterId';

/** BEpusdt uses one code for all refusals. */
const options = routeOptions(200, ({ code, isUnknown }, request) =>
  kindOf(request) === 'bepusdt' && !isUnknown ? CODES.system : code,
);

/**
 * Registers the routes of epusdt, BEpusdt and gmpay (epusdt's successor). They share some paths, where the adapter's kind determines the
 * protocol.
 */
export function registerEpusdt(app: FastifyInstance, deps: AdapterDeps): void {
  app.post(`${BASE}/api/v1/order/create-transaction`, options, async (request) => {
    const { admitted, fields } = await read(deps, request, ['epusdt', 'bepusdt']);
    if (admitted.adapter.adapter === 'bepusdt')
      return answer(request, await createBepusdtOrder(deps, admitted, fields));
    checkFields('epusdt', fields, admitted.adapter);
    const payment = await createOrder(deps, admitted, fields, 'epusdt');
    return answer(request, { ...describe(deps, payment, fields), token: payment.address });
  });
  app.post(`${BASE}/api/v1/order/create-order`, options, async (request) => {
    const { admitted, fields } = await read(deps, request, ['bepusdt']);
    const { trade_type, actual_amount, token, ...order } = await createBepusdtOrder(
      deps,
      admitted,
      fields,
      'bepusdtOrder',
    );
    return answer(request, { ...order, reselect: false });
  });
  app.post(`${BASE}/api/v1/order/cancel-transaction`, options, async (request) => {
    const { admitted, fields } = await read(deps, request, ['bepusdt']);
    checkFields('bepusdtCancel', fields, admitted.adapter);
    return answer(request, await cancel(deps, admitted, fields.get('trade_id') ?? ''));
  });
  // epusdt's successor responds to a refused request with an HTTP error status.
  app.post(`${BASE}/payments/gmpay/v1/order/create-transaction`, routeOptions(400), async (request) => {
    const { admitted, fields } = await read(deps, request, ['epusdt'], (read) => read.get('pid') === PID);
    checkFields('gmpay', fields, admitted.adapter);
    const payment = await createOrder(deps, admitted, fields, isToldAsEpay(fields) ? 'epay' : 'gmpay');
    const { currency } = admitted.adapter;
    const more = { currency, receive_address: payment.address, token: 'USDT', status: STATUS[payment.status] };
    return answer(request, { ...describe(deps, payment, fields), ...more });
  });
  app.get(`${BASE}/pay/check-status/:tradeId`, options, (request) => checkStatus(deps, request));
}

function answer(request: FastifyRequest, data: object) {
  return { status_code: 200, message: 'success', data, request_id: request.id };
}

async function read(
  deps: AdapterDeps,
  request: FastifyRequest,
  kinds: readonly AdapterKind[],
  isNumbered: (fields: Fields) => boolean = () => true,
) {
  const fields = readBody(request);
  const isGenuine = (secret: string) => isNumbered(fields) && isSigned(fields, fields.get('signature') ?? '', secret);
  return { fields, admitted: await admit(deps, request, kinds, isGenuine) };
}

/** Reads `payment_type`, which selects the form of the successor's callback. */
function isToldAsEpay(fields: Fields): boolean {
  const type = fields.get('payment_type') ?? '';
  if (/^(gmpay|epay)?$/i.test(type)) return type.toLowerCase() === 'epay';
  throw new Refusal(
    CODES.fields,
    `failed to parse request params: payment_type is ${JSON.stringify(type.slice(0, 30))}: send Gmpay or Epay`,
  );
}

function createOrder(
  deps: AdapterDeps,
  admitted: Admitted,
  fields: Fields,
  dialect: 'epusdt' | 'bepusdt' | 'gmpay' | 'epay',
): Promise<InvoicePayment> {
  return createAdaptedOrder(deps, admitted, {
    ...{ dialect, orderId: fields.get('order_id') ?? '', amount: fields.get('amount') ?? '' },
    ...{ notifyUrl: fields.get('notify_url') ?? '', returnUrl: fields.get('redirect_url') ?? '' },
    ...{ name: fields.get('name') ?? '', type: '', param: '', timeout: fields.get('timeout') ?? '' },
  });
}

function describe(deps: AdapterDeps, payment: InvoicePayment, fields: Fields) {
  const { checkoutUrl, expiresAt } = projectInvoice(payment, deps.publicUrl());
  return {
    ...{ trade_id: encodeId('inv', payment.id), order_id: payment.externalId },
    amount: Number(asNumber(fields.get('amount') ?? '')),
    actual_amount: Number(asNumber(formatAmount(payment.payableMicro))),
    ...{ expiration_time: Math.floor(Date.parse(expiresAt) / 1000), payment_url: checkoutUrl },
  };
}

/** Creates an order and responds as BEpusdt does: amounts are strings, and the response contains the number of seconds left. */
async function createBepusdtOrder(
  deps: AdapterDeps,
  admitted: Admitted,
  fields: Fields,
  form: keyof typeof FORMS = 'bepusdtTransaction',
) {
  const { currency } = admitted.adapter;
  // In BEpusdt, an order without `fiat` is in CNY.
  const meant = (fields.get('fiat') ?? '') === '' ? new Map([...fields, ['fiat', 'CNY']]) : fields;
  checkFields(form, meant, admitted.adapter);
  const payment = await createOrder(deps, admitted, fields, 'bepusdt');
  const { checkoutUrl, expiresAt } = projectInvoice(payment, deps.publicUrl());
  const secondsLeft = Math.max(0, Math.floor((Date.parse(expiresAt) - deps.now()) / 1000));
  return {
    ...{ fiat: currency, trade_type: 'usdt.trc20', trade_id: encodeId('inv', payment.id) },
    ...{ order_id: payment.externalId, status: bepusdtStatus(payment), amount: asNumber(fields.get('amount') ?? '') },
    ...{ actual_amount: asNumber(formatAmount(payment.payableMicro)), token: payment.address },
    ...{ expiration_time: secondsLeft, payment_url: checkoutUrl },
  };
}

/** Withdraws the checkout. A payment that arrives anyway still counts, and the shop gets its callback. */
async function cancel(deps: AdapterDeps, { adapter }: Admitted, tradeId: string): Promise<{ trade_id: string }> {
  const { projectId, network } = adapter;
  const { invoice } = await findOrder(deps, adapter, decodeId('inv', tradeId));
  const refuse = (reason: string) => new Refusal(CODES.orderState, `order cannot be cancelled: ${reason}`);
  if (invoice.status === 'CONFIRMING') throw refuse('its payment is being confirmed');
  await withdrawInvoice(deps.db, { id: invoice.id, projectId, network, at: deps.now() });
  const after = await findInvoicePayment(deps.db, projectId, invoice.id);
  if (after === null) throw new Error(`invoice ${invoice.id} disappeared, although invoices are never deleted`);
  // Another request may have withdrawn the page before the payment arrived.
  if (after.status === 'PAID' || after.withdrawnAt === null) throw refuse('it is paid');
  return { trade_id: encodeId('inv', invoice.id) };
}

/** epusdt doesn't have a status for payments that can still be orphaned, so `CONFIRMING` is reported as waiting. */
const STATUS: Readonly<Record<InvoiceStatus, number>> = { PENDING: 1, CONFIRMING: 1, PAID: 2, EXPIRED: 3 };

/** BEpusdt has two more statuses: 4 means cancelled, and 5 means that a payment is being confirmed. */
function bepusdtStatus({ status, withdrawnAt }: InvoicePayment): number {
  if (status === 'CONFIRMING') return 5;
  return status !== 'PAID' && withdrawnAt !== null ? 4 : STATUS[status];
}

/**
 * Responds without a signature, as BEpusdt does, because the response contains only the status, and the client must know the trade id. Each
 * request uses one of the client network's tokens.
 */
async function checkStatus(deps: AdapterDeps, request: FastifyRequest) {
  refuseLimited(deps.failureBuckets.take(clientOf(request).network, deps.now()), ADAPTER_FAILURES);
  const found = await findEnabled(deps, request, ['epusdt', 'bepusdt']);
  if (found === null) throw notHere();
  const { tradeId = '' } = request.params as { tradeId?: string };
  const { invoice, order } = await findOrder(deps, found.adapter, decodeId('inv', tradeId));
  const trade_id = encodeId('inv', invoice.id);
  if (found.adapter.adapter !== 'bepusdt') return answer(request, { trade_id, status: STATUS[invoice.status] });
  const return_url = invoice.status === 'PAID' ? (order.returnUrl ?? '') : '';
  return { trade_id, trade_hash: invoice.transaction?.txId ?? '', status: bepusdtStatus(invoice), return_url };
}
