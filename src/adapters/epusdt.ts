import type { FastifyInstance, FastifyRequest } from 'fastify';
import { projectInvoice } from '../domain/event.ts';
import { decodeId, encodeId } from '../domain/ids.ts';
import type { InvoiceStatus } from '../domain/invoice.ts';
import { formatAmount } from '../domain/money.ts';
import { findInvoicePayment } from '../store/ledger/payments.ts';
import { type Dialect, findAdapterOrder } from '../store/outbox/adapter-orders.ts';
import { clientOf } from '../web/client-address.ts';
import { refuseLimited } from '../web/refuse-limited.ts';
import { asNumber, type Fields, isSigned, PID } from '../webhooks/adapter-signature.ts';
import { ADAPTER_FAILURES, type AdapterDeps } from './adapter-deps.ts';
import { admit, findEnabled } from './admit.ts';
import { createAdaptedOrder } from './create-adapted-order.ts';
import { readBody } from './read-fields.ts';
import { CODES, notHere, Refusal } from './refusal.ts';
import { refuseOtherCoins } from './refuse-other-coins.ts';
import { routeOptions } from './route-options.ts';

const BASE = '/adapters/:adapterId';

/** The routes of epusdt and of its successor, gmpay. */
export function registerEpusdt(app: FastifyInstance, deps: AdapterDeps): void {
  const create = (path: string, dialect: Extract<Dialect, 'epusdt' | 'gmpay'>) =>
    app.post(BASE + path, optionsOf(dialect), async (request) =>
      answer(request, await createOrder(deps, request, dialect)),
    );
  create('/api/v1/order/create-transaction', 'epusdt');
  create('/payments/gmpay/v1/order/create-transaction', 'gmpay');
  app.get(`${BASE}/pay/check-status/:tradeId`, optionsOf('epusdt'), async (request) =>
    answer(request, await checkStatus(deps, request)),
  );
}

/** Both answer a refusal as they answer all else; the successor with a status of HTTP too. */
function optionsOf(dialect: Dialect) {
  const failed = dialect === 'gmpay' ? 400 : 200;
  return routeOptions(({ code, message, isUnknown }, { id }, reply) =>
    reply.code(isUnknown ? 404 : failed).send({ status_code: code, message, data: null, request_id: id }),
  );
}

function answer(request: FastifyRequest, data: object) {
  return { status_code: 200, message: 'success', data, request_id: request.id };
}

async function createOrder(deps: AdapterDeps, request: FastifyRequest, dialect: 'epusdt' | 'gmpay') {
  const fields = readBody(request);
  const admitted = await admit(deps, request, 'epusdt', (secret) => isGenuine(fields, dialect, secret));
  refuseOtherCoins(fields, ['trade_type']);
  const amount = fields.get('amount') ?? '';
  const payment = await createAdaptedOrder(deps, admitted, {
    ...{ dialect, orderId: fields.get('order_id') ?? '', amount, currency: fields.get('currency') ?? '' },
    ...{ notifyUrl: fields.get('notify_url') ?? '', returnUrl: fields.get('redirect_url') ?? '' },
    ...{ name: fields.get('name') ?? '', type: '', param: '' },
  });
  const { checkoutUrl, expiresAt } = projectInvoice(payment, deps.publicUrl());
  const { address } = payment;
  const { currency } = admitted.adapter;
  const successor = { currency, receive_address: address, token: 'USDT', status: STATUS[payment.status] };
  return {
    ...{ trade_id: encodeId('inv', payment.id), order_id: payment.externalId },
    ...{ amount: Number(asNumber(amount)), actual_amount: Number(asNumber(formatAmount(payment.payableMicro))) },
    ...(dialect === 'gmpay' ? successor : { token: address }),
    ...{ expiration_time: Math.floor(Date.parse(expiresAt) / 1000), payment_url: checkoutUrl },
  };
}

/** The successor knows shops by their number; epusdt had one. */
function isGenuine(fields: Fields, dialect: Dialect, secret: string): boolean {
  return (dialect === 'epusdt' || fields.get('pid') === PID) && isSigned(fields, fields.get('signature') ?? '', secret);
}

/** What comes and goes with blocks is still waiting there. */
const STATUS: Readonly<Record<InvoiceStatus, number>> = { PENDING: 1, CONFIRMING: 1, PAID: 2, EXPIRED: 3 };

/** Unsigned, as there: it says nothing but the status, to those who know the id of the trade. Each look takes a token of its network. */
async function checkStatus(deps: AdapterDeps, request: FastifyRequest) {
  refuseLimited(deps.failureBuckets.take(clientOf(request).network, deps.now()), ADAPTER_FAILURES);
  const found = await findEnabled(deps, request, 'epusdt');
  if (found === null) throw notHere();
  const { tradeId = '' } = request.params as { tradeId?: string };
  const { id: endpointId, projectId } = found.adapter;
  const id = decodeId('inv', tradeId);
  const order = id === null ? null : await findAdapterOrder(deps.db, projectId, id, endpointId);
  const invoice = order === null ? null : await findInvoicePayment(deps.db, projectId, order.invoiceId);
  if (invoice === null) throw new Refusal(CODES.noOrder, 'order does not exist');
  return { trade_id: encodeId('inv', invoice.id), status: STATUS[invoice.status] };
}
