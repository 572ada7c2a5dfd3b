import { randomUUID } from 'node:crypto';
import autocannon from 'autocannon';
import { drawPrice } from '../prices.ts';

/**
 * As many closed loops as `connections`, without a pause between a response and the next request. One request in `createEvery` is an order.
 */
export type FloodJob = {
  url: string;
  connections: number;
  seconds: number;
  apiKey: string;
  createEvery: number;
  /** The targets of the reads: paths of invoices, with the key, and paths of pages. */
  paths: string[];
};

/**
 * Responses by status. `errors` are broken connections, and requests without a response within 10 s. Latencies of all responses are in
 * milliseconds.
 */
export type FloodResult = {
  seconds: number;
  statuses: Record<string, number>;
  errors: number;
  p50: number;
  p99: number;
};

const CLIENTS = 200;

process.on('message', (job: FloodJob) => {
  flood(job).then(
    (result) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });

async function flood({ url, connections, seconds, apiKey, createEvery, paths }: FloodJob): Promise<FloodResult> {
  const headers = { 'x-api-key': apiKey };
  // Also unique across jobs, because no load creates a million orders per second.
  let order = Date.now() * 1000;
  const create: autocannon.Request = {
    method: 'POST',
    path: '/v1/invoices',
    setupRequest: (request) => {
      const micro = drawPrice(Math.random);
      const amount = `${micro / 1_000_000n}.${String((micro / 10_000n) % 100n).padStart(2, '0')}`;
      order += 1;
      return {
        ...request,
        headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': randomUUID() },
        body: JSON.stringify({ amount, asset: 'USDT', network: 'TRON', externalId: `order-${order}` }),
      };
    },
  };
  const read: autocannon.Request = {
    method: 'GET',
    setupRequest: (request) => ({
      ...request,
      // The service limits page requests per client network.
      headers: { ...headers, 'x-forwarded-for': `198.51.100.${Math.floor(Math.random() * CLIENTS)}` },
      path: paths[Math.floor(Math.random() * paths.length)] ?? '/',
    }),
  };
  const requests = [create, ...Array.from({ length: createEvery - 1 }, () => read)];
  const result = await autocannon({ url, connections, duration: seconds, sampleInt: 100, requests });
  const statuses = Object.entries(result.statusCodeStats ?? {}).map(([status, { count = 0 }]) => [status, count]);
  return {
    seconds: (result.finish.getTime() - result.start.getTime()) / 1000,
    statuses: Object.fromEntries(statuses),
    errors: result.errors,
    p50: result.latency.p50,
    p99: result.latency.p99,
  };
}
