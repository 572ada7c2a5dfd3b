import { bytesToHex } from '@noble/hashes/utils.js';
import { createPoison } from '@quittance/devnet';
import { PAYER, USDT } from '@quittance/devnet/evm/keys';
import type { Fault } from '@quittance/devnet/faults/faults';
import { createPayer } from '@quittance/devnet/payer';
import { accountToAddress } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import { check } from './invariants/all.ts';
import { createWorld } from './world/world.ts';

const SLOT_MS = 30_000;
/** Five producers make a block irreversible in four slots; pending work is retried within a few. */
const WHILE_MS = 12 * SLOT_MS;
const NO_TROUBLES = { seed: 23, minutes: 0, troubles: new Set<never>() };

/**
 * Starts operators with only JSON, the first of which lies about a block that a stranger has poisoned. `paid` is paid in it, and the lies
 * are about `unpaid`.
 */
async function liveThrough(kind: Fault['kind'], nodeCount: number) {
  const languages = Array.from({ length: nodeCount }, () => 'json' as const);
  const shape = { nodeCount, languages, agreement: 2, slotMs: SLOT_MS, producers: 5 };
  const processes = [['api', 'watcher', 'webhooks']] as const;
  const world = await createWorld(NO_TROUBLES, { shape: { ...shape, processes }, isIdle: true });
  const { shops, integrators, nodes, chain } = world.hands;
  const statuses = async () => {
    const rows = await world.query('select id, status from public.invoices');
    return Object.fromEntries(rows.map(({ id, status }) => [id === paid?.invoiceId ? 'paid' : 'unpaid', status]));
  };
  for (let orders = 0; orders < 2; orders += 1) {
    const [shop] = shops;
    if (shop !== undefined) void integrators.order(shop);
    await world.run(SLOT_MS);
  }
  const [paid, unpaid] = integrators.acknowledged;
  if (paid === undefined || unpaid === undefined) throw new Error('the orders were not acknowledged');
  const asked = ({ account, payableMicro }: typeof paid) => ({
    to: accountToAddress(account),
    amountMicro: payableMicro,
  });
  const { to, amountMicro } = asked(unpaid);
  // A split divides the real payment, so only its halves are certain to be smaller.
  nodes.nodes[0]?.setFaults({ kind, to, ...(kind === 'fee-split' ? {} : { amountMicro }) });
  createPoison(chain.ledger, chain.now)('unknown-outer-field');
  const wallet = createPayer({
    ...{ nodeUrl: 'http://wallet.test', privateKey: bytesToHex(PAYER.privateKey) },
    ...{ ask: chain.askHealthyNode, now: chain.now },
  });
  await wallet.transfer({ contract: accountToAddress(USDT), ...asked(paid) });
  await world.run(WHILE_MS);
  const meanwhile = { ...(await statuses()), violations: await check(world.truth, 'step') };
  nodes.nodes[0]?.setFaults();
  world.calm();
  await world.run(WHILE_MS);
  const atLast = { ...(await statuses()), violations: await check(world.truth, 'quiet') };
  const evidence = await world.query('select verified from public.transfers');
  await world.stop();
  return { meanwhile, atLast, evidence };
}

const TRUE_IN_THE_END = { paid: 'PAID', unpaid: 'PENDING', violations: [] };

test.each(['forged-direct-log', 'fee-split', 'forged-direct-transfer'] as const)(
  'a poisoned block of which one of two JSON operators lies (%s) waits until it is well, and nothing false is PAID',
  async (kind) => {
    const { meanwhile, atLast, evidence } = await liveThrough(kind, 2);
    expect(meanwhile).toEqual({ paid: 'PENDING', unpaid: 'PENDING', violations: [] });
    expect(atLast).toEqual(TRUE_IN_THE_END);
    expect(evidence).toEqual([{ verified: 'agreed:2' }]);
  },
);

test('two of three JSON operators decide on a poisoned block while the third lies', async () => {
  const { meanwhile, atLast, evidence } = await liveThrough('forged-direct-log', 3);
  expect(meanwhile).toEqual(TRUE_IN_THE_END);
  expect(atLast).toEqual(TRUE_IN_THE_END);
  expect(evidence).toEqual([{ verified: 'agreed:2' }]);
});
