import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { drawPrice } from '../prices.ts';

/** Alternates between creations and page reads at a steady rate, each on its own connection. */
export type HonestJob = { url: string; from: string; perSecond: number; seconds: number; apiKey: string };

/** For creations and pages: responses by status (`none` without a response), and the latencies of all of them in milliseconds. */
export type HonestResult = Record<'creations' | 'pages', { statuses: Record<string, number>; latencies: number[] }>;

const LIMIT_MS = 10_000;

/** The newest invoice. The warm-up run, which isn't counted, creates the first one. */
let page = '/c/none';

process.on('message', (job: HonestJob) => {
  ask(job).then(
    (result) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });

async function ask({ url, from, perSecond, seconds, apiKey }: HonestJob): Promise<HonestResult> {
  const result: HonestResult = {
    creations: { statuses: {}, latencies: [] },
    pages: { statuses: {}, latencies: [] },
  };
  const underWay: Promise<void>[] = [];
  for (let number = 0; number < seconds * perSecond; number += 1) {
    const isCreation = number % 2 === 0;
    const of = result[isCreation ? 'creations' : 'pages'];
    const startedMs = performance.now();
    const answer = isCreation
      ? exchange({ url, from, path: '/v1/invoices', order: newOrder(), apiKey })
      : exchange({ url, from, path: page });
    const count = answer.then(({ status, body }) => {
      of.statuses[status] = (of.statuses[status] ?? 0) + 1;
      of.latencies.push(performance.now() - startedMs);
      if (status === '201') page = new URL(JSON.parse(body).checkoutUrl).pathname;
    });
    underWay.push(count);
    await delay(1000 / perSecond);
  }
  await Promise.all(underWay);
  return result;
}

type Exchange = { url: string; from: string; path: string; order?: string; apiKey?: string };

function exchange({ url, from, path, order, apiKey }: Exchange): Promise<{ status: string; body: string }> {
  const headers: Record<string, string> =
    order === undefined
      ? {}
      : { 'x-api-key': apiKey ?? '', 'idempotency-key': randomUUID(), 'content-type': 'application/json' };
  const options = { method: order === undefined ? 'GET' : 'POST', localAddress: from, agent: false, headers };
  return new Promise((resolve) => {
    const sent = request(url + path, { ...options, signal: AbortSignal.timeout(LIMIT_MS) }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (text) => {
        body += text;
      });
      response.on('error', () => resolve({ status: 'none', body }));
      response.on('end', () => resolve({ status: String(response.statusCode), body }));
    });
    sent.on('error', () => resolve({ status: 'none', body: '' }));
    sent.end(order);
  });
}

function newOrder(): string {
  const micro = drawPrice(Math.random);
  const amount = `${micro / 1_000_000n}.${String((micro / 10_000n) % 100n).padStart(2, '0')}`;
  return JSON.stringify({ amount, asset: 'USDT', network: 'TRON', externalId: `order-${randomUUID()}` });
}
