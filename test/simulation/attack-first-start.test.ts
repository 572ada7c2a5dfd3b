import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createNodePool } from '../../src/chain/node-pool.ts';
import { unlimitedNode } from '../../src/domain/node.ts';
import { unixMs } from '../../src/domain/time.ts';
import { createLogger } from '../../src/runtime/log.ts';
import { createMetrics } from '../../src/runtime/metrics.ts';
import { GENESIS_BLOCK_IDS } from '../../src/tron/genesis.ts';
import { blockAfter, createAttackChain, EVIL, HONEST, keyAt, SLOT_MS } from './attack-chain.ts';
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

function chainOf(blocks: number) {
  const chain = createAttackChain();
  for (let made = 0; made < blocks; made++) chain.mine();
  return chain;
}

const stored = async ({ query }: AttackWorld) => {
  const [row] = await query(`select (select count(*) from chain_cursors) as cursors,
    (select count(*) from producer_sets) as sets`);
  return { cursors: Number(row.cursors), sets: Number(row.sets) };
};

test.each([
  ['a block of nobody known', 0, 'nobody'],
  ['a block of nobody known', 1, 'nobody'],
  ['other producers', 0, 'set'],
  ['other producers', 1, 'set'],
  ['another block 0', 0, 'genesis'],
])('at the first start, %s by one of two operators (number %i) starts nothing', async (_, place, kind) => {
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
  // The second one's word is only asked for at the height that the first one names.
  if (kind === 'nobody' && place === 1) expect((await stored(made)).cursors).toBeLessThanOrEqual(1);
  else expect((await stored(made)).cursors).toBe(0);
  liar.lies = {};
  await made.run(30);
  expect(await stored(made)).toEqual({ cursors: 1, sets: 1 });
  expect(made.behind()).toBe(0);
  expect(made.unrecorded()).toBeLessThanOrEqual(8);
  await made.cursor();
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
  // It is not built upon, so the start is before it, where both show the same.
  expect((await made.cursor()).number).toBeLessThan(forged.number);
  (nodes[0] as AttackNode).lies = {};
  await made.run(30);
  expect(made.behind()).toBe(0);
});

test('at the first start, a lone node calls a block irreversible that is replaced: the start is one on which enough producers built', async () => {
  const chain = chainOf(60);
  const node = createAttackNode('lone', chain);
  const forged = blockAfter(chain.head(), keyAt(HONEST, chain.head().number + 1));
  node.lies = {
    solid: () => forged,
    block: (number) => (number === forged.number ? forged : chain.at(number)),
  };
  const made = await createAttackWorld({ chain, nodes: [node], agreement: 1, isFirstStart: true });
  world = made;
  await made.step();
  // Nineteen blocks of nineteen producers: the forged one, and those before it.
  expect((await made.cursor()).number).toBe(forged.number - 18);
  node.lies = {};
  await made.run(30);
  expect(await stored(made)).toEqual({ cursors: 1, sets: 1 });
  expect(made.behind()).toBe(0);
  expect((await made.cursor()).number).toBeGreaterThan(forged.number);
});

test('at the first start, headers that are no chain start nothing', async () => {
  const chain = chainOf(60);
  const node = createAttackNode('lone', chain);
  const parent = chain.at(chain.solid().number - 5);
  if (parent === undefined) throw new Error('the chain is too short');
  const other = blockAfter(parent, keyAt(HONEST, 7), [], parent.time + 2 * SLOT_MS);
  node.lies.block = (number) => (number === other.number ? other : undefined);
  const made = await createAttackWorld({ chain, nodes: [node], agreement: 1, isFirstStart: true });
  world = made;
  await made.step();
  expect(made.errors[0]).toContain(`not ${other.id}`);
  expect(made.reports).toContainEqual(expect.objectContaining({ node: 'lone', problem: 'unverifiable' }));
  expect((await stored(made)).cursors).toBe(0);
  node.lies = {};
  await made.run(5);
  expect(made.behind()).toBe(0);
  await made.cursor();
});

test('at the first start, a node that names producers who make no blocks is not asked for blocks without end', async () => {
  const chain = chainOf(600);
  const node = createAttackNode('lone', chain);
  // Only one of them is one of those who make the blocks.
  const named = [keyAt(HONEST, chain.solid().number), ...EVIL.slice(1)];
  node.lies.producers = () => named;
  const made = await createAttackWorld({ chain, nodes: [node], agreement: 1, isFirstStart: true });
  world = made;
  await made.step();
  expect(made.errors[0]).toContain('too few');
  expect((await stored(made)).cursors).toBe(0);
  // The newest, and those before it.
  expect(node.requests.get('/walletsolidity/getblock')).toBe(1 + 500);
});

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
  expect(await stored(made)).toEqual({ cursors: 0, sets: 0 });
});

/** The node behind a socket of ours, as the real pool asks it. */
async function serve(node: AttackNode): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const answer = await node.post(request.url ?? '', JSON.parse(Buffer.concat(chunks).toString() || '{}') as object);
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
