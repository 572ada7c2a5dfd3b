import { hash } from 'node:crypto';
import { assertNever } from '../domain/assert-never.ts';
import type { Network } from '../domain/network.ts';
import type { AdapterOrder, CallbackOrder } from '../store/outbox/adapter-orders.ts';
import { failedAttempt, type SendDeps, type SendResult } from './send.ts';
import { isSameText, parseSecret } from './sign.ts';
import { targetRule } from './target.ts';

/** The part of an event that a callback uses. */
type Event = {
  data: {
    invoiceId: string;
    externalId: string;
    status: string;
    payment: { payableAmount: string; address: string; transaction: { txId: string } | null };
  };
};

type Told = { network: Network; body: string; order: CallbackOrder; secrets: readonly string[] };

/**
 * Makes one attempt to notify a shop, in the form that the shop's system expects. For a payment, the response must contain the system's
 * acknowledgement. For an expired order, any 2xx is enough.
 */
export async function sendCallback({ sender, localTargets }: SendDeps, told: Told, nowMs: number): Promise<SendResult> {
  const [stored] = told.secrets;
  if (stored === undefined) throw new Error('the adapter has no secret');
  const { data } = JSON.parse(told.body) as Event;
  if (told.order.isPaid && data.status === 'EXPIRED') return OVERTAKEN;
  const { fields, numbers } = listFields(told.order, data);
  // New orders like this are refused, but this order is older than that rule.
  for (const [name, value] of fields) {
    const started = startedField(value);
    if (started === null) continue;
    const reason = `${name} contains "&${started}=", so the signed text would be ambiguous`;
    return failedAttempt(null, `unsigned: ${reason.slice(0, 200)}`, 0);
  }
  return sender.send({
    ...describeCallback(told.order, { fields, numbers }, adapterSecret(stored)),
    rule: targetRule(told.network, localTargets),
    nowMs,
    ...(data.status === 'PAID' && { refuse: refuseOtherWords }),
  });
}

/** A shop that sees the callback of an expired order after the one of its payment would take the paid order for expired. */
const OVERTAKEN: SendResult = {
  ...{ kind: 'delivered', status: null, latencyMs: 0 },
  answer: Buffer.from('not sent, because the order was paid in the meantime'),
};

/** epusdt expects `ok` and EPay `success`; each accepts both. PHP may add whitespace and a byte order mark. */
function refuseOtherWords(answer: Uint8Array): string | null {
  const word = Buffer.from(answer).toString('utf8').replace('\uFEFF', '').trim().toLowerCase();
  return word === 'ok' || word === 'success' ? null : NOT_TAKEN;
}

const NOT_TAKEN = 'not_acknowledged: the receiver returned 2xx, but without the expected word (ok, success)';

type Listed = {
  fields: ReadonlyMap<string, string>;
  /** The names of fields that are numbers in JSON. */
  numbers: readonly string[];
};

/** Lists a callback's fields without the signature. Only BEpusdt has a callback for an expired order. */
function listFields(order: AdapterOrder, { payment, ...data }: Event['data']): Listed {
  const { dialect, amount } = order;
  if (data.status !== 'PAID' && !(data.status === 'EXPIRED' && dialect === 'bepusdt')) {
    throw new Error(`${dialect} has no callback for ${data.status}`);
  }
  const { address, transaction, payableAmount } = payment;
  if (data.status === 'PAID' && transaction === null) throw new Error('the payment event has no transaction');
  const ids = [['trade_id', data.invoiceId] as const, ['order_id', data.externalId] as const];
  const amounts = [['amount', asNumber(amount)] as const, ['actual_amount', asNumber(payableAmount)] as const];
  const hash = ['block_transaction_id', (data.status === 'PAID' && transaction?.txId) || ''] as const;
  const status = ['status', data.status === 'PAID' ? '2' : '3'] as const;
  const numbers = ['amount', 'actual_amount', 'status'];
  switch (dialect) {
    case 'epusdt':
      return { fields: new Map([...ids, ['token', address], hash, ...amounts, status]), numbers };
    case 'bepusdt':
      return { fields: new Map([...ids, ['token', address], hash, ...amounts, status]), numbers: ['amount', 'status'] };
    case 'gmpay': {
      const coin = [['receive_address', address] as const, ['token', 'USDT'] as const];
      return { fields: new Map([['pid', PID], ...ids, ...coin, hash, ...amounts, status]), numbers };
    }
    case 'epay':
      return { fields: epayFields(order, data), numbers: [] };
    default:
      return assertNever(dialect);
  }
}

