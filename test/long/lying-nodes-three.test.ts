import { FAULT_KINDS } from '@quittance/devnet/faults/faults';
import { afterEach, expect, test } from 'vitest';
import {
  alarmsOf,
  bend,
  createOrders,
  expectNothingFalse,
  expectTruth,
  heal,
  payOrders,
  statusesOf,
  untilAlarm,
  untilCalm,
  untilHeadIsExamined,
} from '../support/fault-flow.ts';
import { startTestService, type TestService, untilStatus } from '../support/service.ts';

let service: TestService | null = null;
afterEach(async () => {
  await service?.stop();
  service = null;
});

test.each(FAULT_KINDS)(
  'three operators of which two must agree, the preferred one has the fault %s for ever: all is paid, nothing false',
  async (kind) => {
    service = await startTestService({ nodeCount: 3 });
    const orders = await createOrders(service);
    await untilHeadIsExamined(service);
    await bend(service, orders, [[0, [kind]]]);
    await payOrders(service, orders);
    service.devnet.mineUntilSolid();
    await expectTruth(service, orders, { evidence: 'agreed:2' });
  },
);

test('two operators of three collude in an internal transfer: with agreement 3 the block waits until they are replaced', async () => {
  service = await startTestService({ nodeCount: 3, agreement: 3 });
  const orders = await createOrders(service);
  await untilHeadIsExamined(service);
  await bend(service, orders, [
    [0, ['forged-log']],
    [1, ['forged-log']],
  ]);
  await payOrders(service, orders);
  service.devnet.mineUntilSolid();
  await untilAlarm(service, 'nodes-disagree');
  await untilStatus(service, orders.direct, 'CONFIRMING');
  await expectNothingFalse(service, orders);
  expect(await statusesOf(service, [orders.internal])).toEqual(['PENDING']);
  heal(service);
  await expectTruth(service, orders, { evidence: 'agreed:3' });
  await untilCalm(service);
  expect(await alarmsOf(service, 'halted')).toEqual([]);
});
