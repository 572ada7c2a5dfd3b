import { afterEach, describe, expect, test } from 'vitest';
import {
  bend,
  createOrders,
  expectNothingFalse,
  expectTruth,
  type FaultKind,
  failedRounds,
  heal,
  liveThrough,
  payOrders,
  statusesOf,
  untilAlarm,
  untilCalm,
  untilHeadIsExamined,
} from '../support/fault-flow.ts';
import { eventually, payableOf, startTestService, type TestService, untilStatus } from '../support/service.ts';

let service: TestService | null = null;
afterEach(async () => {
  await service?.stop();
  service = null;
});

async function started(nodeCount: number): Promise<TestService> {
  service = await startTestService({ nodeCount });
  await untilHeadIsExamined(service);
  return service;
}

describe('two operators must agree', () => {
  const cases = (['hidden-log', 'forged-log'] as const).flatMap((kind) => [0, 1].map((node) => [kind, node] as const));
  test.each(cases)(
    '%s on node %i: the block waits with an alarm, and is paid when the nodes agree again',
    async (kind, node) => {
      const running = await started(2);
      const orders = await createOrders(running);
      await bend(running, orders, [[node, [kind]]]);
      await payOrders(running, orders);
      running.devnet.mineUntilSolid();
      await untilAlarm(running, 'nodes-disagree');
      // Facts proven by the header are reported at once. Facts without agreement wait, and everything irreversible waits with them.
      await untilStatus(running, orders.direct, 'CONFIRMING');
      expect(await statusesOf(running, Object.values(orders))).toEqual(['CONFIRMING', 'PENDING', 'PENDING']);
      heal(running);
      await expectTruth(running, orders, { evidence: 'agreed:2' });
      await untilCalm(running);
    },
  );

  test.each([0, 1])(
    'node %i shows a consistent chain of an attacker from the very first start: nothing false, and all is paid when it ends',
    async (liar) => {
      const running = await startTestService({ nodeCount: 2, isNodeDown: true });
      service = running;
      running.nodes[1]?.setFault({ kind: 'unavailable-503' });
      const orders = await createOrders(running);
      const { address, amountMicro } = await payableOf(running, orders.unpaid);
      running.nodes[1 - liar]?.setFault();
      running.nodes[liar]?.setFault(
        { kind: 'forged-block', fromBlock: 1, to: address, amountMicro },
        { kind: 'replayed-producers', producers: 'attacker' },
      );
      await payOrders(running, orders);
      running.devnet.mineUntilSolid();
      const before = await failedRounds(running);
      await eventually(
        () => failedRounds(running),
        (count) => count >= before + 4,
      );
      await expectNothingFalse(running, orders);
      expect(await statusesOf(running, [orders.direct])).not.toEqual(['PAID']);
      heal(running);
      await expectTruth(running, orders, { evidence: 'agreed:2' });
    },
  );
});

describe('two faults at once', () => {
  const onTwoNodes: [FaultKind, FaultKind][] = [
    ['hidden-log', 'forged-log'],
    ['forged-block', 'omitted-transaction-resealed'],
    ['other-network', 'lag'],
    ['hang', 'forged-signature'],
    ['unavailable-503', 'hidden-log'],
    ['reset', 'empty-infos'],
    ['truncated', 'forged-direct-transfer'],
    ['replayed-producers', 'missing-history'],
    ['hidden-direct-log', 'swapped-infos'],
  ];
  test.each(onTwoNodes)(
    '%s on the first of three nodes and %s on the second: nothing false, and all is paid when they end',
    async (one, other) => {
      await liveThrough(await started(3), [
        [0, [one]],
        [1, [other]],
      ]);
    },
  );

  const onOneNode: [FaultKind, FaultKind][] = [
    ['empty-block', 'empty-infos'],
    ['solid-ahead', 'forged-block'],
    ['lag', 'forged-log'],
  ];
  test.each(onOneNode)(
    '%s and %s on one of two nodes: nothing false, and all is paid when they end',
    async (one, other) => {
      await liveThrough(await started(2), [[0, [one, other]]]);
    },
  );
});
