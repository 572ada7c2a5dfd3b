import { afterEach, expect, test } from 'vitest';
import { longTest, someCases } from '../support/some-cases.ts';
import { createAttackChain, directTransfer, innerTransfer, type Transaction } from './attack-chain.ts';
import { type AttackNode, createAttackNode, type Lies } from './attack-node.ts';
import { type AttackWorld, createAttackWorld } from './attack-world.ts';

let world: AttackWorld | null = null;
afterEach(async () => {
  await world?.stop();
  world = null;
});

/** Every block of the main network contains this: transfers inside other contracts. */
const filler = () => [innerTransfer('33'.repeat(20), 5n)];
const MINUTE_MS = 60_000;

async function start() {
  const chain = createAttackChain();
  chain.mine();
  const nodes = ['a', 'b'].map((name) => createAttackNode(name, chain));
  const [first, second] = nodes as [AttackNode, AttackNode];
  const made = await createAttackWorld({ chain, nodes, agreement: 2 });
  world = made;
  await made.run(25, filler);
  return { world: made, chain, nodes, first, second };
}

test('while the second of two operators is down, the one that is left answers no more than 2.5 requests a block', async () => {
  const { world, nodes, first, second } = await start();
  const { account, amount } = await world.invoice();
  nodes.splice(1);
  await world.run(1, () => [directTransfer(account, amount)]);
  const before = first.requestCount();
  const blocks = 80;
  await world.run(blocks, filler);
  expect((first.requestCount() - before) / blocks).toBeLessThanOrEqual(2.5);
  expect(world.behind()).toBe(0);
  // The waiting blocks are settled as soon as the other operator returns.
  nodes.push(second);
  await world.run(60, filler);
  expect(await world.statuses()).toEqual(['PAID']);
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
});

test('within a minute after the second of two operators went down, an alarm names it, and it ends when the operator is back', async () => {
  const { world, chain, nodes, second } = await start();
  const number = chain.head().number + 1;
  nodes.splice(1);
  await world.run(5, filler);
  expect(await world.alarms()).toEqual([]);
  await world.run(15, filler);
  expect(await world.alarms()).toEqual(['nodes-disagree']);
  expect(await world.alarmDetail('nodes-disagree')).toMatch(
    new RegExp(`^block ${number} .* waits until 2 operators return the same USDT logs; so far a: .*No invoice paid`),
  );
  nodes.push(second);
  await world.run(20, filler);
  expect(await world.alarms()).toEqual([]);
});

test('while two operators differ about blocks, each answers no more than 8 requests a block', async () => {
  const { world, first, second } = await start();
  second.lies = { answer: ({ path }) => (path.endsWith('infobyblocknum') ? [] : undefined) };
  const before = [first.requestCount(), second.requestCount()] as const;
  const blocks = 40;
  await world.run(blocks, filler);
  expect((first.requestCount() - before[0]) / blocks).toBeLessThanOrEqual(2.5);
  expect((second.requestCount() - before[1]) / blocks).toBeLessThanOrEqual(8);
});

test('an invoice that was paid in time does not expire while operators do not agree on the block of its payment', async () => {
  const { world, chain, nodes, second } = await start();
  const { account, amount } = await world.invoice();
  // Slots without a block, which pass quickly here.
  chain.mine(filler(), { gapMs: 25 * MINUTE_MS });
  await world.run(20, filler);
  nodes.splice(1);
  await world.run(1, () => [innerTransfer(account, amount)]);
  chain.mine(filler(), { gapMs: 10 * MINUTE_MS });
  await world.run(20, filler);
  expect(await world.statuses()).toEqual(['PENDING']);
  nodes.push(second);
  await world.run(45, filler);
  expect(await world.statuses()).toEqual(['PAID']);
  expect(await world.events()).not.toContain('invoice.expired');
});

test('an invoice that was paid in time does not expire while a watcher that starts again verifies the block of its payment', async () => {
  const { world, chain, nodes, second } = await start();
  const { account, amount } = await world.invoice();
  chain.mine(filler(), { gapMs: 25 * MINUTE_MS });
  await world.run(1, filler);
  nodes.splice(1);
  await world.run(1, () => [innerTransfer(account, amount)]);
  chain.mine(filler(), { gapMs: 10 * MINUTE_MS });
  await world.run(10, filler);
  expect(await world.statuses()).toEqual(['PENDING']);
  nodes.push(second);
  world.restartAfter(0);
  await world.run(45, filler);
  expect(await world.statuses()).toEqual(['PAID']);
  expect(await world.events()).not.toContain('invoice.expired');
});

test('an invoice stays CONFIRMING when a watcher starts again and only one operator shows the block of its payment now', async () => {
  const { world, nodes, second } = await start();
  const { account, amount } = await world.invoice();
  await world.run(1, () => [innerTransfer(account, amount)]);
  await world.run(3, filler);
  expect(await world.statuses()).toEqual(['CONFIRMING']);
  nodes.splice(1);
  world.restartAfter(0);
  await world.run(10, filler);
  expect(await world.statuses()).toEqual(['CONFIRMING']);
  nodes.push(second);
  await world.run(45, filler);
  expect(await world.statuses()).toEqual(['PAID']);
  expect(await world.events()).not.toContain('invoice.pending');
});

