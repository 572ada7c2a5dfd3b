import { concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import type { ShownBlock } from '@quittance/tron/shown-block';
import { afterEach, expect, test } from 'vitest';
import { longTest, someCases } from '../support/some-cases.ts';
import {
  blockAfter,
  createAttackChain,
  directTransfer,
  EVIL,
  innerTransfer,
  keyAt,
  type Transaction,
} from './attack-chain.ts';
import { type AttackNode, createAttackNode } from './attack-node.ts';
import { type AttackWorld, createAttackWorld } from './attack-world.ts';

let world: AttackWorld | null = null;
afterEach(async () => {
  await world?.stop();
  world = null;
});

/** Anyone can have this mined: a field unknown to java-tron, which it stores and its JSON hides. */
const poisoned = (transaction: Transaction): Transaction => ({ ...transaction, hidden: '3001' });
const filler = () => [innerTransfer('33'.repeat(20), 5n)];

async function start(names: readonly string[], agreement = 2) {
  const chain = createAttackChain();
  chain.mine();
  const nodes = names.map((name) => createAttackNode(name, chain));
  const made = await createAttackWorld({ chain, nodes, agreement });
  world = made;
  await made.run(25, filler);
  return { world: made, chain, nodes };
}

test('a payment in a block that hides bytes from JSON, and one after it, are paid by the word of two operators', async () => {
  const { world } = await start(['a', 'b']);
  const [first, second] = [await world.invoice(), await world.invoice()];
  await world.run(1, () => [poisoned(directTransfer(first.account, first.amount))]);
  await world.run(1, () => [directTransfer(second.account, second.amount)]);
  await world.run(45, filler);
  expect(await world.statuses()).toEqual(['PAID', 'PAID']);
  expect(await world.query('select verified from transfers order by block_number')).toEqual([
    { verified: 'agreed:2' },
    { verified: 'proven' },
  ]);
  expect(await world.alarms()).toEqual(['unproven-block']);
  expect(world.reports).toEqual([]);
  expect(world.behind()).toBe(0);
});

test('the same when many blocks hide bytes, and after the service was away', async () => {
  const { world } = await start(['a', 'b']);
  const { account, amount } = await world.invoice();
  const transactions = () => filler().map(poisoned);
  await world.run(5, transactions);
  await world.run(1, () => [poisoned(directTransfer(account, amount))]);
  world.restartAfter(40, transactions);
  await world.run(60, filler);
  expect(await world.statuses()).toEqual(['PAID']);
  expect(world.behind()).toBe(0);
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
});

test('two operators that agree are not believed for ever: after 60 such blocks in a row the next one is held until a person lets it pass', async () => {
  const { world, chain } = await start(['a', 'b']);
  const first = chain.head().number + 1;
  const held = first + 60;
  const transactions = () => filler().map(poisoned);
  await world.run(70, transactions);
  const { account, amount } = await world.invoice();
  await world.run(1, () => [poisoned(directTransfer(account, amount))]);
  await world.run(40, filler);
  expect(await world.statuses()).toEqual(['CONFIRMING']);
  expect((await world.cursor()).number).toBe(held - 1);
  expect(await world.alarmDetail('unverifiable-block')).toMatch(
    new RegExp(`^block ${held} .* is on hold, because .*--block ${held} --reason "…"$`),
  );
  await world.letPass(held);
  await world.run(5, filler);
  expect(await world.statuses()).toEqual(['PAID']);
  expect(await world.alarms()).toEqual(['unproven-block']);
});

longTest('some among others, proven ones, are held from the 241st of an hour on', async () => {
  const { world, chain } = await start(['a', 'b']);
  const first = chain.head().number + 1;
  let made = 0;
  await world.run(310, () => {
    made += 1;
    return made % 5 === 0 ? filler() : filler().map(poisoned);
  });
  await world.run(40, filler);
  // Four in five aren't proven, so there are 240 among the first 300 blocks.
  expect((await world.cursor()).number).toBe(first + 299);
});

test.each(
  someCases(
    [
      ['at the head', 0],
      ['in the past', 40],
    ],
    2,
  ),
)(
  'one hostile operator of three that shows a block of its own in place of one that hides bytes, %s, stops nothing',
  async (_when, away) => {
    const { world, chain, nodes } = await start(['a', 'liar', 'c']);
    const { account, amount } = await world.invoice();
    const [, liar] = nodes;
    if (liar === undefined) throw new Error('there are three nodes');
    liar.lies.block = (number) => {
      const [block, parent] = [chain.at(number), chain.at(number - 1)];
      const isOurs = block?.transactions.some(({ hidden }) => hidden !== undefined) === true;
      return isOurs && parent !== undefined ? blockAfter(parent, keyAt(EVIL, number)) : undefined;
    };
    await world.run(1, filler);
    if (away === 0) await world.run(1, () => [poisoned(directTransfer(account, amount))]);
    else {
      world.restartAfter(1, () => [poisoned(directTransfer(account, amount))]);
      world.restartAfter(away, filler);
    }
    await world.run(45, filler);
    expect(await world.statuses()).toEqual(['PAID']);
    expect(await world.inventions()).toEqual([]);
    expect(world.behind()).toBe(0);
  },
);

test('with one operator nothing of such a block is believed: it is held, told, and goes on when a second one is there', async () => {
  const { world, chain, nodes } = await start(['a'], 1);
  const { account, amount } = await world.invoice();
  await world.run(1, () => [poisoned(directTransfer(account, amount))]);
  await world.run(30, filler);
  expect(await world.statuses()).toEqual(['PENDING']);
  expect(world.errors.at(-1)).toContain('is not proven: JSON hides bytes');
  expect(world.reports).toEqual([]);
  nodes.push(createAttackNode('b', chain));
  await world.run(60, filler);
  expect(await world.statuses()).toEqual(['PAID']);
  expect(world.behind()).toBe(0);
});

/** Gives a node a gRPC port: its single blocks have the bytes that JSON hides. */
function showBytes(node: AttackNode, chain: ReturnType<typeof createAttackChain>): void {
  const { ask } = node;
  node.hasBytes = true;
  node.ask = async (question, options) => {
    const answer = await ask(question, options);
    if (question.http.path !== '/wallet/getblock' || answer === null) return answer;
    const shown = answer as unknown as ShownBlock;
    const block = chain.at(Number((question.http.body as { id_or_num: string }).id_or_num));
    const transactions = [...shown.transactions].map((each, index) => ({
      ...each,
      whole: concatBytes(each.whole, hexToBytes(block?.transactions[index]?.hidden ?? '')),
    }));
    return { ...shown, transactions } as unknown as typeof answer;
  };
}

test('an operator that proves a block of the past and withholds its logs does not hold up the others', async () => {
  const { world, chain, nodes } = await start(['a', 'withholds', 'c']);
  const { account, amount } = await world.invoice();
  const number = chain.head().number + 20;
  for (const node of nodes.slice(1)) {
    showBytes(node, chain);
    const isWithheld = ({ path, body }: { path: string; body: { num?: number } }) =>
      path.endsWith('infobyblocknum') && body.num === number;
    node.lies = { answer: (asked) => (node.origin === 'withholds' && isWithheld(asked) ? [] : undefined) };
  }
  world.restartAfter(60, () =>
    chain.head().number + 1 === number ? [poisoned(directTransfer(account, amount))] : filler(),
  );
  await world.run(40, filler);
  expect({ statuses: await world.statuses(), behind: world.behind() }).toEqual({ statuses: ['PAID'], behind: 0 });
  expect(await world.query('select verified from transfers')).toEqual([{ verified: 'proven' }]);
});
