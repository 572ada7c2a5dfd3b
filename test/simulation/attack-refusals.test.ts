import { afterEach, expect, test } from 'vitest';
import type { NodeClient, NodeClientOptions } from '../../src/core/chain/nodes/client.ts';
import { createNodePool } from '../../src/core/chain/nodes/node-pool.ts';
import { AppError } from '../../src/core/domain/errors.ts';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { longTest, someCases } from '../support/some-cases.ts';
import { createAttackChain, directTransfer, innerTransfer, SLOT_MS } from './attack-chain.ts';
import { type AttackNode, createAttackNode } from './attack-node.ts';
import { type AttackWorld, createAttackWorld } from './attack-world.ts';

const MISSED_BLOCKS = 400;
const STRANGER = '33'.repeat(20);
/** A provider's answer that refuses further requests, or this method. Each would pause the node for two minutes. */
const RETRY_AFTER_MS = 120_000;

let world: AttackWorld | null = null;
afterEach(async () => {
  await world?.stop();
  world = null;
});

/** A node's answer instead of the truth: a rate limit, or none because it's down; `null` means the truth. */
type Refuses = (index: number, path: string) => 'limit' | 'away' | null;

/** Creates a pool as in a process, with all budgets and pauses. */
function poolOver(nodes: readonly AttackNode[], refuses: Refuses) {
  const createClient = ({ spec }: NodeClientOptions): NodeClient => {
    const index = nodes.findIndex(({ origin }) => spec.url.endsWith(origin));
    const node = nodes[index];
    if (node === undefined) throw new Error(`there is no node ${spec.url}`);
    return {
      ...{ origin: node.origin, hasBytes: false, hasTwin: false, hasJsonRpc: true, close: async () => undefined },
      ask: async (question, call = {}) => {
        const refusal = refuses(index, question.http.path);
        if (refusal !== null) {
          const reason = refusal === 'limit' ? 'HTTP 429: too many requests' : 'connect ECONNREFUSED';
          const usual = { mayBeTheQuestion: false, late: null, isTooLarge: false };
          const retryAfterMs = refusal === 'limit' ? RETRY_AFTER_MS : null;
          call.onOutcome?.({ kind: 'refused', reason, retryAfterMs, ...usual });
          throw new AppError('NODE_REFUSED', reason, { retryable: true });
        }
        const answer = await node.ask(question);
        call.onOutcome?.({ kind: 'ok' });
        return answer;
      },
    };
  };
  return createNodePool({
    network: 'nile',
    nodes: nodes.map(({ origin, operator }) => unlimitedNode(`http://${origin}`, operator)),
    now: () => unixMs(performance.now()),
    log: createLogger({ level: 'silent' }),
    metrics: createMetrics(),
    blockMs: SLOT_MS,
    clockMs: () => performance.now(),
    random: () => 0.5,
    createClient,
  });
}

const traffic = () => [directTransfer(STRANGER, 7n), innerTransfer('44'.repeat(20), 5n)];

type Case = { path: string; operators: number; by: number; agreement: number };

/** Methods with a substitute, however many nodes refuse them; and others, as long as one operator offers them. */
const CASES: Case[] = [
  ...['/jsonrpc', '/wallet/getblockbylimitnext'].flatMap((path) => [
    { path, operators: 1, by: 1, agreement: 1 },
    { path, operators: 2, by: 1, agreement: 1 },
    { path, operators: 2, by: 1, agreement: 2 },
    { path, operators: 2, by: 2, agreement: 2 },
  ]),
  ...[
    '/wallet/getblock',
    '/walletsolidity/getblock',
    '/wallet/gettransactioninfobyblocknum',
    '/wallet/listwitnesses',
  ].map((path) => ({ path, operators: 2, by: 1, agreement: 1 })),
];

test.each(someCases(CASES, 3))(
  'with $path refused for ever by $by of $operators (agreement $agreement) the watcher catches up and follows the head',
  async ({ path, operators, by, agreement }) => {
    const chain = createAttackChain();
    chain.mine();
    const nodes = Array.from({ length: operators }, (_, index) => createAttackNode(`node-${index}.example`, chain));
    const pool = poolOver(nodes, (index, asked) => (index < by && asked === path ? 'limit' : null));
    const made = await createAttackWorld({ chain, nodes, agreement, pool });
    world = made;
    const invoice = await made.invoice();
    await made.run(25, traffic);
    let mined = 0;
    made.restartAfter(MISSED_BLOCKS, () => {
      mined += 1;
      return [...traffic(), ...(mined === 300 ? [innerTransfer(invoice.account, invoice.amount)] : [])];
    });
    await made.run(20, traffic);
    expect({ behind: made.behind(), statuses: await made.statuses() }).toEqual({ behind: 0, statuses: ['PAID'] });
    await pool.close();
  },
);