test('an invoice that nobody paid expires when the operators agree on the blocks up to its deadline, and not before', async () => {
  const { world, chain, nodes, second } = await start();
  await world.invoice();
  nodes.splice(1);
  await world.run(1, filler);
  chain.mine(filler(), { gapMs: 31 * MINUTE_MS });
  await world.run(5, filler);
  expect(await world.statuses()).toEqual(['PENDING']);
  nodes.push(second);
  await world.run(5, filler);
  expect(await world.statuses()).toEqual(['EXPIRED']);
});

longTest(
  'with a full window the watcher asks at the network’s rhythm, and goes on by itself when operators agree again',
  async () => {
    const { world, nodes, first, second } = await start();
    nodes.splice(1);
    world.restartAfter(640, filler);
    await world.pass(15_000);
    const before = { steps: world.steps(), requests: first.requestCount() };
    const blocks = 20;
    await world.run(blocks, filler);
    expect((world.steps() - before.steps) / blocks).toBeLessThanOrEqual(2);
    expect((first.requestCount() - before.requests) / blocks).toBeLessThanOrEqual(2.5);
    nodes.push(second);
    for (let minutes = 0; minutes < 12 && world.unrecorded() > 8; minutes++) await world.run(20, filler);
    expect(world.unrecorded()).toBeLessThanOrEqual(8);
    expect(world.behind()).toBe(0);
  },
);

/** A node's answer that claims these terms of the contract. */
function termsOf({
  owner,
  basisPoints,
  maxFee,
}: {
  owner: string;
  basisPoints: bigint;
  maxFee: bigint;
}): NonNullable<Lies['answer']> {
  const words: Record<string, string> = {
    'owner()': owner,
    'basisPointsRate()': basisPoints.toString(16),
    'maximumFee()': maxFee.toString(16),
  };
  return ({ path, body: { function_selector: method = '' } }) =>
    path.endsWith('/triggerconstantcontract')
      ? { result: { result: true }, constant_result: [(words[method] ?? '').padStart(64, '0')] }
      : undefined;
}

test.each(
  someCases(
    [
      ['one operator', 1],
      ['both operators, which name different terms,', 2],
    ],
    2,
  ),
)('a payment that %s shows as split between its address and another counts whole', async (_who, liars) => {
  const { world, chain, nodes } = await start();
  const { account, amount } = await world.invoice();
  const split = ({ id, hex, logs: [log] }: Transaction): Transaction => {
    const [from, to, rest] = [log?.from ?? '', log?.to ?? '', (log?.amount ?? 0n) - 1000n];
    return {
      id,
      hex,
      logs: [
        { from, to, amount: 1000n },
        { from, to: '44'.repeat(20), amount: rest },
      ],
    };
  };
  for (const [index, { lies }] of nodes.slice(0, liars).entries()) {
    lies.block = (number) => {
      const block = chain.at(number);
      const isPayment = block?.transactions[0]?.logs[0]?.to === account;
      return isPayment ? { ...block, transactions: block.transactions.map(split) } : undefined;
    };
    lies.answer = termsOf({ owner: '44'.repeat(20), basisPoints: 10n + BigInt(index), maxFee: amount - 1000n });
  }
  await world.run(1, () => [directTransfer(account, amount)]);
  await world.run(45);
  expect(await world.statuses()).toEqual(['PAID']);
  expect(await world.query('select verified, amount_micro from transfers')).toEqual([
    { verified: 'proven', amount_micro: amount.toString() },
  ]);
});

test('with Tether’s fee on, a transfer to the contract’s owner stops nothing and counts with what arrived', async () => {
  const { world, nodes } = await start();
  const owner = '44'.repeat(20);
  const { account, amount } = await world.invoice();
  const fee = { owner, amount: 7n };
  // A thousandth, at most 7: the contract's real terms, so it isn't a lie.
  for (const { lies } of nodes) lies.answer = termsOf({ owner, basisPoints: 10n, maxFee: 7n });
  // For a transfer to the owner, both logs are to the owner.
  const toOwner = () => [directTransfer(owner, 1_000_000n, fee)];
  await world.run(1, toOwner);
  await world.run(1, () => [directTransfer(account, amount + fee.amount, fee)]);
  await world.run(45, toOwner);
  expect(world.behind()).toBe(0);
  expect(world.unrecorded()).toBeLessThanOrEqual(8);
  expect(world.reports).toEqual([]);
  expect(await world.statuses()).toEqual(['PAID']);
  const rows = await world.query('select verified, amount_micro from transfers');
  expect(rows).toEqual([{ verified: expect.stringContaining('agreed'), amount_micro: amount.toString() }]);
});
