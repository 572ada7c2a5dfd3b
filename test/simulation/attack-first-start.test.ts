import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { GENESIS_BLOCK_IDS } from '@quittance/tron/genesis';
import { afterEach, expect, test } from 'vitest';
import { createNodePool } from '../../src/core/chain/nodes/node-pool.ts';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { someCases } from '../support/some-cases.ts';
import { blockAfter, chainOf, EVIL, HONEST, keyAt, SLOT_MS } from './attack-chain.ts';
import { type AttackNode, createAttackNode, type Lies } from './attack-node.ts';
import { type AttackWorld, createAttackWorld } from './attack-world.ts';

let world: AttackWorld | null = null;
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await world?.stop();
  world = null;
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const OTHER_GENESIS = GENESIS_BLOCK_IDS.mainnet;

test.each(
  someCases(
    [
      ['a block of nobody known', 0, 'nobody'],
      ['a block of nobody known', 1, 'nobody'],
      ['other producers', 0, 'set'],
      ['other producers', 1, 'set'],
      ['another block 0', 0, 'genesis'],
    ],
    2,
  ),
)('at the first start, %s by one of two operators (number %i) starts nothing', async (_, place, kind) => {
  const chain = chainOf(60);
  const nodes = ['a', 'b'].map((name) => createAttackNode(name, chain));
  const forged = blockAfter(chain.solid(), keyAt(EVIL, 3), [], chain.head().time);
  const lies: Record<string, Lies> = {
    nobody: { solid: () => forged, block: (number) => (number === forged.number ? forged : undefined) },
    set: { producers: () => EVIL },
    genesis: {
      answer: ({ body }) =>
        body.id_or_num === '0' ? { blockID: OTHER_GENESIS, block_header: { raw_data: {} } } : undefined,
    },
  };
  const liar = nodes[place] as AttackNode;
  liar.lies = lies[kind] ?? {};
  const made = await createAttackWorld({ chain, nodes, agreement: 2, isFirstStart: true });
  world = made;
  await made.run(5);
  // The second one is only queried at the height that the first one names.
  if (kind === 'nobody' && place === 1) expect((await made.stored()).cursors).toBeLessThanOrEqual(1);
  else expect((await made.stored()).cursors).toBe(0);
  liar.lies = {};
  await made.run(30);
  expect(await made.stored()).toEqual({ cursors: 1, sets: 1 });
  expect(made.behind()).toBe(0);
  expect(made.unrecorded()).toBeLessThanOrEqual(8);
  await made.cursor();
});

test.each(
  someCases(
    [
      ['first', 0],
      ['last', 2],
    ],
    2,
  ),
)(
  'at the first start, a node of another network that is listed %s is left out where two operators are of one',
  async (_, place) => {
    const chain = chainOf(60);
    const nodes = ['a', 'b', 'c'].map((name) => createAttackNode(name, chain));
    const stranger = nodes[place] as AttackNode;
    stranger.lies.answer = ({ body }) =>
      body.id_or_num === '0' ? { blockID: OTHER_GENESIS, block_header: { raw_data: {} } } : undefined;
    stranger.lies.producers = () => EVIL;
    const made = await createAttackWorld({ chain, nodes, agreement: 2, isFirstStart: true });
    world = made;
    await made.step();
    expect(made.errors).toEqual([]);
    expect(made.reports[0]).toMatchObject({ node: stranger.origin, problem: 'wrong-network' });
    expect(await made.stored()).toEqual({ cursors: 1, sets: 1 });
    // The pool no longer queries it.
    nodes.splice(place, 1);
    await made.run(5);
    expect(made.behind()).toBe(0);
  },
);

test('at the first start, two networks of as many operators start nothing, however few must agree', async () => {
  const chain = chainOf(60);
  const nodes = ['a', 'b'].map((name) => createAttackNode(name, chain));
  (nodes[0] as AttackNode).lies.answer = ({ body }) =>
    body.id_or_num === '0' ? { blockID: OTHER_GENESIS, block_header: { raw_data: {} } } : undefined;
  const made = await createAttackWorld({ chain, nodes, agreement: 1, isFirstStart: true });
  world = made;
  await made.step();
  expect(made.errors[0]).toContain(`block 0 is`);
  expect((await made.stored()).cursors).toBe(0);
});

