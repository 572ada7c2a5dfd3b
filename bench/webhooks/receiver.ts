import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** `reset` clears the counts. `wait` responds when this many webhooks have arrived since then, not counting the hanging path. */
type ReceiverOrder = { kind: 'reset' } | { kind: 'wait'; count: number } | { kind: 'arrivals' };

/** `firstMs` and `lastMs` are Unix milliseconds with fractions. `arrivals` has the first arrival of each event. */
export type Arrived = { count: number; firstMs: number; lastMs: number };
export type Arrivals = { arrivals: [string, number][] };

/** A webhook receiver in its own process. It returns 204 as soon as it has the body, and never responds on the path /hang. */
const seen = { count: 0, firstMs: 0, lastMs: 0 };
const arrivals = new Map<string, number>();
let wanted = Number.POSITIVE_INFINITY;

const server = createServer((request, response) => {
  const at = performance.timeOrigin + performance.now();
  request.resume();
  if (request.url === '/hang') return;
  request.on('end', () => {
    response.writeHead(204).end();
    seen.count += 1;
    if (seen.count === 1) seen.firstMs = at;
    seen.lastMs = at;
    const id = String(request.headers['webhook-id']);
    if (arrivals.size < 10_000 && !arrivals.has(id)) arrivals.set(id, at);
    if (seen.count === wanted) process.send?.(seen satisfies Arrived);
  });
});
server.keepAliveTimeout = 60_000;

process.on('message', (order: ReceiverOrder) => {
  if (order.kind === 'wait') {
    wanted = order.count;
    if (seen.count >= wanted) process.send?.(seen);
    return;
  }
  if (order.kind === 'arrivals') {
    process.send?.({ arrivals: [...arrivals] } satisfies Arrivals);
    return;
  }
  Object.assign(seen, { count: 0, firstMs: 0, lastMs: 0 });
  arrivals.clear();
  wanted = Number.POSITIVE_INFINITY;
  process.send?.({ done: true });
});
process.on('disconnect', () => process.exit());
// It's reachable at every address of the loopback network, so that each endpoint can have its own host.
server.listen(0, '0.0.0.0', () => process.send?.({ port: (server.address() as AddressInfo).port }));
