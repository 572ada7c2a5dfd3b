import { type Devnet, startDevnet } from '@quittance/devnet';
import type { Fault } from '@quittance/devnet/faults/faults';
import type { NodeServer } from '@quittance/devnet/node/node-server';
import { afterEach, describe, expect, test } from 'vitest';
import { PATIENCE_MS } from '../../../../test/support/patience.ts';
import { type NodeSpec, unlimitedNode } from '../../domain/node.ts';
import { unixMs } from '../../domain/time.ts';
import { createLogger } from '../../runtime/log.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import { createNodeClient, type NodeClient, type NodeClientOptions } from './client.ts';
import type { Node, Question } from './node.ts';
import { createNodePool, type NodePool } from './node-pool.ts';
import { headerAt } from './questions.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** The block time of real networks, which bounds a failover. */
const BLOCK_MS = 3000;
/** How long a request to a silent node really takes. */
const SILENCE_MS = 20;
const NOON = Date.UTC(2026, 8, 1, 12);
const HOUR_MS = 3_600_000;

type Setup = {
  devnet: Devnet;
  nodes: NodeServer[];
  pool: NodePool;
  log: { level: string; msg: string; node?: string }[];
  metrics: ReturnType<typeof createMetrics>;
  /** The URLs of nodes that hang and whose requests end soon, having taken their whole timeout by the pool's clocks. */
  silent: Set<string>;
  /** The questions that were sent, in order. */
  sent: Question<unknown>[];
  /** Moves the clock and the monotonic clock. */
  pass(ms: number): void;
  /** How far they were moved. */
  passedMs(): number;
};

/**
 * A pool over several nodes of one devnet, with clocks that the test moves. The monotonic clock may also run by itself. No request
 * ends by its timeout, however busy the machine is, except those to silent nodes.
 */
async function setUp(count: number, limits: Partial<NodeSpec> = {}, elapsedMs = () => 0): Promise<Setup> {
  const devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  cleanups.push(() => devnet.stop());
  const nodes = await Promise.all(Array.from({ length: count }, () => devnet.addNode()));
  let passedMs = 0;
  const pass = (ms: number) => {
    passedMs += ms;
  };
  const silent = new Set<string>();
  const sent: Question<unknown>[] = [];
  const createClient = (options: NodeClientOptions): NodeClient => {
    const client = createNodeClient(options);
    return {
      ...client,
      ask: (question, call = {}) => {
        sent.push(question);
        if (!silent.has(options.spec.url)) return client.ask(question, { ...call, timeoutMs: PATIENCE_MS });
        const onOutcome: typeof call.onOutcome = (outcome) => {
          pass(call.timeoutMs ?? 0);
          call.onOutcome?.(outcome);
        };
        return client.ask(question, { ...call, timeoutMs: SILENCE_MS, onOutcome });
      },
    };
  };
  const log: Setup['log'] = [];
  const metrics = createMetrics();
  const pool = createNodePool({
    network: 'devnet',
    nodes: nodes.map(({ url }) => ({ ...unlimitedNode(url), ...limits })),
    now: () => unixMs(NOON + passedMs),
    clockMs: () => elapsedMs() + passedMs,
    random: () => 0,
    log: createLogger({ level: 'info', destination: { write: (line) => log.push(JSON.parse(line)) } }),
    metrics,
    blockMs: BLOCK_MS,
    createClient,
  });
  cleanups.push(() => pool.close());
  return { devnet, nodes, pool, log, metrics, silent, sent, pass, passedMs: () => passedMs };
}

const urls = (nodes: readonly { url: string }[]) => nodes.map(({ url }) => url);
const ask = (node: Node) => node.ask(headerAt('any'));
const refusalOf = (node: Node) =>
  ask(node).then(
    () => null,
    (error: Error) => error.message,
  );

/** A list that is known not to be empty. */
async function preferred(pool: NodePool): Promise<Node> {
  const [node] = await pool.available();
  if (node === undefined) throw new Error(`no node: ${JSON.stringify(pool.health())}`);
  return node;
}

async function genesisOf({ nodes, pool }: Setup): Promise<string> {
  const [node] = nodes;
  const response = await fetch(`${node?.url}/wallet/getblock`, { method: 'POST', body: '{"id_or_num":"0"}' });
  const { blockID } = (await response.json()) as { blockID: string };
  pool.setGenesis(blockID);
  return blockID;
}

