import { createHmac } from 'node:crypto';
import { assertNever } from '../../core/domain/assert-never.ts';
import { readLink } from '../../core/domain/brand/brand.ts';
import { formatOptions } from '../../core/domain/invoice-options.ts';
import { type MicroUsdt, microUsdt, parseAmount } from '../../core/domain/money.ts';
import type { Network } from '../../core/domain/network.ts';
import { isCurrentRate, readRateSource } from '../../core/domain/price.ts';
import type { UnixMs } from '../../core/domain/time.ts';
import { parseUrl } from '../../core/domain/url.ts';
import { createOrder, findEarlier, type Ordered } from '../../core/payments/create-invoice.ts';
import { findInvoicePayment } from '../../core/store/ledger/payments.ts';
import { type Dialect, findAdapterOrder, insertAdapterOrder } from '../../core/store/outbox/adapter-orders.ts';
import { asNumber, startedField } from '../../core/webhooks/adapter-dialect.ts';
import { checkTarget, targetRule } from '../../core/webhooks/target.ts';
import { clocksApart, problemOf } from '../web/problem.ts';
import type { AdapterDeps, Admitted } from './authenticate.ts';
import { CODES, notHere, Refusal } from './refusal.ts';

/** An order as the shop sent it, in a form that doesn't depend on the dialect. Absent fields are empty strings. */
type Asked = {
  dialect: Dialect;
  orderId: string;
  amount: string;
  notifyUrl: string;
  returnUrl: string;
  name: string;
  type: string;
  param: string;
  /** The order's lifetime in seconds. Only BEpusdt sends it. */
  timeout: string;
};

/**
 * Creates the invoice for an order, or returns the existing one if the same order was sent before with the same fields. The USDT amount
 * always stays the one from the first request, whatever the rate is now. Throws `Refusal`.
 */
export async function createAdaptedOrder(deps: AdapterDeps, { adapter, rule, secret }: Admitted, asked: Asked) {
  const requestedMicro = readAmount(asked, adapter);
  const order = readOrder(asked, adapter.network, deps.localTargets);
  const { timeout } = asked;
  // Only this adapter can create keys with this prefix, so if the key exists, it's the same order.
  const digest = createHmac('sha256', secret)
    .update(JSON.stringify([asked.orderId, order, ...(timeout === '' ? [] : [timeout])]))
    .digest('hex');
  const idempotencyKey = `adapter:${adapter.id}:${digest}`;
  const { projectId } = adapter;
  const options = readLifetime(timeout, rule.invoiceLifetimeMs / 1000);
  const input = { ...rule, keyId: rule.id, idempotencyKey, externalId: asked.orderId, requestedMicro, options };
  const refusal = refuseNew(adapter, deps.now());
  const created = refusal === null ? await createOrder(deps, input) : await findEarlier(deps, input);
  if (created === null) throw refusal;
  const invoiceId = await invoiceOf(created, deps, { projectId, network: adapter.network, requestedMicro });
  // Store the order before the shop learns about the invoice. If the process dies here, the shop's next attempt gets the same invoice.
  await insertAdapterOrder(deps.db, { ...order, invoiceId, projectId, endpointId: adapter.id, createdAt: deps.now() });
  const payment = await findInvoicePayment(deps.db, projectId, invoiceId);
  if (payment === null) throw new Error(`invoice ${invoiceId} disappeared, although invoices are never deleted`);
  return payment;
}

/** PHP prints at most 14 significant digits of a number, and shops sign the printed text. */
const MAX_DIGITS = 14;

/** The shortest possible invoice lifetime. */
const LEAST_SECONDS = 300;

/**
 * Returns the lifetime to use, or `null` for the project's default. As in BEpusdt, a value that the project doesn't allow (including 0) is
 * ignored, and the response contains the actual lifetime.
 */
