import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { projectInvoice } from '../../core/domain/event.ts';
import { decodeId, encodeId } from '../../core/domain/ids.ts';
import { toIso, type UnixMs } from '../../core/domain/time.ts';
import { findInvoiceByExternalId } from '../../core/store/ledger/invoices.ts';
import { type Fields, isSigned, PID } from '../../core/webhooks/adapter-dialect.ts';
import { isSameText } from '../../core/webhooks/sign.ts';
import { type AdapterDeps, type Admitted, admit } from './authenticate.ts';
import { createAdaptedOrder, findOrder } from './create-adapted-order.ts';
import { checkFields, readForm } from './fields.ts';
import { CODES, Refusal, routeOptions } from './refusal.ts';

const BASE = '/adapters/:adapterId';
const METHODS = ['GET', 'POST'] as const;

/** Registers the EPay routes. A shop sends the payer's browser to `submit.php`, or calls `mapi.php` and `api.php` itself. */
export function registerEpay(app: FastifyInstance, deps: AdapterDeps): void {
  const submit = (request: FastifyRequest, reply: FastifyReply) => redirect(deps, request, reply);
  // epusdt's successor accepts EPay orders at the second path.
  for (const path of ['/submit.php', '/payments/epay/v1/order/create-transaction/submit.php']) {
    app.route({ method: [...METHODS], url: BASE + path, ...inWords, handler: submit });
  }
  app.route({ method: [...METHODS], url: `${BASE}/mapi.php`, ...inJson, handler: (request) => create(deps, request) });
  app.route({
    method: [...METHODS],
    url: `${BASE}/api.php`,
    ...inJson,
    handler: (request) => readOrder(deps, request),
  });
}

const inJson = routeOptions(200);
const inWords = routeOptions(400);

async function makeOrder(deps: AdapterDeps, request: FastifyRequest) {
  const fields = readForm(request);
  const isGenuine = (secret: string) => fields.get('pid') === PID && isSigned(fields, fields.get('sign') ?? '', secret);
  const admitted = await admit(deps, request, ['epay'], isGenuine);
  checkFields('epay', fields, admitted.adapter);
  const signType = fields.get('sign_type') ?? '';
  if (!/^(MD5)?$/i.test(signType)) throw new Refusal(CODES.fields, 'sign_type must be MD5');
  return createAdaptedOrder(deps, admitted, {
    ...{ dialect: 'epay', orderId: fields.get('out_trade_no') ?? '', amount: fields.get('money') ?? '' },
    ...{ notifyUrl: fields.get('notify_url') ?? '', returnUrl: fields.get('return_url') ?? '' },
    ...{ name: fields.get('name') ?? '', type: fields.get('type') ?? '', param: fields.get('param') ?? '' },
    timeout: '',
  });
}

async function redirect(deps: AdapterDeps, request: FastifyRequest, reply: FastifyReply) {
  const { checkoutUrl } = projectInvoice(await makeOrder(deps, request), deps.publicUrl());
  return reply.redirect(checkoutUrl, 302);
}

async function create(deps: AdapterDeps, request: FastifyRequest) {
  const payment = await makeOrder(deps, request);
  const { checkoutUrl } = projectInvoice(payment, deps.publicUrl());
  return { code: 1, msg: 'success', trade_no: encodeId('inv', payment.id), payurl: checkoutUrl };
}

/** Handles `act=order`. In this protocol, the request contains the secret in clear text, as `key`. */
async function readOrder(deps: AdapterDeps, request: FastifyRequest) {
  const fields = readForm(request);
  const isGenuine = (secret: string) => fields.get('pid') === PID && isSameText(fields.get('key') ?? '', secret);
  const { adapter } = await admit(deps, request, ['epay'], isGenuine);
  checkFields('epayQuery', fields, adapter);
  if (fields.get('act') !== 'order')
    throw new Refusal(CODES.fields, 'act must be order: this adapter supports no other value');
  const { order, invoice: payment } = await findOrder(deps, adapter, await findOrderId(deps, adapter, fields));
  const isPaid = payment.status === 'PAID';
  const paidAt = isPaid ? (payment.transaction?.blockTime ?? null) : null;
  return {
    ...{ code: 1, msg: 'success', trade_no: encodeId('inv', payment.id), out_trade_no: payment.externalId },
    ...{ api_trade_no: payment.transaction?.txId ?? null, type: order.type ?? 'usdt', pid: PID },
    ...{ addtime: inSeconds(order.createdAt), endtime: paidAt === null ? null : inSeconds(paidAt) },
    ...{ name: order.name ?? payment.externalId, money: order.amount, status: isPaid ? 1 : 0, param: order.param },
  };
}

async function findOrderId({ db, now }: AdapterDeps, { id }: Admitted['adapter'], fields: Fields) {
  const tradeNo = fields.get('trade_no') ?? '';
  if (tradeNo !== '') return decodeId('inv', tradeNo);
  const found = await findInvoiceByExternalId(db, id, fields.get('out_trade_no') ?? '', now());
  return found.kind === 'found' ? found.invoice.id : null;
}

/** Formats a time such as `2026-09-01 12:00:00`, in UTC. */
function inSeconds(time: UnixMs): string {
  return toIso(time).slice(0, 19).replace('T', ' ');
}