/** Like `genesisOf`, but waits until the pool has recognised all nodes. */
async function recognise(setup: Setup): Promise<void> {
  await genesisOf(setup);
  await expect.poll(async () => urls(await setup.pool.available())).toEqual(urls(setup.nodes));
}

/** Asks node after node until one answers, as a caller does. */
async function askAny(pool: NodePool): Promise<Node> {
  for (const node of await pool.available()) if ((await refusalOf(node)) === null) return node;
  throw new Error('no node answers');
}

test('nodes are given in order of preference, each known by its origin', async () => {
  const { pool, nodes } = await setUp(3);
  const available = await pool.available();
  expect(urls(available)).toEqual(urls(nodes));
  expect(available.map(({ origin }) => origin)).toEqual(urls(nodes));
});

const REFUSALS = [
  'error-200',
  'bare-text',
  'html',
  'suspended-403',
  'not-found-404',
  'too-large-413',
  'limited-429',
  'unavailable-503',
  'truncated',
  'reset',
  'hang',
] as const;

test.each(REFUSALS)(
  'the refusal %s pauses a node, the next one answers within a block, and it returns when well',
  async (kind) => {
    const setup = await setUp(2);
    const { pool, nodes, silent, pass, passedMs } = setup;
    await recognise(setup);
    nodes[0]?.setFault({ kind });
    if (kind === 'hang') silent.add(nodes[0]?.url ?? '');
    expect((await askAny(pool)).url).toBe(nodes[1]?.url);
    expect(passedMs()).toBe(kind === 'hang' ? 0.6 * BLOCK_MS : 0);
    expect(urls(await pool.available())).toEqual([nodes[1]?.url]);
    expect(pool.health()[0]).toMatchObject({ state: 'paused', refusals: 1 });
    nodes[0]?.setFault();
    silent.clear();
    pass(Math.max(1000, pool.health()[0]?.pausedForMs ?? 0));
    // After a long pause a node is recognised anew, in the background.
    await expect.poll(async () => urls(await pool.available())).toEqual(urls(nodes));
    for (let i = 0; i < 3; i++) expect((await askAny(pool)).url).toBe(nodes[0]?.url);
    expect(pool.health()[0]).toMatchObject({ state: 'healthy', reason: null, pausedForMs: 0 });
  },
);

test('two preferred nodes that hang at the start keep nobody waiting', async () => {
  const setup = await setUp(3);
  const { pool, nodes } = setup;
  await genesisOf(setup);
  for (const node of nodes.slice(0, 2)) node.setFault({ kind: 'hang' });
  // Their networks are not known yet: the checks run side by side, and the third node is not kept waiting for them.
  expect(urls(await pool.available())).toEqual([nodes[2]?.url]);
  expect((await askAny(pool)).url).toBe(nodes[2]?.url);
  // A caller that waited for one of them would have waited for its refusal.
  expect(pool.health()).toMatchObject([{ requests: 1, refusals: 0 }, { requests: 1, refusals: 0 }, {}]);
});

test('two preferred nodes that begin to hang are each left after 0.6 of a block time, once', async () => {
  const { pool, nodes, silent, passedMs } = await setUp(3);
  await askAny(pool);
  for (const node of nodes.slice(0, 2)) {
    node.setFault({ kind: 'hang' });
    silent.add(node.url);
  }
  expect((await askAny(pool)).url).toBe(nodes[2]?.url);
  expect(passedMs()).toBe(2 * 0.6 * BLOCK_MS);
  expect(urls(await pool.available())).toEqual([nodes[2]?.url]);
});

