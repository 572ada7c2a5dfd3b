import { setTimeout as delay } from 'node:timers/promises';
import { retryableError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import { createSemaphore, unlessAborted } from '../../runtime/concurrency.ts';
import type { Node } from './node.ts';
import { ALONE, createNodePause, type NodePause } from './node-pause.ts';
import type { NodePool } from './node-pool.ts';

/** If a node accepts only a few requests per second, the watcher has to wait for at most this many requests of the long-running work. */
const AT_ONCE = 2;
/** The pause before each request. It limits the rate to 40 requests per second, which is about 30 blocks and a quarter of a CPU core. */
const REST_MS = 50;
/** No user is waiting for the answer, so the timeout can be as long as if there were only one node. */
const TIMEOUT_MS = 10_000;
const DAY_MS = 24 * 60 * 60_000;
/** Following a chain takes 75,000 requests per day, and payers' lookups take at most 17,340. */
const NEEDED_A_DAY = 92_340;

/**
 * Returns a view of the pool for long-running work that can wait, while a watcher that can't wait uses the same nodes. It makes few
 * concurrent requests, and leaves enough of a node's daily limit for the watcher and payers until midnight (UTC). A wrong answer pauses the
 * node only for this work. `signal` aborts pending requests and rejects all later ones, with its reason.
 */
export function poolShare(pool: NodePool, { signal, now }: { signal: AbortSignal; now(): UnixMs }): NodePool {
  const inTurn = createSemaphore(AT_ONCE);
  const pauses = new Map<string, NodePause>();
  const clockMs = () => performance.now();
  const pausedMs = ({ origin }: Node) => pauses.get(origin)?.remainingMs() ?? 0;
  const shareOf = (node: Node): Node => ({
    ...node,
    ask: (question, call) =>
      inTurn(async () => {
        await delay(REST_MS, undefined, { signal });
        leaveOthersTheirs(node, now());
        // The questions are optional, because a node without history isn't to blame if it can't answer them.
        return unlessAborted(signal, () => node.ask(question, { timeoutMs: TIMEOUT_MS, ...call, isOptional: true }));
      }),
  });
  return {
    ...pool,
    available: async () => {
      const nodes = await unlessAborted(signal, () => pool.available());
      if (nodes.every((node) => pausedMs(node) > 0)) {
        for (const pause of pauses.values()) pause.shorten(ALONE.longestMs);
      }
      return nodes.filter((node) => pausedMs(node) === 0).map(shareOf);
    },
    report: ({ origin }) => {
      const pause = pauses.get(origin) ?? createNodePause({ clockMs, random: Math.random });
      pauses.set(origin, pause);
      pause.fail({ kind: 'report', sentMs: clockMs(), costMs: 0, askedMs: null, isAlone: false });
    },
    praise: ({ origin }) => void pauses.get(origin)?.praise(),
  };
}

function leaveOthersTheirs({ origin, requestsLeft }: Node, now: UnixMs): void {
  const left = requestsLeft();
  const needed = Math.ceil((NEEDED_A_DAY * (DAY_MS - (now % DAY_MS))) / DAY_MS);
  if (left === null || left > needed) return;
  const message = `${origin} was not queried: its last ${left} requests for today are reserved for the watcher and for payers; try again tomorrow (UTC), or add a node`;
  throw retryableError('NODE_REFUSED', message);
}