function readLifetime(timeout: string, mostSeconds: number): string | null {
  if (!/^[0-9]{0,9}$/.test(timeout)) {
    throw new Refusal(
      CODES.fields,
      `timeout is ${JSON.stringify(timeout.slice(0, 30))}: send whole seconds, such as 1200`,
    );
  }
  const expiresInSeconds = Number(timeout);
  const isAllowed = expiresInSeconds >= LEAST_SECONDS && expiresInSeconds <= mostSeconds;
  return isAllowed ? formatOptions({ expiresInSeconds }) : null;
}

function readAmount({ amount }: Asked, adapter: Admitted['adapter']): MicroUsdt {
  const parsed = parseAmount(amount);
  if (parsed.kind === 'invalid') throw new Refusal(CODES.amount, `invalid payment amount: it ${parsed.reason}`);
  if (asNumber(amount).replace('.', '').length > MAX_DIGITS) {
    throw new Refusal(CODES.amount, `invalid payment amount: it must have at most ${MAX_DIGITS} digits`);
  }
  const requestedMicro = exchange(parsed.amountMicro, adapter.readMicro ?? adapter.rateMicro);
  if (requestedMicro !== null) return requestedMicro;
  throw new Refusal(
    CODES.amount,
    'invalid payment amount: it must be worth at least 0.01 and less than 100000000 USDT',
  );
}

/** Returns why a new order is refused (callbacks are disabled, or no current rate is known), or `null`. */
function refuseNew({ disabledAt, rateSource, readAt }: Admitted['adapter'], now: UnixMs): Refusal | null {
  if (disabledAt !== null) {
    return new Refusal(
      CODES.system,
      'the adapter accepts no orders because its callbacks are disabled, so Quittance could not notify the shop of the payment. The operator can run "quittance webhook enable" with the adapter\'s id',
    );
  }
  if (rateSource === null || (readAt !== null && isCurrentRate(readAt, readRateSource(rateSource), now))) return null;
  return new Refusal(
    CODES.rate,
    'rate calculation failed: the last known rate is too old, so the adapter accepts no orders. Try again later. The operator can see why with "quittance adapter list" and "quittance chain status"',
  );
}

function readOrder(asked: Asked, network: Network, localTargets: boolean) {
  const { dialect, orderId, amount, name, type, param } = asked;
  const length = [...orderId].length;
  if (length < 1 || length > 200) throw new Refusal(CODES.fields, 'the order id must have 1 to 200 characters');
  for (const [field, value, most] of [
    ['name', name, 500],
    ['type', type, 50],
    ['param', param, 500],
  ] as const) {
    if ([...value].length > most) throw new Refusal(CODES.fields, `${field} must have at most ${most} characters`);
  }
  refuseUntellable(asked);
  const urls = {
    notifyUrl: readNotifyUrl(asked.notifyUrl, network, localTargets),
    returnUrl: readReturn(asked.returnUrl),
  };
  return { dialect, amount, ...urls, name: name || null, type: type || null, param: param || null };
}

/** Refuses texts that would make the signed text of a callback ambiguous, because a shop could then parse it in two ways. */
function refuseUntellable({ dialect, orderId, name, type, param }: Asked): void {
  const isEpay = dialect === 'epay';
  const told = isEpay ? { out_trade_no: orderId, name, type, param } : { order_id: orderId };
  for (const [field, value] of Object.entries(told)) {
    const started = startedField(value);
    if (started === null) continue;
    throw new Refusal(
      CODES.fields,
      `failed to parse request params: ${field} contains "&${started.slice(0, 64)}=", so the callback's signed text would be ambiguous: remove the "&" or the "=" from ${field}`,
    );
  }
}

/** Reads the callback URL. The rules for webhook targets are applied here, and again at each connection. */
function readNotifyUrl(text: string, network: Network, localTargets: boolean): string {
  const refuse = (reason: string) => new Refusal(CODES.notifyUrl, `invalid notify url: ${reason}`);
  const url = /^https?:\/\/[^/\\\s]/i.test(text) ? parseUrl(text) : null;
  if (url === null) throw refuse('it is not an https:// URL');
  if (url.hash !== '') throw refuse('it has a fragment, which is never sent');
  if (url.href.length > 2048) throw refuse('it has more than 2048 characters');
  const check = checkTarget(url, targetRule(network, localTargets));
  if (check.kind === 'refused') throw refuse(check.reason);
  return url.href;
}

