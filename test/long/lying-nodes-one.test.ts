import { afterEach, describe, expect, test } from 'vitest';
import {
  alarmsOf,
  bend,
  createOrders,
  expectNothingFalse,
  expectTruth,
  type FaultKind,
  heal,
  payOrders,
  statusesOf,
  untilAlarm,
  untilCalm,
  untilHeadIsExamined,
  untilItFails,
} from '../support/fault-flow.ts';
import { payableOf, startTestService, type TestService, untilStatus } from '../support/service.ts';

// fault-kinds.test.ts covers refusals of the only node, and a bracket bomb. lying-nodes-two.test.ts covers hidden and forged logs of
// contracts, which a single node is believed. lying-nodes-three.test.ts covers every kind with three nodes.

let service: TestService | null = null;
afterEach(async () => {
  await service?.stop();
  service = null;
});

async function started(): Promise<TestService> {
  service = await startTestService();
  await untilHeadIsExamined(service);
  return service;
}

/** These contradict themselves, or show blocks that no known producer signed. */
const UNVERIFIABLE: FaultKind[] = [
  'omitted-transaction',
  'hidden-direct-log',
  'forged-direct-log',
  'forged-direct-transfer',
  'flipped-result',
  'flipped-info-result',
  'forged-signature',
  'forged-header',
  'omitted-transaction-resealed',
  'forged-block',
];
/** These could also come from a node with unsynchronised back ends, so the block waits without an alarm. */
const INCOMPLETE: FaultKind[] = ['empty-infos', 'missing-info', 'swapped-infos', 'empty-block', 'other-network'];

describe('one node is all there is', () => {
  test.each([...UNVERIFIABLE, ...INCOMPLETE])(
    '%s: nothing is paid meanwhile, nothing false is believed, and all is paid when it ends',
    async (kind) => {
      const running = await started();
      const orders = await createOrders(running);
      await bend(running, orders, [[0, [kind]]]);
      await payOrders(running, orders);
      running.devnet.mineUntilSolid();
      if (UNVERIFIABLE.includes(kind)) await untilAlarm(running, 'unverifiable-block');
      else await untilItFails(running);
      expect(await statusesOf(running, Object.values(orders))).toEqual(['PENDING', 'PENDING', 'PENDING']);
      heal(running);
      await expectTruth(running, orders, { evidence: 'single-node' });
      await untilCalm(running);
    },
  );

  // In a split, the direct call counts as a whole, whatever amounts the node names.
  test.each([
    'missing-history',
    'wrong-balance',
    'replayed-producers',
    'solid-ahead',
    'fee-split',
    'slow-large-answer',
  ] as const)('%s delays nothing', async (kind) => {
    const running = await started();
    const orders = await createOrders(running);
    await bend(running, orders, [[0, [kind]]]);
    await payOrders(running, orders);
    running.devnet.mineUntilSolid();
    await expectTruth(running, orders, { evidence: 'single-node' });
  });

  test('a node that calls its head irreversible is not believed before our own headers say so', async () => {
    const running = await started();
    const orders = await createOrders(running);
    await bend(running, orders, [[0, ['solid-ahead']]]);
    await payOrders(running, orders);
    running.devnet.mine(2);
    await untilStatus(running, orders.direct, 'CONFIRMING');
    await untilHeadIsExamined(running);
    expect((await statusesOf(running, [orders.direct]))[0]).toBe('CONFIRMING');
    running.devnet.mineUntilSolid();
    await expectTruth(running, orders, { evidence: 'single-node' });
  });

  test('a node that lags pays late, and nothing is lost', async () => {
    const running = await started();
    const orders = await createOrders(running);
    await bend(running, orders, [[0, ['lag']]]);
    await payOrders(running, orders);
    running.devnet.mineUntilSolid();
    running.devnet.mine(10);
    await expectTruth(running, orders, { evidence: 'single-node' });
  });
});

describe('a node that lies consistently, with an attacker’s keys for the known producers, from a service that knows the true ones', () => {
  test.each([
    ['since the first block', 1, 'unverifiable-block'],
    ['since what is irreversible in our books', undefined, 'producers-refused'],
  ])('%s: nothing false, and all is paid when it ends', async (_how, fromBlock, reported) => {
    const running = await started();
    const orders = await createOrders(running);
    const { address, amountMicro } = await payableOf(running, orders.unpaid);
    running.nodes[0]?.setFault(
      { kind: 'forged-block', to: address, amountMicro, ...(fromBlock === undefined ? {} : { fromBlock }) },
      { kind: 'replayed-producers', producers: 'attacker' },
    );
    await payOrders(running, orders);
    running.devnet.mineUntilSolid();
    await untilAlarm(running, reported);
    // An attacker may continue as long as they like: each block is another chance to be mistaken for a change of keys.
    running.devnet.mine(5);
    await untilItFails(running);
    await expectNothingFalse(running, orders);
    expect(await alarmsOf(running, 'halted')).toEqual([]);
    heal(running);
    await expectTruth(running, orders, { evidence: 'single-node' });
  });
});
