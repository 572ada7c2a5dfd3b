import { afterEach, expect, test } from 'vitest';
import { someCases } from '../support/some-cases.ts';
import { blockAfter, createAttackChain, directTransfer, EVIL, innerTransfer, keyAt } from './attack-chain.ts';
import { type AttackNode, createAttackNode } from './attack-node.ts';
import { type AttackWorld, createAttackWorld } from './attack-world.ts';

let world: AttackWorld | null = null;
afterEach(async () => {
  await world?.stop();
  world = null;
});

async function start(names: readonly string[]) {
  const chain = createAttackChain();
  chain.mine();
  const nodes = names.map((name) => createAttackNode(name, chain));
  const made = await createAttackWorld({ chain, nodes, agreement: Math.min(2, names.length) });
  world = made;
  await made.run(25);
  const known = [...nodes];
  const bent = (name: string) => known.find(({ origin }) => origin === name) as AttackNode;
  return { world: made, chain, nodes, bent };
}

test.each(someCases([['first'], ['second'], ['third']], 3))(
  'one false word of the %s of three operators about what is irreversible leaves no trace',
  async (place) => {
    const { world, chain, bent } = await start(['first', 'second', 'third']);
    const number = chain.head().number + 1_000_000;
    const parent = {
      number,
      id: `${number.toString(16).padStart(16, '0')}${'ab'.repeat(24)}`,
      time: chain.head().time,
    };
    const junk = blockAfter(parent, keyAt(EVIL, 0));
    bent(place).lies = { solid: () => junk };
    const { account, amount } = await world.invoice();
    await world.run(1, () => [directTransfer(account, amount)]);
    await world.run(30);
    expect(world.behind()).toBe(0);
    expect(await world.statuses()).toEqual(['PAID']);
    // The first one is queried again when the process restarts.
    world.restartAfter(10);
    await world.run(5);
    expect(world.behind()).toBe(0);
    bent(place).lies = {};
    await world.run(30);
    expect(world.reports.filter(({ node }) => node !== place)).toEqual([]);
    expect(world.behind()).toBe(0);
    expect(world.unrecorded()).toBeLessThanOrEqual(8);
  },
);

test.each(
  someCases(
    [
      ['first', 'is stuck on its irreversible block'],
      ['second', 'is stuck on its irreversible block'],
      ['third', 'is stuck on its irreversible block'],
      ['first', 'refuses to say what is irreversible'],
      ['second', 'refuses to say what is irreversible'],
      ['third', 'refuses to say what is irreversible'],
    ],
    2,
  ),
)('where the %s of three operators %s, invoices become PAID all the same', async (place, how) => {
  const { world, chain, bent } = await start(['first', 'second', 'third']);
  const stuck = chain.solid();
  bent(place).lies = how.startsWith('refuses')
    ? { answer: ({ path }) => (path.startsWith('/walletsolidity') ? 'refuse' : undefined) }
    : { solid: () => stuck };
  const { account, amount } = await world.invoice();
  await world.run(1, () => [directTransfer(account, amount)]);
  await world.run(30);
  expect(await world.statuses()).toEqual(['PAID']);
  expect(world.behind()).toBe(0);
});

test('a node that shows no ranges is caught up with all the same, block by block', async () => {
  const { world, bent } = await start(['only']);
  bent('only').lies = { answer: ({ path }) => (path.endsWith('limitnext') ? 'refuse' : undefined) };
  world.restartAfter(120, () => [innerTransfer('33'.repeat(20), 5n)]);
  await world.run(12);
  expect(world.behind()).toBe(0);
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
});

test('a node whose infos come a moment after the block is no fault, and the block is read in the same block time', async () => {
  const { world, chain, bent } = await start(['only']);
  let early = 0;
  bent('only').lies = {
    // Behind one address, the back end for infos is later than the one for blocks.
    answer: ({ path, body }) => {
      const { time } = chain.at(body.num ?? 0) ?? chain.start;
      if (!path.endsWith('infobyblocknum') || world.clock.ms >= time + 700) return undefined;
      early += 1;
      return [];
    },
  };
  for (let blocks = 0; blocks < 30; blocks++) {
    await world.run(1, () => [innerTransfer('33'.repeat(20), 5n)]);
    expect(world.behind()).toBe(0);
  }
  expect(early).toBeGreaterThan(0);
  expect(world.reports).toEqual([]);
  expect(world.errors).toEqual([]);
});

test.each(
  someCases(
    [
      [1, ['bent']],
      [3, ['bent', 'b', 'c']],
    ],
    2,
  ),
)(
  'of %i operators the first, who shows the infos of each block when it is asked again, delays none by more than a block',
  async (_, names) => {
    const { world, bent } = await start(names);
    const asked = new Set<number>();
    bent('bent').lies = {
      answer: ({ path, body }) => {
        if (!path.endsWith('infobyblocknum') || body.num === undefined || asked.has(body.num)) return undefined;
        asked.add(body.num);
        return [];
      },
    };
    await world.run(60, () => [directTransfer('33'.repeat(20), 5n)]);
    expect(world.behind()).toBeLessThanOrEqual(1);
  },
);

test('of three operators the first, who shows blocks without their infos, is left for another one within two blocks', async () => {
  const { world, nodes, bent } = await start(['bent', 'b', 'c']);
  bent('bent').lies = { answer: ({ path }) => (path.endsWith('infobyblocknum') ? [] : undefined) };
  for (let blocks = 0; blocks < 12; blocks++) {
    await world.run(1, () => [directTransfer('33'.repeat(20), 5n)]);
    // The pool pauses a node that was reported.
    if (world.reports.length > 0 && nodes[0] === bent('bent')) nodes.shift();
    expect(world.behind()).toBeLessThanOrEqual(2);
  }
  expect(world.reports.filter(({ node }) => node !== 'bent')).toEqual([]);
  expect(world.behind()).toBe(0);
});