/** Reads the link back to the shop. Braces are encoded, because the page would replace `{…}` with the invoice id. */
function readReturn(text: string): string | null {
  if (text === '') return null;
  const link = readLink(text);
  const encoded = link.kind === 'ok' ? readLink(link.url.replaceAll('{', '%7B').replaceAll('}', '%7D')) : link;
  if (encoded.kind === 'ok') return encoded.url;
  throw new Refusal(CODES.returnUrl, `invalid order redirect url: it ${encoded.reason}`);
}

type Concerned = { projectId: string; network: Network; requestedMicro: MicroUsdt };

async function invoiceOf(created: Ordered, deps: AdapterDeps, concerned: Concerned): Promise<string> {
  switch (created.kind) {
    case 'created':
    case 'replayed':
      return created.invoice.id;
    case 'conflict':
      // The shop sent the same order again, at a different rate.
      if (created.rule === 'idempotencyKey') return created.existing.id;
      throw new Refusal(CODES.orderExists, 'order already exists with different fields: use a new order id');
    case 'amount-unavailable':
      await deps.onAmountRefused(concerned);
      throw new Refusal(CODES.noFreeAmount, 'no available amount channel: the operator must add an address');
    case 'limited':
      await deps.onUnpaidRefused({ ...concerned, ...created });
      throw new Refusal(CODES.noFreeAmount, `too many unpaid orders: retry in ${created.retryAfterSeconds} s`);
    case 'unwatched':
      throw new Refusal(CODES.network, 'chain is not enabled: the operator must set or correct its nodes');
    case 'clocks-apart':
      throw clocksApart(created.problem);
    case 'rule-not-signed':
      throw problemOf('rule-not-signed');
    case 'project-archived':
      throw new Refusal(CODES.system, 'the project is archived: it accepts no new orders');
    case 'key-not-valid':
      throw notHere();
    default:
      return assertNever(created);
  }
}

/** One cent in USDT. Requested amounts are whole cents, because payers type them; the payable amount's tail comes after the cents. */
const CENT = 10_000n;
const ONE_USDT = 1_000_000n;
/**
 * From 0.01 to below 100,000,000 USDT. With the tail, such an amount has at most 14 digits, so programs that parse it as a float keep every
 * digit.
 */
const BOUNDS = { least: CENT, below: 100_000_000n * ONE_USDT };

/**
 * Converts an amount in another currency to USDT, rounded up to a whole cent, so that merchants never get less than they asked for.
 * `rateMicro` is the price of one USDT in that currency. Both arguments are in millionths. Returns `null` if the result is below 0.01 USDT,
 * or not below 100,000,000 USDT.
 */
export function exchange(amountMicro: bigint, rateMicro: bigint): MicroUsdt | null {
  if (amountMicro < 0n || rateMicro <= 0n) throw new RangeError('an amount or a rate is not positive');
  const cents = ceiling(amountMicro * ONE_USDT, rateMicro * CENT);
  const exchanged = cents * CENT;
  return exchanged >= BOUNDS.least && exchanged < BOUNDS.below ? microUsdt(exchanged) : null;
}

function ceiling(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

/** Finds an order of this adapter with its invoice (UUID). Throws `Refusal`. */
export async function findOrder({ db }: AdapterDeps, { id, projectId }: Admitted['adapter'], invoiceId: string | null) {
  const order = invoiceId === null ? null : await findAdapterOrder(db, projectId, invoiceId, id);
  const invoice = order === null ? null : await findInvoicePayment(db, projectId, order.invoiceId);
  if (order === null || invoice === null) throw new Refusal(CODES.noOrder, 'order does not exist');
  return { order, invoice };
}
