import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Payer } from '@quittance/devnet/payer';
import { request } from 'undici';
import { parseAmount } from '../../src/core/domain/money.ts';

/** An invoice that was acknowledged: `body` is what the 201 said, `read` what it showed when it was read next. */
type Acknowledged = { id: string; externalId: string; body: string; read: string | null; isToBePaid: boolean };

export type Load = {
  acknowledged: readonly Acknowledged[];
  /** Payments that the network has accepted. */
  paidCount(): number;
  /** Answers other than 201, by status or error. */
  refusals: ReadonlyMap<string, number>;
  /** When 201 answers came whose requests were sent after `sinceMs`. */
  answersSince(sinceMs: number): number[];
  readNow(invoice: Acknowledged): Promise<string>;
  /** Waits for what is under way. Throws what a worker threw. */
  stop(): Promise<void>;
};

export type LoadOptions = { urls: readonly string[]; apiKey: string; payer: Payer; usdt: string };

const WORKERS = 4;
/** Two processors are shared with six database servers and all else. */
const PAUSE_MS = 120;
const RETRY_MS = 100;
/** Longer than the service takes to say that its database is away. */
const REQUEST_TIMEOUT_MS = 20_000;
const PRICES = [
  '1.00',
  '2.00',
  '5.00',
  '7.50',
  '10.00',
  '12.25',
  '19.99',
  '25.00',
  '49.00',
  '80.00',
  '99.99',
  '150.00',
];

/** Creates invoices without end, as shops that repeat what was not acknowledged under the same key, and pays every third. */
export function startLoad({ urls, apiKey, payer, usdt }: LoadOptions): Load {
  const acknowledged: Acknowledged[] = [];
  const refusals = new Map<string, number>();
  const answers: { sentMs: number; atMs: number }[] = [];
  let [isStopping, paid, turn] = [false, 0, 0];
  const ask = async (path: string, body: object | null, key: string | null) => {
    const url = `${urls[turn++ % urls.length]}${path}`;
    const { statusCode, body: answer } = await request(url, {
      method: body === null ? 'GET' : 'POST',
      headers: {
        'x-api-key': apiKey,
        ...(key === null ? {} : { 'idempotency-key': key, 'content-type': 'application/json' }),
      },
      body: body === null ? null : JSON.stringify(body),
      headersTimeout: REQUEST_TIMEOUT_MS,
      bodyTimeout: REQUEST_TIMEOUT_MS,
    });
    return { status: statusCode, text: await answer.text() };
  };
  /** Repeats until the wanted status; whatever else is answered is counted. */
  const insist = async (status: number, path: string, body: object | null = null): Promise<string> => {
    const key = body === null ? null : randomUUID();
    for (;;) {
      const sentMs = performance.now();
      const seen = await ask(path, body, key).catch((error: Error & { code?: string }) => error.code ?? error.message);
      if (typeof seen !== 'string' && seen.status === status) {
        if (status === 201) answers.push({ sentMs, atMs: performance.now() });
        return seen.text;
      }
      const what = typeof seen === 'string' ? seen : String(seen.status);
      refusals.set(what, (refusals.get(what) ?? 0) + 1);
      if (typeof seen !== 'string' && seen.status !== 503)
        throw new Error(`${path} answered ${seen.status}: ${seen.text}`);
      await delay(RETRY_MS);
    }
  };
  const pay = async (text: string) => {
    const { payment } = JSON.parse(text);
    const amount = parseAmount(payment.payableAmount);
    if (amount.kind !== 'ok') throw new Error(amount.reason);
    await payer.transfer({ contract: usdt, to: payment.address, amountMicro: amount.amountMicro });
    paid += 1;
  };
  const readPath = (id: string) => `/v1/invoices/${id}?expand=payment`;
  const work = async () => {
    while (!isStopping) {
      const count = acknowledged.length;
      const externalId = `order-${randomUUID()}`;
      const amount = PRICES[count % PRICES.length];
      const body = await insist(201, '/v1/invoices', { amount, asset: 'USDT', network: 'TRON', externalId });
      const invoice: Acknowledged = {
        id: JSON.parse(body).invoiceId,
        ...{ externalId, body, read: null, isToBePaid: count % 3 === 0 },
      };
      acknowledged.push(invoice);
      invoice.read = await insist(200, readPath(invoice.id));
      if (invoice.isToBePaid) await pay(invoice.read);
      await delay(PAUSE_MS);
    }
  };
  const workers = Promise.all(Array.from({ length: WORKERS }, work));
  // Told by `stop`.
  workers.catch(() => undefined);
  return {
    acknowledged,
    paidCount: () => paid,
    refusals,
    answersSince: (sinceMs) => answers.filter(({ sentMs }) => sentMs >= sinceMs).map(({ atMs }) => atMs),
    readNow: (invoice) => insist(200, readPath(invoice.id)),
    stop: async () => {
      isStopping = true;
      await workers;
    },
  };
}
