import { assertNever } from '../domain/assert-never.ts';
import type { Network } from '../domain/network.ts';
import type { AdapterOrder } from '../store/outbox/adapter-orders.ts';
import { adapterSecret, asNumber, PID, signFields } from './adapter-signature.ts';
import type { SendResult } from './send.ts';
import type { SendDeps } from './send-signed.ts';
import { targetRule } from './target.ts';

/** The part of an event `invoice.paid` that a callback tells. */
type Paid = {
  data: {
    invoiceId: string;
    externalId: string;
    status: string;
    payment: { payableAmount: string; address: string; transaction: { txId: string } };
  };
};

type Told = { network: Network; body: string; order: AdapterOrder; secrets: readonly string[] };

/** Tells a shop of a payment in the form of its system, once. Delivered is an answer that says so, as those systems have it. */
export async function sendCallback({ sender, localTargets }: SendDeps, told: Told, nowMs: number): Promise<SendResult> {
  const [stored] = told.secrets;
  if (stored === undefined) throw new Error('an adapter has no secret');
  return sender.send({
    ...describeCallback(told.order, told.body, adapterSecret(stored)),
    rule: targetRule(told.network, localTargets),
    nowMs,
    isTaken,
  });
}

/** `ok` is the word of epusdt, `success` that of EPay; each takes the other's. PHP writes blanks and a byte order mark around it. */
function isTaken(answer: Uint8Array): boolean {
  const word = Buffer.from(answer).toString('utf8').replace('\uFEFF', '').trim().toLowerCase();
  return word === 'ok' || word === 'success';
}

/** The request that tells of a payment. `body`: of the event. */
function describeCallback(order: AdapterOrder, body: string, secret: string) {
  const { data } = JSON.parse(body) as Paid;
  if (data.status !== 'PAID') throw new Error(`a callback is only for what is paid, not for ${data.status}`);
  const { dialect } = order;
  switch (dialect) {
    case 'epusdt':
    case 'gmpay':
      return { method: 'POST', url: order.notifyUrl, ...jsonCallback(order, data, secret) } as const;
    case 'epay': {
      const link = order.notifyUrl.includes('?') ? '&' : '?';
      const query = new URLSearchParams([...epayFields(order, data, secret)]);
      return { method: 'GET', url: `${order.notifyUrl}${link}${query}`, headers: {}, body: new Uint8Array() } as const;
    }
    default:
      return assertNever(dialect);
  }
}

/** epusdt, and its successor, in which `token` is the currency and no longer the address. */
function jsonCallback({ dialect, amount }: AdapterOrder, { payment, ...data }: Paid['data'], secret: string) {
  const { address, transaction, payableAmount } = payment;
  const texts = new Map([
    ...(dialect === 'gmpay' ? ([['pid', PID]] as const) : []),
    ['trade_id', data.invoiceId],
    ['order_id', data.externalId],
    ...(dialect === 'gmpay' ? ([['receive_address', address]] as const) : []),
    ['token', dialect === 'gmpay' ? 'USDT' : address],
    ['block_transaction_id', transaction.txId],
  ] as const);
  const numbers = new Map([
    ['amount', asNumber(amount)],
    ['actual_amount', asNumber(payableAmount)],
    ['status', '2'],
  ]);
  const signature = signFields(new Map<string, string>([...texts, ...numbers]), secret);
  // Numbers are written as they were signed: a JSON writer has none that are exact.
  const members = [
    ...[...texts, ['signature', signature] as const].map(([name, value]) => `"${name}":${JSON.stringify(value)}`),
    ...[...numbers].map(([name, value]) => `"${name}":${value}`),
  ];
  return { headers: { 'content-type': 'application/json' }, body: Buffer.from(`{${members.join(',')}}`) };
}

function epayFields({ amount, name, type, param }: AdapterOrder, data: Paid['data'], secret: string) {
  const fields = new Map<string, string>([
    ...[['pid', PID] as const, ['trade_no', data.invoiceId] as const, ['out_trade_no', data.externalId] as const],
    ...[['type', type ?? 'usdt'] as const, ['name', name ?? data.externalId] as const, ['money', amount] as const],
    ...[['trade_status', 'TRADE_SUCCESS'] as const, ...(param === null ? [] : [['param', param] as const])],
  ]);
  return fields.set('sign', signFields(fields, secret)).set('sign_type', 'MD5');
}
