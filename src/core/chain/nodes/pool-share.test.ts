import { startDevnet } from '@quittance/devnet';
import { expect, onTestFinished, test } from 'vitest';
import { type NodeSpec, unlimitedNode } from '../../domain/node.ts';
import { unixMs } from '../../domain/time.ts';
import { createLogger } from '../../runtime/log.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import { createNodePool, poolShare } from './node-pool.ts';
import { blockAt, headerAt } from './questions.ts';

const MIDNIGHT = Date.UTC(2026, 8, 1);
const HOUR_MS = 3_600_000;

/** A pool over nodes of a devnet, and a share of it, at an hour of the day. */
async function setUp({ count = 1, hour = 12, limits = {} as Partial<NodeSpec> } = {}) {
  const devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  onTestFinished(() => devnet.stop());
  devnet.mine(3);
  const nodes = await Promise.all(Array.from({ length: count }, () => devnet.addNode()));
  const now = () => unixMs(MIDNIGHT + hour * HOUR_MS);
  const pool = createNodePool({
    ...{ network: 'devnet', now, log: createLogger({ level: 'silent' }), metrics: createMetrics(), blockMs: 3000 },
    nodes: nodes.map(({ url }) => ({ ...unlimitedNode(url), ...limits })),
  });
  onTestFinished(() => pool.close());
  const stopping = new AbortController();
  const share = poolShare(pool, { signal: stopping.signal, now });
  const first = async (of = share) => {
    const [node] = await of.available();
    if (node === undefined) throw new Error('no node is available');
    return node;
  };
  return { nodes, pool, share, stopping, first };
}

test('what is wrong with old blocks pauses a node for this work alone', async () => {
  const { pool, share, first } = await setUp({ count: 2 });
  const [before] = await share.available();
  share.report(await first(), 'unverifiable', 'block 7 is odd');
  expect((await share.available()).map(({ origin }) => origin)).not.toContain(before?.origin);
  expect((await pool.available()).map(({ origin }) => origin)).toContain(before?.origin);
  expect(pool.health().map(({ failures }) => failures)).toEqual([0, 0]);
});

test('a node that does not answer what this work asks stays well for others, and one that refuses all does not', async () => {
  const { nodes, pool, first } = await setUp();
  const node = await first();
  nodes[0]?.setFault({ kind: 'bare-text' });
  await expect(node.ask(blockAt(2))).rejects.toMatchObject({ code: 'NODE_REFUSED' });
  expect(pool.health()[0]).toMatchObject({ pausedForMs: 0, failures: 0 });
  nodes[0]?.setFault({ kind: 'limited-429' });
  await expect(node.ask(blockAt(2))).rejects.toMatchObject({ code: 'NODE_REFUSED' });
  expect(pool.health()[0]?.pausedForMs).toBeGreaterThan(0);
});

test.each([
  [0, 92_000, true],
  [0, 100_000, false],
  [12, 40_000, true],
  [12, 50_000, false],
  [23, 3000, true],
  [23, 5000, false],
])(
  'at %d o’clock, of %d requests that a node still takes today, those that watcher and payers need are left: refused is %s',
  async (hour, requestsPerDay, isRefused) => {
    const { first, pool } = await setUp({ hour, limits: { requestsPerDay } });
    const asked = first().then((node) => node.ask(headerAt('any')));
    if (!isRefused) expect(await asked).not.toBeNull();
    else await expect(asked).rejects.toThrow(/are reserved for the watcher and for payers/);
    const [node] = await pool.available();
    expect(await node?.ask(headerAt('any'))).not.toBeNull();
  },
);

test('a stop ends the request under way, whatever the node does, and every further one', async () => {
  const { nodes, share, stopping, first } = await setUp();
  const node = await first();
  nodes[0]?.setFault({ kind: 'hang' });
  const asked = [1, 2, 3, 4].map((number) => node.ask(blockAt(number)));
  const ended = Promise.allSettled(asked);
  stopping.abort();
  for (const { status } of await ended) expect(status).toBe('rejected');
  await expect(share.available()).rejects.toThrow(/abort/i);
  await expect(node.ask(blockAt(1))).rejects.toThrow(/abort/i);
});