/** As with a latency of about 100 ms, and eight requests in parallel. */
const REQUEST_MS = 12;

/** Returns how many milliseconds a watcher takes to catch up if the second of two operators is down from `fromMs` on for `awayMs`. */
async function catchUpMs(missing: { fromMs: number; awayMs: number }): Promise<number> {
  const chain = createAttackChain();
  chain.mine();
  const nodes = Array.from({ length: 2 }, (_, index) => createAttackNode(`node-${index}.example`, chain));
  let startedMs = Number.POSITIVE_INFINITY;
  const pool = poolOver(nodes, (index, path) => {
    // The infos of both are read, which takes longest.
    if (path === '/jsonrpc') return 'limit';
    if (world !== null) world.clock.ms += REQUEST_MS;
    const passedMs = performance.now() - startedMs;
    const isAway = passedMs >= missing.fromMs && passedMs < missing.fromMs + missing.awayMs;
    return index === 1 && isAway ? 'away' : null;
  });
  const made = await createAttackWorld({ chain, nodes, agreement: 2, pool });
  world = made;
  await made.run(25, traffic);
  made.restartAfter(MISSED_BLOCKS, traffic);
  startedMs = performance.now();
  while (made.unrecorded() > 20) await made.pass(50);
  const tookMs = performance.now() - startedMs;
  await pool.close();
  await made.stop();
  world = null;
  return tookMs;
}

test.each(someCases([1000, 3000, 5000], 3))(
  'an operator that is away for two seconds, %i ms after the watcher began to catch up, costs five seconds at most',
  async (fromMs) => {
    const undisturbedMs = await catchUpMs({ fromMs, awayMs: 0 });
    expect(undisturbedMs).toBeGreaterThan(fromMs);
    expect((await catchUpMs({ fromMs, awayMs: 2000 })) - undisturbedMs).toBeLessThanOrEqual(5000);
  },
);

longTest(
  'after an outage, blocks are read in ranges soon, though the node says at first that nothing more is irreversible',
  async () => {
    const chain = createAttackChain();
    chain.mine();
    const nodes = [createAttackNode('node-0.example', chain)];
    let isAway = false;
    const pool = poolOver(nodes, () => (isAway ? 'away' : null));
    const made = await createAttackWorld({ chain, nodes, agreement: 1, pool });
    world = made;
    await made.run(25, traffic);
    const before = chain.solid();
    isAway = true;
    await made.run(MISSED_BLOCKS, traffic);
    isAway = false;
    let asked = 0;
    for (const node of nodes) {
      node.lies = {
        solid: () => {
          asked += 1;
          return asked <= 2 ? before : undefined;
        },
      };
    }
    for (const { requests } of nodes) requests.clear();
    await made.run(10, traffic);
    expect(made.behind()).toBe(0);
    expect(nodes[0]?.requests.get('/wallet/getblock')).toBeLessThan(150);
    await pool.close();
  },
);

test.each<[string, object | 'refuse']>(
  someCases(
    [
      ['refuses', 'refuse'],
      ['shows no infos', []],
      ['shows those of another block', [{ id: '00'.repeat(32), blockNumber: 7, blockTimeStamp: 7 }]],
      ['shows no list', { Error: 'odd' }],
    ],
    2,
  ),
)('a gRPC port that %s costs the node nothing: its JSON counts', async (_what, twin) => {
  const chain = createAttackChain();
  chain.mine();
  const nodes = [createAttackNode('a', chain), createAttackNode('b', chain)];
  for (const node of nodes) node.twin = twin;
  const made = await createAttackWorld({ chain, nodes, agreement: 2 });
  world = made;
  const invoice = await made.invoice();
  await made.run(25, traffic);
  await made.run(1, () => [innerTransfer(invoice.account, invoice.amount)]);
  made.restartAfter(60, traffic);
  await made.run(40, traffic);
  expect({ statuses: await made.statuses(), behind: made.behind(), reports: made.reports }).toEqual({
    ...{ statuses: ['PAID'], behind: 0, reports: [] },
  });
});
