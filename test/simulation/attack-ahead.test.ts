import { afterEach, expect, test } from 'vitest';
import { RANGE_BLOCKS } from '../../src/core/chain/verify/read-block.ts';
import { longTest, someCases } from '../support/some-cases.ts';
import { blockAfter, createAttackChain, evilBranch, HONEST, keyAt } from './attack-chain.ts';
import { type AttackNode, createAttackNode } from './attack-node.ts';
import { type AttackWorld, createAttackWorld } from './attack-world.ts';

const RANGES = '/wallet/getblockbylimitnext';
const MISSED_BLOCKS = 400;

let world: AttackWorld | null = null;
afterEach(async () => {
  await world?.stop();
  world = null;
});

/** Nodes of three operators, and a watcher that has followed them for a while. */
async function follow() {
  const chain = createAttackChain();
  chain.mine();
  const nodes = ['a', 'b', 'c'].map((name) => createAttackNode(name, chain));
  const made = await createAttackWorld({ chain, nodes, agreement: 2 });
  world = made;
  await made.run(25);
  return { world: made, chain, nodes };
}

/** A watcher that has missed four hundred blocks. */
async function missMuch() {
  const { world: made, chain, nodes } = await follow();
  const base = await made.cursor();
  made.restartAfter(MISSED_BLOCKS);
  for (const { requests } of nodes) requests.clear();
  const [, other] = nodes as [AttackNode, AttackNode, AttackNode];
  return { world: made, chain, nodes, other, base };
}

const rangesOf = ({ requests }: AttackNode) => requests.get(RANGES) ?? 0;

async function expectCaughtUp({ world, nodes }: Awaited<ReturnType<typeof missMuch>>) {
  await world.step();
  // One round is enough, whoever lies.
  expect(world.behind()).toBeLessThanOrEqual(20);
  await world.run(8);
  expect(world.behind()).toBe(0);
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
  expect(await world.inventions()).toEqual([]);
  return nodes.reduce((sum, node) => sum + rangesOf(node), 0);
}

longTest('after a downtime blocks are read from several nodes, none of them twice', async () => {
  const missed = await missMuch();
  expect(await expectCaughtUp(missed)).toBeLessThan(MISSED_BLOCKS / 5);
  expect(missed.nodes.filter((node) => rangesOf(node) > 1).length).toBeGreaterThan(1);
  expect(missed.world.errors).toEqual([]);
});

type Missed = Awaited<ReturnType<typeof missMuch>>;

test.each<[string, (missed: Missed) => void]>(
  someCases(
    [
      [
        'refuses ranges',
        ({ other }) => {
          other.lies = { answer: ({ path }) => (path === RANGES ? 'refuse' : undefined) };
        },
      ],
      [
        'shows none',
        ({ other }) => {
          other.lies = { answer: ({ path }) => (path === RANGES ? { block: [] } : undefined) };
        },
      ],
      [
        'shows a branch of its own',
        ({ other, base }) => {
          const junk = evilBranch(base, MISSED_BLOCKS);
          other.lies = { block: (number, path) => (path === RANGES ? junk[number - base.number - 1] : undefined) };
        },
      ],
      [
        'does not answer',
        ({ other }) => {
          const { ask } = other;
          other.ask = (question, options) => {
            if (question.http.path !== RANGES) return ask(question, options);
            other.requests.set(RANGES, rangesOf(other) + 1);
            return new Promise(() => undefined);
          };
        },
      ],
    ],
    4,
  ),
)('a node that %s beside the preferred one is left, and holds nothing up', async (_, lie) => {
  const missed = await missMuch();
  lie(missed);
  await expectCaughtUp(missed);
  // The requests made before its first answer was checked; a third of all would be 22.
  expect(rangesOf(missed.other)).toBeLessThanOrEqual(12);
  expect(await missed.world.statuses()).toEqual([]);
});

longTest(
  'blocks of another node that nobody known signed are read from the preferred one, and nothing is walked back',
  async () => {
    const missed = await missMuch();
    const { chain, nodes, other, base } = missed;
    other.lies = {
      block: (number, path) => {
        const parent = chain.at(number - 1);
        const isLie = path === RANGES && (number - base.number) % RANGE_BLOCKS === 0 && parent !== undefined;
        return isLie ? evilBranch(parent, 1)[0] : undefined;
      },
    };
    await expectCaughtUp(missed);
    // The head needed two for each block.
    for (const { requests } of nodes) expect(requests.get('/wallet/getblock') ?? 0).toBeLessThan(80);
  },
);

test.each<[string, (missed: Missed) => void]>(
  someCases(
    [
      [
        'refuses ranges and does not return the next block',
        ({ nodes: [first], base }) => {
          if (first === undefined) return;
          first.lies = {
            answer: ({ path }) => (path === RANGES ? 'refuse' : undefined),
            block: (number, path) => (path === '/wallet/getblock' && number > base.number ? null : undefined),
          };
        },
      ],
      [
        'shows a branch of its own in ranges',
        ({ nodes: [first], base }) => {
          const junk = evilBranch(base, MISSED_BLOCKS);
          if (first === undefined) return;
          first.lies = { block: (number, path) => (path === RANGES ? junk[number - base.number - 1] : undefined) };
        },
      ],
    ],
    2,
  ),
)('a preferred node that %s does not stop catching up', async (_, lie) => {
  const missed = await missMuch();
  lie(missed);
  const { world } = missed;
  await world.run(20);
  expect({ behind: world.behind(), inventions: await world.inventions() }).toEqual({ behind: 0, inventions: [] });
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
});

