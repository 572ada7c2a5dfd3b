import { afterEach, expect, test } from 'vitest';
import { orderPaidAtHead, statusOf, untilPaid } from '../support/chain-view.ts';
import { eventually, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
afterEach(() => service?.stop());

test('after hours in which too few producers worked everything becomes PAID by itself', {
  timeout: 180_000,
}, async () => {
  service = await startTestService({ producers: 5 });
  service.devnet.stall([0, 1]);
  const order = await orderPaidAtHead(service);
  service.devnet.mine(900, { stepMs: 1 });
  await eventually(
    async () =>
      (await (await fetch(`${service.metricsUrl}/readyz`)).json()) as { networks: { devnet: { headBlock: number } } },
    ({ networks }) => networks.devnet.headBlock === service.devnet.head().number,
    120_000,
  );
  expect(await statusOf(service, order)).toBe('CONFIRMING');
  service.devnet.unstall();
  service.devnet.mineUntilSolid({ stepMs: 1 });
  await untilPaid(service, order);
});
