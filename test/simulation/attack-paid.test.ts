import { afterEach, describe, expect, test } from 'vitest';
import { RANGE_BLOCKS } from '../../src/core/chain/verify/read-block.ts';
import { longTest } from '../support/some-cases.ts';
import { type Block, blockAfter, createAttackChain, directTransfer, EVIL, evilBranch, keyAt } from './attack-chain.ts';
import { createAttackNode } from './attack-node.ts';
import { type AttackWorld, createAttackWorld } from './attack-world.ts';

let world: AttackWorld | null = null;
afterEach(async () => {
  await world?.stop();
  world = null;
});

/** Starts a watcher that knows the honest producers, and an invoice that is never paid. */
async function start(names: readonly string[]) {
  const chain = createAttackChain();
  chain.mine();
  const nodes = names.map((name) => createAttackNode(name, chain));
  const [liar] = nodes;
  if (liar === undefined) throw new Error('no node');
  const made = await createAttackWorld({ chain, nodes, agreement: names.length > 1 ? 2 : 1 });
  world = made;
  await made.run(25);
  const { account, amount } = await made.invoice();
  return { world: made, chain, nodes, liar, payment: directTransfer(account, amount) };
}

describe.each([
  ['one node of one', ['liar']],
  ['one node of three', ['liar', 'b', 'c']],
])('%s', (_, names) => {
  longTest('after a downtime, a block that nobody’s child names is never counted as built upon', async () => {
    const { world, chain, nodes, liar, payment } = await start(names);
    const base = await world.cursor();
    world.restartAfter(90);
    // Without logs, ranges are short, so the producers are queried again between two of them.
    for (const node of nodes) node.hasJsonRpc = false;
    // Unknown producers are let in below the irreversible blocks. Then the genuine blocks follow, and the walk back is lied to.
    const junk = evilBranch(base, 7 * RANGE_BLOCKS);
    const parent = chain.at(base.number + 19);
    if (parent === undefined) throw new Error('too few blocks');
    const forged = blockAfter(parent, keyAt(EVIL, 1), [payment]);
    let isWalking = false;
    liar.lies = {
      block: (number, path) => {
        if (path === '/wallet/getblock' && number > base.number) isWalking = true;
        if (isWalking) return number === forged.number ? forged : undefined;
        return junk[number - base.number - 1];
      },
      // A range may take long, so the producers may be queried again when it arrives.
      answer: ({ path }) => {
        if (path.endsWith('limitnext')) world.clock.ms += 4000;
        return undefined;
      },
    };
    for (let i = 0; i < 40 && !isWalking; i++) await world.step();
    expect(isWalking).toBe(true);
    for (let i = 0; i < 8; i++) await world.step();
    expect(await world.statuses()).toEqual(['PENDING']);
    // It continues if there are other nodes; the only node becomes honest. Nothing false remains.
    if (nodes.length === 1) liar.lies = {};
    await world.run(8);
    expect(await world.inventions()).toEqual([]);
    expect(await world.statuses()).toEqual(['PENDING']);
    expect(world.behind()).toBe(0);
    expect(world.unrecorded()).toBeLessThanOrEqual(8);
  });

  test('at the head, a block that nobody’s child names is never counted as built upon', async () => {
    const { world, chain, nodes, liar, payment } = await start(names);
    const junk = blockAfter(chain.head(), keyAt(EVIL, 0));
    const forged = blockAfter(chain.head(), keyAt(EVIL, 1), [payment]);
    let shown: Block = junk;
    liar.lies = { solid: () => shown, block: (number) => (number === shown.number ? shown : undefined) };
    await world.pass(3500);
    shown = forged;
    await world.run(24);
    expect(await world.statuses()).toEqual(['PENDING']);
    expect(world.reports).toContainEqual(expect.objectContaining({ node: 'liar', problem: 'unverifiable' }));
    liar.lies = {};
    if (nodes.length > 1) nodes.shift();
    await world.run(30);
    expect(await world.inventions()).toEqual([]);
    expect(world.behind()).toBe(0);
    expect(world.unrecorded()).toBeLessThanOrEqual(8);
  });
});
