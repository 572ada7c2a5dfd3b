import { afterEach, expect, test } from 'vitest';
import { type AttackChain, blockAfter, chainOf, EVIL, HONEST, keyAt, SLOT_MS } from './attack-chain.ts';
import { createAttackNode } from './attack-node.ts';
import { type AttackWorld, createAttackWorld } from './attack-world.ts';

let world: AttackWorld | null = null;
afterEach(async () => {
  await world?.stop();
  world = null;
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
  expect(await made.stored()).toEqual({ cursors: 1, sets: 1 });
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
  expect((await made.stored()).cursors).toBe(0);
  node.lies = {};
  await made.run(5);
  expect(made.behind()).toBe(0);
  await made.cursor();
});

test('at the first start, a node that names producers who make no blocks is not asked for blocks without end', async () => {
  const chain = chainOf(140);
  const node = createAttackNode('lone', chain);
  // Only one of them actually makes blocks.
  const named = [keyAt(HONEST, chain.solid().number), ...EVIL.slice(1)];
  node.lies.producers = () => named;
  const made = await createAttackWorld({ chain, nodes: [node], agreement: 1, isFirstStart: true });
  world = made;
  await made.step();
  expect(made.errors[0]).toContain('too few');
  expect(await made.stored()).toEqual({ cursors: 0, sets: 0 });
  // Block 0, and the blocks before the newest one.
  expect(node.requests.get('/wallet/getblock')).toBe(1 + 108);
  // The false producers that it named don't count against the true ones.
  node.lies = {};
  await made.run(5);
  expect(await made.stored()).toEqual({ cursors: 1, sets: 1 });
  expect(made.behind()).toBe(0);
  await made.cursor();
});

test('at the first start, back ends behind one address that are behind each other start it all the same', async () => {
  const chain = chainOf(60);
  const node = createAttackNode('balanced', chain);
  // The endpoint for the newest irreversible block is six blocks ahead of the one that returns a block by height.
  node.lies.answer = ({ path, body }) =>
    path.startsWith('/walletsolidity') && Number(body.id_or_num) > chain.solid().number - 6 ? {} : undefined;
  const made = await createAttackWorld({ chain, nodes: [node], agreement: 1, isFirstStart: true });
  world = made;
  await made.step();
  expect(made.errors).toEqual([]);
  expect((await made.cursor()).number).toBe(chain.solid().number - 18);
});

/** How far the clock of the server that created the first invoice may be ahead. */
const MARGIN_MS = 10 * 60_000;

/** Starts on a network that has an invoice from the time of this block. Ends with the block after which everything is read. */
async function startWithInvoiceOf(chain: AttackChain, number: number, node = createAttackNode('lone', chain)) {
  let firstRead = Number.POSITIVE_INFINITY;
  node.lies.answer = ({ body: { startNum = firstRead } }) => {
    firstRead = Math.min(firstRead, startNum);
    return undefined;
  };
  const made = await createAttackWorld({ chain, nodes: [node], agreement: 1, isFirstStart: true });
  world = made;
  await made.invoice();
  await made.query('alter table invoices disable trigger invoices_keep_what_they_are', []);
  await made.query('update invoices set created_at = $1', [new Date(chain.at(number)?.time ?? 0)]);
  await made.step();
  expect(made.errors).toEqual([]);
  return { made, start: chain.at(firstRead - 1) };
}

test('at the first start, with an invoice from long before, the start is older than it, whoever made blocks then', async () => {
  const chain = chainOf(40);
  // Too few to make anything irreversible by themselves.
  for (let count = 0; count < 520; count += 1) chain.mine([], { key: keyAt(HONEST, count % 18) });
  const { number, time: invoiceTime } = chain.head();
  for (let count = 0; count < 300; count += 1) chain.mine();
  const { made, start } = await startWithInvoiceOf(chain, number);
  expect(start?.time).toBe(invoiceTime - MARGIN_MS - SLOT_MS);
  await made.run(5);
  expect(made.behind()).toBe(0);
});

test('at the first start, a node that has not all blocks since block 0 is enough, if it has those since the first invoice', async () => {
  const chain = chainOf(600);
  const node = createAttackNode('young', chain);
  const oldest = chain.head().number - 400;
  node.lies.block = (number) => (number < oldest ? null : undefined);
  const invoiceTime = chain.head().time;
  const { start } = await startWithInvoiceOf(chain, chain.head().number, node);
  expect(start?.time).toBe(invoiceTime - MARGIN_MS - SLOT_MS);
});

test('of two processes that start a network the one that comes later leaves the cursor and the producers of the other in force', async () => {
  const chain = chainOf(60);
  const node = createAttackNode('lone', chain);
  const made = await createAttackWorld({ chain, nodes: [node], agreement: 1, isFirstStart: true });
  world = made;
  const { number, id, time } = chain.solid();
  const { ask } = node;
  let others = 0;
  node.ask = async (question, options) => {
    // While this one counts who built on the block, the other finishes.
    if (question.http.path === '/wallet/getblock' && others === 0 && node.requests.has('/wallet/listwitnesses')) {
      others += 1;
      await made.query(
        `insert into chain_cursors (network, solid_number, solid_id, solid_time) values ('nile', $1, decode($2, 'hex'), $3)`,
        [number, id, new Date(time)],
      );
      const accounts = HONEST.map(({ account }) => account).sort();
      await made.query(
        `insert into producer_sets (network, chain_time, reason, producers, nodes, replaced_after) values ('nile', $1, 'first', $2, '{other}', $1)`,
        [new Date(time), JSON.stringify(accounts.map((account) => ({ account, signer: account })))],
      );
    }
    return ask(question, options);
  };
  await made.step();
  expect(others).toBe(1);
  expect((await made.cursor()).number).toBe(number);
  expect(await made.stored()).toEqual({ cursors: 1, sets: 1 });
});