function epayFields({ amount, name, type, param }: AdapterOrder, data: Omit<Event['data'], 'payment'>) {
  return new Map<string, string>([
    ...[['pid', PID] as const, ['trade_no', data.invoiceId] as const, ['out_trade_no', data.externalId] as const],
    ...[['type', type ?? 'usdt'] as const, ['name', name ?? data.externalId] as const, ['money', amount] as const],
    ...[['trade_status', 'TRADE_SUCCESS'] as const, ...(param === null ? [] : [['param', param] as const])],
  ]);
}

/** Builds the signed request: a GET for EPay, a JSON POST for all others. */
function describeCallback({ dialect, notifyUrl }: AdapterOrder, { fields, numbers }: Listed, secret: string) {
  const signature = signFields(fields, secret);
  if (dialect === 'epay') {
    const link = notifyUrl.includes('?') ? '&' : '?';
    const query = new URLSearchParams([...fields, ['sign', signature], ['sign_type', 'MD5']]);
    return { method: 'GET', url: `${notifyUrl}${link}${query}`, headers: {}, body: new Uint8Array() } as const;
  }
  // Numbers are written exactly as they were signed, which a JSON serialiser can't guarantee.
  const members = [...fields, ['signature', signature] as const].map(
    ([name, value]) => `"${name}":${numbers.includes(name) ? value : JSON.stringify(value)}`,
  );
  const headers = { 'content-type': 'application/json' };
  return { method: 'POST', url: notifyUrl, headers, body: Buffer.from(`{${members.join(',')}}`) } as const;
}

/** A request's fields as text, by name. */
export type Fields = ReadonlyMap<string, string>;

/** The signature itself, and the field that says how it was made. */
const UNSIGNED = new Set(['signature', 'sign', 'sign_type']);

/**
 * Returns the signature that epusdt and EPay use: the MD5 of `a=1&b=2` followed by the secret. The fields are sorted by name; empty ones
 * are left out, and nothing is percent-encoded. These protocols offer nothing better; docs/guides/adapters.md explains how weak this is.
 */
function signFields(fields: Fields, secret: string): string {
  const parts = [...fields]
    .filter(([name, value]) => !UNSIGNED.has(name) && value !== '')
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`);
  return hash('md5', parts.join('&') + secret, 'hex');
}

/**
 * Returns the name of a field that would start within a value if the signed text were split again: `x&money=1` would start `money`. If this
 * returns `null` for all values, splitting the signed text at each `&` that starts a field returns the signed fields. `isField` says which
 * names count.
 */
export function startedField(value: string, isField: (name: string) => boolean = () => true): string | null {
  for (const [, name = ''] of value.matchAll(/&([^&=]*)=/g)) if (isField(name)) return name;
  return null;
}

/** Whether fields have this signature. Shops write the signature in upper or lower case. */
export function isSigned(fields: Fields, signature: string, secret: string): boolean {
  return isSameText(signature.toLowerCase(), signFields(fields, secret));
}

/** Converts a stored endpoint secret (`whsec_…`) to the form that an adapter's shop uses. */
export function adapterSecret(stored: string): string {
  return parseSecret(stored).toString('latin1');
}

/** The shop number that these systems require. The URL already identifies the adapter, so the number is the same for all. */
export const PID = '1000';

/** Formats a decimal like a number in a program: `100.50` becomes `100.5`. */
export function asNumber(decimal: string): string {
  return decimal.includes('.') ? decimal.replace(/\.?0+$/, '') : decimal;
}
