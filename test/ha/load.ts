import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Payer } from '@quittance/devnet/payer';
import { request } from 'undici';
import { parseAmount } from '../../src/core/domain/money.ts';

/** An acknowledged invoice. `body` is the content of the 201, `read` what the next read returned. */
type Acknowledged = { id: string; externalId: string; body: string; read: string | null; isToBePaid: boolean };

export type Load = {
  acknowledged: readonly Acknowledged[];
  /** Counts the payments accepted by the network. */
  paidCount(): number;
  /** Answers other than 201, by status or error. */
  refusals: ReadonlyMap<string, number>;
  /** Returns when 201 answers arrived whose requests were sent after `sinceMs`. */
  answersSince(sinceMs: number): number[];
  readNow(invoice: Acknowledged): Promise<string>;
  /** Waits for requests in progress. Rethrows a worker's error. */
  stop(): Promise<void>;
};

export type LoadOptions = { urls: readonly string[]; apiKey: string; payer: Payer; usdt: string };

const WORKERS = 4;
/** The two processors are shared with six database servers and everything else. */
const PAUSE_MS = 120;
const RETRY_MS = 100;
/** Longer than the service takes to report that its database is unavailable. */
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

/** Creates invoices continuously, like shops that repeat unacknowledged requests with the same key, and pays every third. */
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
  /** Repeats a request until it gets the expected status, and counts all other answers. */
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
  // `stop` reports the error.
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