/** Makes the preferred node answer as it would have this many blocks ago. */
function lagBy({ chain, nodes: [first] }: Missed, blocks: number) {
  if (first === undefined) return;
  first.lies = {
    block: (number) => (number > chain.head().number - blocks ? null : undefined),
    solid: () => chain.at(chain.solid().number - blocks),
  };
}

/** Leaves two nodes, both of one operator. */
function keepOneOperator({ nodes }: Missed) {
  nodes.splice(2);
  for (const node of nodes) node.operator = 'a';
}

test.each<[string, (missed: Missed) => void]>(
  someCases(
    [
      ['60 blocks behind the others', (missed) => lagBy(missed, 60)],
      ['120 blocks behind the others', (missed) => lagBy(missed, 120)],
      [
        '120 blocks behind the other node of its operator',
        (missed) => {
          keepOneOperator(missed);
          lagBy(missed, 120);
          // Like the pool, which pauses a node that is reported.
          const { nodes, world } = missed;
          const report = world.reports.push.bind(world.reports);
          world.reports.push = (...made) => {
            nodes.reverse();
            return report(...made);
          };
        },
      ],
    ],
    2,
  ),
)('a preferred node that stays %s is not followed at that distance', async (_, make) => {
  const missed = await missMuch();
  const [first] = missed.nodes;
  make(missed);
  const { world } = missed;
  await world.run(20);
  expect({ behind: world.behind(), inventions: await world.inventions() }).toEqual({ behind: 0, inventions: [] });
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
  expect(new Set(world.reports.map(({ node, problem }) => `${node} ${problem}`))).toEqual(
    new Set([`${first?.origin} lagging`]),
  );
});

test('a preferred node that stops at a block is left for the other node of its operator', async () => {
  const missed = await missMuch();
  const { world, chain, nodes } = missed;
  const [first] = nodes;
  keepOneOperator(missed);
  const last = chain.head().number;
  if (first !== undefined) first.lies = { block: (number) => (number > last ? null : undefined) };
  await world.run(10);
  expect(world.behind()).toBe(0);
  expect(world.reports.map(({ node, problem }) => `${node} ${problem}`)).toContain(`${first?.origin} lagging`);
});

longTest(
  'nodes that stay behind are still read up to their newest blocks if the preferred one is ahead and returns none',
  async () => {
    const missed = await missMuch();
    const { world, chain, nodes, base } = missed;
    const [first, ...behind] = nodes;
    for (const node of behind) lagBy({ ...missed, nodes: [node] }, 60);
    if (first !== undefined) {
      first.lies = {
        answer: ({ path }) => (path === RANGES ? 'refuse' : undefined),
        block: (number, path) => (path === '/wallet/getblock' && number > base.number ? null : undefined),
      };
    }
    await world.run(40);
    expect((await world.cursor()).number).toBeGreaterThanOrEqual(chain.solid().number - 60 - 25);
    expect(await world.inventions()).toEqual([]);
  },
);

longTest('a preferred node that stays behind is not left if no other operator could agree', async () => {
  const missed = await missMuch();
  const { world, chain, nodes } = missed;
  nodes.splice(2);
  lagBy(missed, 120);
  await world.run(150);
  expect((await world.cursor()).number).toBeGreaterThanOrEqual(chain.solid().number - 150);
  expect(await world.inventions()).toEqual([]);
  // The pool would pause it, and then nobody could agree.
  expect(world.reports.filter(({ reason }) => reason.includes('newest irreversible block'))).toEqual([]);
});

test.each([
  ['too few to read them in ranges', 30],
  ['enough to read them in ranges', 45],
])('a watcher that reads single blocks too slowly shows how many it lacks, if they are %s', async (_, slower) => {
  const { world, chain, nodes } = await follow();
  // The nodes have every block, but single blocks take long to read.
  let readable = chain.head().number;
  for (const node of nodes)
    node.lies = { block: (number, path) => (path === '/wallet/getblock' && number > readable ? null : undefined) };
  for (let made = 0; made < 2 * slower; made += 1) {
    readable += 0.5;
    await world.run(1);
  }
  const hidden: number[] = [];
  for (let made = 0; made < 60; made += 1) {
    readable += 1;
    await world.run(1);
    hidden.push(world.unrecorded() - world.lag());
  }
  expect(Math.max(...hidden)).toBeLessThanOrEqual(6);
  expect(world.reports).toEqual([]);
  for (const { requests } of nodes) expect(requests.get('/walletsolidity/getblock') ?? 0).toBeLessThan(80);
});

test('while no node returns the next block, a watcher shows how many irreversible blocks it lacks', async () => {
  const { world, chain, nodes } = await follow();
  const held = String(chain.head().number + 1);
  for (const node of nodes) node.lies = { answer: ({ body }) => (body.id_or_num === held ? 'refuse' : undefined) };
  await world.run(12);
  expect(world.unrecorded()).toBeGreaterThan(8);
  expect(world.unrecorded() - world.lag()).toBeLessThanOrEqual(6);
});

test('a node whose irreversible block is not ours does not count as agreeing, even while the watcher is behind', async () => {
  const { world, chain, nodes } = await follow();
  const held = String(chain.head().number + 1);
  for (const node of nodes) node.lies = { answer: ({ body }) => (body.id_or_num === held ? 'refuse' : undefined) };
  const { number } = chain.head();
  await world.run(2);
  // A producer signed a second block at a height that the watcher has read.
  const parent = chain.at(number - 1);
  if (parent === undefined) throw new Error('the chain is too short');
  const other = blockAfter(parent, keyAt(HONEST, number + 1));
  for (const node of nodes) node.lies = { ...node.lies, solid: () => other };
  const before = world.lag();
  await world.run(12);
  expect(world.lag()).toBe(before);
  expect(new Set(world.reports.map(({ problem }) => problem))).toContain('contradicts');
});
