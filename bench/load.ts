import { randomUUID } from 'node:crypto';
import autocannon from 'autocannon';
import { drawPrice } from './prices.ts';

/** One period of load: as many requests as `connections` closed loops complete in `seconds`. */
export type LoadJob = { url: string; connections: number; seconds: number; headers: Record<string, string> } & (
  | { kind: 'create' }
  | { kind: 'read'; paths: string[] }
);

/** Latencies are in milliseconds. `unexpected` counts errors, timeouts and every status except 201 and 200. */
export type LoadResult = { requests: number; seconds: number; p50: number; p99: number; unexpected: number };

/** A separate process that runs the jobs sent to it, one after the other. */
process.on('message', (job: LoadJob) => {
  run(job).then(
    (result) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });

async function run(job: LoadJob): Promise<LoadResult> {
  const { url, connections, seconds, headers } = job;
  const result = await autocannon({
    url,
    connections,
    duration: seconds,
    sampleInt: 100,
    headers,
    requests: [job.kind === 'create' ? creating() : reading(job.paths)],
  });
  const expected = result.statusCodeStats?.[job.kind === 'create' ? '201' : '200']?.count ?? 0;
  return {
    requests: expected,
    seconds: (result.finish.getTime() - result.start.getTime()) / 1000,
    p50: result.latency.p50,
    p99: result.latency.p99,
    unexpected: result.errors + result.timeouts + (result.requests.total - expected),
  };
}

/** Each request is a new order: a random key, the shop's next order number, and a realistic price. */
function creating(): autocannon.Request {
  // Also unique across jobs, because no load creates a million orders per second.
  let order = Date.now() * 1000;
  return {
    method: 'POST',
    setupRequest: (request) => {
      const micro = drawPrice(Math.random);
      const amount = `${micro / 1_000_000n}.${String((micro / 10_000n) % 100n).padStart(2, '0')}`;
      order += 1;
      return {
        ...request,
        headers: { ...request.headers, 'content-type': 'application/json', 'idempotency-key': randomUUID() },
        body: JSON.stringify({ amount, asset: 'USDT', network: 'TRON', externalId: `order-${order}` }),
      };
    },
  };
}

function reading(paths: string[]): autocannon.Request {
  return {
    method: 'GET',
    setupRequest: (request) => ({ ...request, path: paths[Math.floor(Math.random() * paths.length)] ?? '' }),
  };
}
