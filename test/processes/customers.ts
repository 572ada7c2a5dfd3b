import { setTimeout as delay } from 'node:timers/promises';
import type { Devnet } from '@quittance/devnet';
import { createPayer } from '@quittance/devnet/payer';
import { Agent, type Dispatcher, request } from 'undici';
import { parseAmount } from '../../src/core/domain/money.ts';
import type { Dice } from './dice.ts';
import type { Shop } from './shop.ts';

/** An order whose creation was answered with 201, with the first answer. */
export type Acknowledged = {
  apiKey: string;
  idempotencyKey: string;
  body: string;
  answer: { invoiceId: string; externalId: string; checkoutUrl: string; expiresAt: string };
};

export type Customers = {
  acknowledged: readonly Acknowledged[];
  /** Violations: different answers to the same request. */
  complaints: readonly string[];
  /** Counts attempts without an answer or with a temporary refusal, which were repeated. */
  retries(): number;
  payments(): number;
  /** Ends after the current orders; the service must be running. */
  stop(): Promise<void>;
  /** Ends immediately. */
  abandon(): void;
};

type Asked = { status: number; body: unknown };

const ATTEMPT_TIMEOUT_MS = 3000;
const RETRY_MS = 50;
/** An order that isn't accepted for this long never will be. */
const GIVE_UP_MS = 120_000;

/**
 * Simulates merchants' servers and their payers, `count` at a time, until stopped. Each creates an invoice, repeating the request with the
 * same key until it's acknowledged, as an integrator must. Then most pay: exactly, twice, one micro-USDT too little, or after the invoice
 * has expired.
 */