describe('pauses', () => {
  test('double with each refusal in a row up to a minute, and a verified block ends the row', async () => {
    const { pool, nodes, pass } = await setUp(2);
    const node = await preferred(pool);
    nodes[0]?.setFault({ kind: 'unavailable-503' });
    const pauses: number[] = [];
    for (let i = 0; i < 8; i++) {
      await refusalOf(node);
      const { pausedForMs = 0 } = pool.health()[0] ?? {};
      pauses.push(pausedForMs / 1000);
      pass(pausedForMs);
    }
    expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    pool.praise(node);
    await refusalOf(node);
    expect(pool.health()[0]?.pausedForMs).toBe(1000);
  });

  test('of the only node stay short, for there is no other to ask', async () => {
    const { pool, nodes, pass } = await setUp(1);
    const node = await preferred(pool);
    nodes[0]?.setFault({ kind: 'unavailable-503' });
    const pauses: number[] = [];
    for (let i = 0; i < 6; i++) {
      await refusalOf(node);
      expect(await pool.available()).toEqual([]);
      const { pausedForMs = 0 } = pool.health()[0] ?? {};
      pauses.push(pausedForMs);
      pass(pausedForMs);
    }
    expect(pauses).toEqual([250, 500, 1000, 2000, 4000, 5000]);
  });

  test('of a node that was left alone for a minute are cut short when the last other one fails', async () => {
    const { pool, nodes, pass } = await setUp(2);
    const [first, second] = await pool.available();
    if (first === undefined || second === undefined) throw new Error('two nodes expected');
    nodes[0]?.setFault({ kind: 'unavailable-503' });
    for (let i = 0; i < 7; i++) {
      pass(pool.health()[0]?.pausedForMs ?? 0);
      await refusalOf(first);
    }
    expect(pool.health()[0]?.pausedForMs).toBeGreaterThan(50_000);
    nodes[1]?.setFault({ kind: 'unavailable-503' });
    await refusalOf(second);
    expect(await pool.available()).toEqual([]);
    expect(pool.health()[0]?.pausedForMs).toBe(5000);
  });

  test('that a node asks for are kept, even by the only one', async () => {
    const { pool, nodes, pass } = await setUp(1);
    const node = await preferred(pool);
    nodes[0]?.setFault({ kind: 'suspended-403' });
    await refusalOf(node);
    pass(10_000);
    const refusal = await refusalOf(node);
    expect(refusal).toMatch(/was not queried: it is paused until 2026-09-01T12:00:30\.000Z \(HTTP 403/);
    pass(15_000);
    expect(await pool.available()).toEqual([]);
    // An alarm may show it for longer.
    expect(await refusalOf(node)).toBe(refusal);
    pass(5000);
    expect(await pool.available()).toHaveLength(1);
    expect(pool.health()[0]).toMatchObject({ requests: 1, refusals: 1 });
  });

  test('count requests that fail together as one failure', async () => {
    const { pool, nodes } = await setUp(2);
    const node = await preferred(pool);
    nodes[0]?.setFault({ kind: 'unavailable-503' });
    await Promise.all(Array.from({ length: 6 }, () => refusalOf(node)));
    expect(pool.health()[0]).toMatchObject({ refusals: 6 });
    expect(pool.health()[0]?.pausedForMs).toBe(1000);
  });

  test('of a node that says wrong things double although it answers, until a block of it is right', async () => {
    const { pool, pass } = await setUp(2);
    const node = await preferred(pool);
    for (const seconds of [1, 2, 4]) {
      for (let i = 0; i < 4; i++) await ask(node);
      pool.report(node, 'unverifiable', 'the root does not match');
      const { pausedForMs = 0, ...health } = pool.health()[0] ?? {};
      expect(health).toMatchObject({ state: 'paused', reason: 'unverifiable: the root does not match' });
      expect(pausedForMs).toBe(seconds * 1000);
      pass(pausedForMs);
    }
    pool.praise(node);
    pool.report(node, 'lagging', 'it is behind');
    expect(pool.health()[0]?.pausedForMs).toBe(1000);
  });
});

test('a node that returns is tried by one request while the others go elsewhere', async () => {
  const { pool, nodes, pass } = await setUp(2);
  const node = await preferred(pool);
  nodes[0]?.setFault({ kind: 'reset' });
  await refusalOf(node);
  nodes[0]?.setFault({ kind: 'hang' });
  pass(1000);
  const trial = refusalOf(await preferred(pool));
  await expect.poll(async () => (await preferred(pool)).url).toBe(nodes[1]?.url);
  expect(pool.health()[0]).toMatchObject({ requests: 2, refusals: 1 });
  await pool.close();
  expect(await trial).toContain(node.origin);
});

describe('a node of another network', () => {
  test('is never used, is named in the log with the variable to correct, and returns when it was corrected', async () => {
    const setup = await setUp(2);
    const { pool, log, nodes, pass } = setup;
    const genesisId = await genesisOf(setup);
    pool.setGenesis('ab'.repeat(32));
    expect(await pool.available()).toEqual([]);
    expect(pool.health()).toMatchObject([{ state: 'wrong-network' }, { state: 'wrong-network' }]);
    expect(log.filter(({ level }) => level === 'error')).toMatchObject(
      nodes.map(({ url }) => ({ msg: `${url} belongs to another network: correct QUITTANCE_DEVNET_NODES` })),
    );
    // No other node is left, so they are asked again soon, and the log is spared.
    pass(5000);
    expect(await pool.available()).toEqual([]);
    expect(pool.health().map(({ requests }) => requests)).toEqual([2, 2]);
    expect(log.filter(({ level }) => level === 'error')).toHaveLength(2);
    pool.setGenesis(genesisId);
    await expect.poll(async () => urls(await pool.available())).toEqual(urls(nodes));
  });

  test.each([1, 2])('that was reported is asked again after 5 s, as one of %i', async (count) => {
    const setup = await setUp(count);
    const { pool, nodes, pass } = setup;
    await recognise(setup);
    const node = await preferred(pool);
    pool.report(node, 'wrong-network', 'its genesis block is another');
    const others = urls(nodes).slice(1);
    expect(urls(await pool.available())).toEqual(others);
    expect(await refusalOf(node)).toContain('the node belongs to another network');
    pass(4900);
    expect(urls(await pool.available())).toEqual(others);
    pass(100);
    await expect.poll(async () => urls(await pool.available())).toEqual(urls(nodes));
  });

  test('is asked again after a minute at most while others can be asked, and after 5 s while none can', async () => {
    const setup = await setUp(2);
    const { pool, nodes, pass, metrics } = setup;
    await recognise(setup);
    nodes[0]?.setFault({ kind: 'other-network' });
    pool.report(await preferred(pool), 'wrong-network', 'its genesis block is another');
    const requests = () => pool.health()[0]?.requests ?? 0;
    const before = requests();
    const answered = async () => {
      const { values } = await metrics.nodeRequests.get();
      const ofNode = values.filter(({ labels }) => labels.node === nodes[0]?.url && labels.outcome === 'ok');
      return ofNode.reduce((sum, { value }) => sum + value, 0) - before;
    };
    for (const [index, waitMs] of [5000, 10_000, 20_000, 40_000, 60_000, 60_000].entries()) {
      pass(waitMs - 100);
      await pool.available();
      expect(requests()).toBe(before + index);
      pass(100);
      await pool.available();
      // The next check is due from the end of this one.
      await expect.poll(answered).toBe(index + 1);
      expect(requests()).toBe(before + index + 1);
    }
    nodes[1]?.setFault({ kind: 'suspended-403' });
    const [other] = await pool.available();
    if (other !== undefined) await refusalOf(other);
    pass(5000);
    await pool.available();
    await expect.poll(requests).toBe(before + 7);
  });

  test('is looked for once, and again after a long pause; while all is well nothing is asked', async () => {
    const setup = await setUp(1);
    const { pool, nodes, pass } = setup;
    await genesisOf(setup);
    for (let i = 0; i < 5; i++) await pool.available();
    expect(pool.health()).toMatchObject([{ requests: 1, state: 'healthy' }]);
    nodes[0]?.setFault({ kind: 'suspended-403' });
    await refusalOf(await preferred(pool));
    nodes[0]?.setFault();
    pass(30_000);
    await pool.available();
    expect(pool.health()).toMatchObject([{ requests: 3 }]);
  });
});

describe('budgets', () => {
  test('of a day end a node until midnight UTC, with a warning at 80 %', async () => {
    const { pool, log, pass } = await setUp(1, { requestsPerDay: 10 });
    const node = await preferred(pool);
    for (let i = 0; i < 7; i++) await ask(node);
    expect(log).toEqual([]);
    await ask(node);
    expect(log).toMatchObject([{ level: 'warn', usedPercent: 80 }]);
    await ask(node);
    await ask(node);
    expect(log).toMatchObject([{}, { level: 'error', node: node.origin }]);
    expect(await pool.available()).toEqual([]);
    expect(pool.health()).toMatchObject([{ state: 'out-of-budget', requestsToday: 10 }]);
    expect(await refusalOf(node)).toContain('daily request limit is used up');
    pass(12 * HOUR_MS - 60_000);
    expect(await pool.available()).toEqual([]);
    pass(60_000);
    await ask(await preferred(pool));
    expect(pool.health()).toMatchObject([{ state: 'healthy', requestsToday: 1, requests: 11 }]);
  });

  test('of a second make requests wait their turn, in order, and refuse those that would wait too long', async () => {
    const { pool, sent } = await setUp(1, { requestsPerSecond: 20 }, () => performance.now());
    const node = await preferred(pool);
    const startedMs = performance.now();
    const questions = Array.from({ length: 26 }, () => headerAt('any'));
    await Promise.all(questions.map((question) => node.ask(question)));
    // 20 at once, and 6 more at 20 a second.
    expect(performance.now() - startedMs).toBeGreaterThan(250);
    // The answers arrive over several connections, in any order.
    expect(questions.map((question) => sent.indexOf(question))).toEqual([...questions.keys()]);
    const crowd = Array.from({ length: 260 }, () => refusalOf(node));
    const refusals = crowd.slice(230);
    for (const refusal of refusals) expect(await refusal).toContain('too many requests are queued');
    expect(pool.health()).toMatchObject([{ state: 'healthy', refusals: 0 }]);
    await pool.close();
    await Promise.all(crowd);
  });
});

test('metrics tell of each node its requests, its pause and its budget', async () => {
  const { pool, nodes, metrics } = await setUp(2, { requestsPerDay: 10 });
  const [first, second] = await pool.available();
  if (first === undefined || second === undefined) throw new Error('two nodes expected');
  await ask(first);
  nodes[1]?.setFault({ kind: 'html' } satisfies Fault);
  await refusalOf(second);
  await refusalOf(second);
  await pool.available();
  const text = await metrics.registry.metrics();
  const labels = (node: Node) => `network="devnet",node="${node.origin}"`;
  expect(text).toContain(`quittance_node_requests_total{${labels(first)},outcome="ok"} 1`);
  expect(text).toContain(`quittance_node_requests_total{${labels(second)},outcome="refused"} 1`);
  expect(text).toContain(`quittance_node_requests_total{${labels(second)},outcome="unsent"} 1`);
  expect(text).toContain(`quittance_node_paused{${labels(first)}} 0`);
  expect(text).toContain(`quittance_node_paused{${labels(second)}} 1`);
  expect(text).toContain(`quittance_node_daily_budget_used_ratio{${labels(first)}} 0.1`);
});

test('closing ends requests under way and gives no node any more', async () => {
  const { pool, nodes } = await setUp(1);
  const node = await preferred(pool);
  nodes[0]?.setFault({ kind: 'hang' });
  const hanging = refusalOf(node);
  await pool.close();
  expect(await hanging).toContain(node.origin);
  expect(await pool.available()).toEqual([]);
  expect(await refusalOf(node)).toContain('the service is stopping');
});

test('two nodes behind one origin are told apart, and neither path nor key is in what is logged', async () => {
  const log: string[] = [];
  const pool = createNodePool({
    network: 'devnet',
    nodes: ['t0ken-a', 't0ken-b'].map((path) => ({ ...unlimitedNode(`http://127.0.0.1:1/${path}`), apiKey: 's3cret' })),
    now: () => unixMs(NOON),
    log: createLogger({ level: 'trace', destination: { write: (line) => log.push(line) } }),
    metrics: createMetrics(),
    blockMs: BLOCK_MS,
  });
  cleanups.push(() => pool.close());
  const available = await pool.available();
  expect(available.map(({ origin }) => origin)).toEqual(['http://127.0.0.1:1', 'http://127.0.0.1:1#2']);
  const refusals = await Promise.all(available.map(refusalOf));
  expect(log).toHaveLength(2);
  const health = pool.health().map(({ operator: _operator, ...shown }) => shown);
  expect(JSON.stringify([refusals, log, health])).not.toMatch(/t0ken|s3cret/);
});