test('at the first start, a lying operator of three is not waited for', async () => {
  const chain = chainOf(60);
  const nodes = ['liar', 'b', 'c'].map((name) => createAttackNode(name, chain));
  const forged = blockAfter(chain.solid(), keyAt(EVIL, 3));
  (nodes[0] as AttackNode).lies = { solid: () => forged };
  const made = await createAttackWorld({ chain, nodes, agreement: 2, isFirstStart: true });
  world = made;
  await made.run(3);
  expect(made.reports).toContainEqual(expect.objectContaining({ node: 'liar', problem: 'unverifiable' }));
  // The pool pauses it.
  nodes.shift();
  await made.run(20);
  expect(made.behind()).toBe(0);
  await made.cursor();
});

test('at the first start, a block of a producer that is not on the chain, by one of two operators, changes nothing', async () => {
  const chain = chainOf(60);
  const nodes = ['a', 'b'].map((name) => createAttackNode(name, chain));
  const forged = blockAfter(chain.solid(), keyAt(HONEST, 3), [], chain.head().time);
  const lies = { solid: () => forged, block: (number: number) => (number === forged.number ? forged : undefined) };
  (nodes[0] as AttackNode).lies = lies;
  const made = await createAttackWorld({ chain, nodes, agreement: 2, isFirstStart: true });
  world = made;
  await made.step();
  // Nothing builds on it, so the start is before it, where both nodes agree.
  expect((await made.cursor()).number).toBeLessThan(forged.number);
  (nodes[0] as AttackNode).lies = {};
  await made.run(30);
  expect(made.behind()).toBe(0);
});

test.each(
  someCases(
    [
      ['nobody known', EVIL],
      ['one of the producers', HONEST],
    ],
    2,
  ),
)(
  'at the first start, an operator of three that shows another starting block, signed by %s, is paused, and the third one is asked',
  async (_, keys) => {
    const chain = chainOf(60);
    const nodes = ['a', 'liar', 'c'].map((name) => createAttackNode(name, chain));
    (nodes[1] as AttackNode).lies.block = (number, path) =>
      path.startsWith('/walletsolidity')
        ? blockAfter(chain.at(number - 1) ?? chain.start, keyAt(keys, number + 3))
        : undefined;
    const made = await createAttackWorld({ chain, nodes, agreement: 2, isFirstStart: true });
    world = made;
    await made.step();
    expect(made.reports).toEqual([expect.objectContaining({ node: 'liar', problem: 'unverifiable' })]);
    expect(await made.stored()).toEqual({ cursors: 0, sets: 0 });
    // The pool pauses it.
    nodes.splice(1, 1);
    await made.run(20);
    expect(made.behind()).toBe(0);
    await made.cursor();
  },
);

test('at the first start, a node of another network is refused before anything is stored', async () => {
  const chain = chainOf(60);
  const node = createAttackNode('other', chain);
  node.lies.answer = ({ body }) =>
    body.id_or_num === '0' ? { blockID: OTHER_GENESIS, block_header: { raw_data: {} } } : undefined;
  const url = await serve(node);
  const log = createLogger({ level: 'silent' });
  const spec = unlimitedNode(url);
  const now = () => unixMs(Date.now());
  const parameters = { network: 'nile', blockMs: SLOT_MS } as const;
  const pool = createNodePool({ ...parameters, nodes: [spec], now, log, metrics: createMetrics() });
  cleanups.push(() => pool.close());
  const made = await createAttackWorld({ chain, nodes: [], agreement: 1, isFirstStart: true, pool });
  world = made;
  for (let steps = 0; steps < 3; steps++) await made.step();
  expect(made.errors[0]).toContain('block');
  expect(pool.health()).toMatchObject([{ state: 'wrong-network' }]);
  expect(await made.stored()).toEqual({ cursors: 0, sets: 0 });
});

/** Serves the node on a real socket, so that the real pool can query it. */
async function serve(node: AttackNode): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString() || '{}') as object;
      const answer = node.show({ path: request.url ?? '', body });
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
