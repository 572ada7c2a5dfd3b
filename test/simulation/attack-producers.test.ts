import { afterEach, describe, expect, test } from 'vitest';
import { PERIOD_MS } from '../../src/core/chain/verify/producers.ts';
import { someCases } from '../support/some-cases.ts';
import {
  blockAfter,
  createAttackChain,
  directTransfer,
  EVIL,
  HONEST,
  keyAt,
  keysNamed,
  SLOT_MS,
} from './attack-chain.ts';
import { type AttackNode, createAttackNode, votedIn } from './attack-node.ts';
import { type AttackWorld, createAttackWorld } from './attack-world.ts';

let world: AttackWorld | null = null;
afterEach(async () => {
  await world?.stop();
  world = null;
});

/** 19 of 27 decide, so 9 could block a decision. A voting period may change at most 8. */
const MOST_NEW = 8;

async function start(names: readonly string[]) {
  const chain = createAttackChain();
  chain.mine();
  const nodes = names.map((name) => createAttackNode(name, chain));
  const made = await createAttackWorld({ chain, nodes, agreement: names.length > 1 ? 2 : 1 });
  world = made;
  await made.run(25);
  return { world: made, chain, nodes };
}

const evilNow = async ({ query }: AttackWorld) => {
  const [row] = await query('select producers from producer_sets order by id desc limit 1');
  const evil = new Set<string>(EVIL.map(({ account }) => account));
  return (row.producers as { account: string }[]).filter(({ account }) => evil.has(account)).length;
};
const setCount = async ({ query }: AttackWorld) => (await query('select 1 from producer_sets')).length;

describe('one node of one', () => {
  const startWithLiar = async () => {
    const { nodes, ...rest } = await start(['liar']);
    return { ...rest, liar: nodes[0] as AttackNode };
  };

  test.each(
    someCases(
      [
        ['now', 0],
        ['ten years ahead', 10 * 365 * 86_400_000],
      ],
      2,
    ),
  )('cannot replace all 27 producers at once, by blocks of %s', async (_, aheadMs) => {
    const { world, chain, liar } = await startWithLiar();
    const { account, amount } = await world.invoice();
    const time = Math.ceil((chain.head().time + aheadMs) / SLOT_MS) * SLOT_MS + SLOT_MS;
    const blocks = [blockAfter(chain.head(), keyAt(EVIL, 0), [directTransfer(account, amount)], time)];
    for (let place = 1; place < 26; place++)
      blocks.push(blockAfter(blocks[place - 1] ?? chain.head(), keyAt(EVIL, place)));
    const [first] = blocks;
    const end = chain.head().number;
    liar.lies = {
      producers: () => EVIL,
      solid: () => first,
      block: (number) => blocks.find((block) => block.number === number) ?? (number > end ? null : undefined),
    };
    await world.pass(60_000);
    expect(await world.statuses()).toEqual(['PENDING']);
    expect(await evilNow(world)).toBe(0);
    expect(await world.alarms()).toContain('producers-refused');
    liar.lies = {};
    await world.run(30);
    expect(world.behind()).toBe(0);
    expect(world.unrecorded()).toBeLessThanOrEqual(8);
  });

  test('cannot replace all 27 producers at once after days in which they stayed the same', async () => {
    const { world, chain, liar } = await startWithLiar();
    for (let periods = 0; periods < 8; periods++) {
      chain.mine([], { gapMs: PERIOD_MS });
      await world.run(1);
    }
    liar.lies = { producers: () => EVIL };
    chain.mine([], { gapMs: PERIOD_MS });
    await world.run(1);
    expect(await evilNow(world)).toBeLessThanOrEqual(MOST_NEW);
  });

  test('that replaces one producer after the other gets no further within a period than in one go', async () => {
    const { world, chain, liar } = await startWithLiar();
    let count = 0;
    liar.lies = { producers: () => votedIn(EVIL.slice(0, count)) };
    // Each block of an unknown producer makes the watcher query the producers again.
    for (; count < 20; count++) {
      liar.lies.block = (number) =>
        number === chain.head().number
          ? blockAfter(chain.at(number - 1) ?? chain.head(), keyAt(EVIL, count))
          : undefined;
      await world.run(2);
    }
    expect(await evilNow(world)).toBeLessThanOrEqual(MOST_NEW);
    expect(await evilNow(world)).toBeGreaterThan(0);
  });

  test('cannot take over more producers for blocks that are dated ahead of our clock', async () => {
    const { world, chain, liar } = await startWithLiar();
    // One of 27 producers colludes: its block is dated a week ahead.
    const ahead = blockAfter(
      chain.head(),
      keyAt(HONEST, chain.head().number + 1),
      [],
      chain.head().time + 28 * PERIOD_MS,
    );
    liar.lies = {
      producers: () => votedIn(EVIL.slice(0, 20)),
      block: (number) => (number === ahead.number ? ahead : number > ahead.number ? null : undefined),
    };
    await world.pass(120_000);
    expect(await evilNow(world)).toBe(0);
    liar.lies = {};
    await world.run(30);
    expect(await evilNow(world)).toBe(0);
    expect(world.behind()).toBe(0);
    expect(world.unrecorded()).toBeLessThanOrEqual(8);
  });
});