export function startCustomers(options: {
  count: number;
  /** A random one is used each time. */
  urls: readonly string[];
  shops: readonly Shop[];
  devnet: Devnet;
  dice: Dice;
  pauseMs: number;
}): Customers {
  const { urls, shops, devnet, dice } = options;
  const agent = new Agent({ keepAliveTimeout: 1000 });
  const payer = createPayer({ nodeUrl: devnet.url, privateKey: devnet.payer.privateKey });
  const acknowledged: Acknowledged[] = [];
  const complaints: string[] = [];
  const counts = { orders: 0, retries: 0, payments: 0 };
  const late: { dueMs: number; apiKey: string; invoiceId: string }[] = [];
  const abandoning = new AbortController();
  let isStopping = false;

  const ask = async (path: string, apiKey: string, order?: { key: string; body: string }): Promise<Asked | null> => {
    const signal = AbortSignal.any([abandoning.signal, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)]);
    const headers = { 'x-api-key': apiKey };
    const init =
      order === undefined
        ? { headers }
        : {
            method: 'POST' as const,
            headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': order.key },
            body: order.body,
          };
    try {
      const { statusCode, body } = await request(dice.pick(urls) + path, { dispatcher: agent, signal, ...init });
      return { status: statusCode, body: await body.json() };
    } catch {
      // Refused, reset or too late: only the next answer shows what happened to the order.
      return null;
    }
  };
  const insist = async (path: string, apiKey: string, order?: { key: string; body: string }): Promise<Asked> => {
    const deadline = performance.now() + GIVE_UP_MS;
    for (;;) {
      const asked = await ask(path, apiKey, order);
      if (asked !== null && asked.status !== 503) return asked;
      counts.retries += 1;
      if (abandoning.signal.aborted || performance.now() > deadline)
        throw new Error(`${path} was not answered for ${GIVE_UP_MS} ms`);
      await delay(RETRY_MS);
    }
  };
  const pay = async (apiKey: string, invoiceId: string): Promise<void> => {
    const { body } = await insist(`/v1/invoices/${invoiceId}?expand=payment`, apiKey);
    const { address, payableAmount } = (body as { payment: { address: string; payableAmount: string } }).payment;
    const amount = parseAmount(payableAmount);
    if (amount.kind !== 'ok') throw new Error(amount.reason);
    const send = (amountMicro: bigint) => {
      counts.payments += 1;
      return payer.transfer({ contract: devnet.usdtContract, to: address, amountMicro });
    };
    if (dice.chance(10)) await send(amount.amountMicro - 1n);
    if (dice.chance(90)) await send(amount.amountMicro);
    if (dice.chance(10)) await send(amount.amountMicro);
  };
  const order = async (): Promise<void> => {
    counts.orders += 1;
    const externalId = `order-${counts.orders}`;
    const amount = `${1 + dice.below(500)}.${10 + dice.below(90)}`;
    const { apiKey, lifetimeMs } = dice.pick(shops);
    const idempotencyKey = `key-${externalId}`;
    const body = JSON.stringify({ amount, asset: 'USDT', network: 'TRON', externalId });
    const { status, body: answer } = await insist('/v1/invoices', apiKey, { key: idempotencyKey, body });
    if (status !== 201) {
      complaints.push(`${externalId} was answered with ${status} ${JSON.stringify(answer)}`);
      return;
    }
    const { invoiceId, checkoutUrl, expiresAt } = answer as Acknowledged['answer'];
    acknowledged.push({ apiKey, idempotencyKey, body, answer: { invoiceId, externalId, checkoutUrl, expiresAt } });
    if (dice.chance(75)) await pay(apiKey, invoiceId);
    else if (dice.chance(50)) late.push({ dueMs: performance.now() + lifetimeMs, apiKey, invoiceId });
  };
  const payLate = async (): Promise<void> => {
    const due = late.findIndex(({ dueMs }) => dueMs < performance.now());
    for (const { apiKey, invoiceId } of due < 0 ? [] : late.splice(due, 1)) await pay(apiKey, invoiceId);
  };
  const live = async (): Promise<void> => {
    while (!isStopping) {
      await payLate()
        .then(order)
        .catch((error: unknown) => complaints.push(`an order failed: ${String(error)}`));
      await delay(options.pauseMs);
    }
  };
  const living = Promise.all(Array.from({ length: options.count }, live));
  return {
    acknowledged,
    complaints,
    retries: () => counts.retries,
    payments: () => counts.payments,
    stop: async () => {
      isStopping = true;
      await living;
      await agent.close();
    },
    abandon: () => {
      isStopping = true;
      abandoning.abort();
    },
  };
}

/** Repeats an acknowledged order with its key, and reads its invoice. Returns everything that has changed. */
export async function compareWithService(url: string, order: Acknowledged): Promise<string[]> {
  const { apiKey, idempotencyKey, body, answer } = order;
  const headers = { 'x-api-key': apiKey };
  const again = { ...headers, 'content-type': 'application/json', 'idempotency-key': idempotencyKey };
  const replay = await untilServed(() => request(`${url}/v1/invoices`, { method: 'POST', headers: again, body }));
  const read = await untilServed(() => request(`${url}/v1/invoices/${answer.invoiceId}`, { headers }));
  const complaints: string[] = [];
  for (const [what, { status, shown }, expected] of [
    ['the same request', replay, 201],
    ['reading', read, 200],
  ] as const) {
    const isSame = Object.entries(answer).every(([name, value]) => shown[name] === value);
    if (status !== expected || !isSame) {
      complaints.push(`${what} of ${answer.externalId} answers ${status} ${JSON.stringify(shown)}`);
    }
  }
  return complaints;
}

/** `503` only means "not now": the database is briefly unavailable, or there is too much load. */
async function untilServed(send: () => Promise<Dispatcher.ResponseData>) {
  for (let attempt = 1; ; attempt += 1) {
    const { statusCode: status, body } = await send();
    const shown = (await body.json()) as Record<string, unknown>;
    if (status !== 503) return { status, shown };
    if (attempt === MAX_ASKED) throw new Error(`it answered 503 ${MAX_ASKED} times`);
    await delay(RETRY_MS);
  }
}

const MAX_ASKED = 100;