test('producers that stay the same are stored once, however often the service starts', async () => {
  const { world } = await start(['a', 'b']);
  for (let starts = 0; starts < 4; starts++) {
    world.restartAfter(2);
    await world.run(2);
  }
  expect(await setCount(world)).toBe(1);
});

test('a stale second operator of three delays nothing after a vote, and is told', async () => {
  const { world, chain, nodes } = await start(['a', 'stale', 'c']);
  const stale = nodes[1] as AttackNode;
  stale.lies = { producers: () => HONEST };
  chain.producers = votedIn(keysNamed('new', MOST_NEW));
  for (let blocks = 0; blocks < 60; blocks++) {
    await world.run(1);
    expect(world.behind()).toBe(0);
  }
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
  expect(new Set(world.reports.map(({ node, problem }) => `${node} ${problem}`))).toEqual(new Set(['stale disagrees']));
});

test('a vote after days without one, which brings as many new producers as one can, delays nothing', async () => {
  const { world, chain } = await start(['a', 'b']);
  for (let periods = 0; periods < 8; periods++) {
    chain.mine([], { gapMs: PERIOD_MS });
    await world.run(1);
  }
  await world.run(30);
  chain.producers = votedIn(keysNamed('new', MOST_NEW));
  chain.mine([], { gapMs: PERIOD_MS });
  await world.run(60);
  expect(world.behind()).toBe(0);
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
  expect(world.reports).toEqual([]);
  expect(await world.alarms()).toEqual([]);
});

test('a start within a minute after a vote reads the last blocks of a producer that was voted out', async () => {
  const { world, chain } = await start(['a', 'b']);
  // The producer that is voted out makes the blocks at multiples of 27: it has just made its last one.
  while (chain.head().number % HONEST.length !== 0) await world.run(1);
  chain.producers = votedIn(keysNamed('new', 1));
  world.restartAfter(4);
  await world.pass(2500);
  expect(world.behind()).toBe(0);
  await world.run(60);
  expect(world.behind()).toBe(0);
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
  expect(world.reports).toEqual([]);
});

test('a longer downtime in which producers came and went blames no honest node', async () => {
  const { world, chain } = await start(['a', 'b']);
  // In between there were eight producers that were never queried, several in each range.
  chain.producers = votedIn(keysNamed('between', MOST_NEW));
  world.restartAfter(60);
  chain.producers = HONEST;
  world.restartAfter(60);
  await world.run(12);
  expect(world.behind()).toBe(0);
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
  expect(world.reports).toEqual([]);
  expect(await world.alarms()).toEqual([]);
});

test('one operator of three that is down keeps no block of a producer voted out meanwhile from being read', async () => {
  const { world, chain, nodes } = await start(['a', 'down', 'c']);
  const down = nodes[1] as AttackNode;
  chain.producers = votedIn(keysNamed('between', MOST_NEW));
  world.restartAfter(60);
  chain.producers = HONEST;
  world.restartAfter(60);
  down.lies = { answer: () => 'refuse' };
  // It may be queried for irreversible blocks without success, and another one only the next time.
  await world.run(30);
  expect(world.behind()).toBe(0);
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
  expect(world.reports.filter(({ node }) => node !== 'down')).toEqual([]);
});
