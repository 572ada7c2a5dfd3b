import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  evidenceOf,
  headersOf,
  newOrder,
  orderPaidAtHead,
  payByContract,
  readInvoiceEvents,
  untilExamined,
  untilPaid,
} from '../support/chain-view.ts';
import { startTestService, type TestService, untilStatus } from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';
import { type Networks, networksOf, startTwin } from '../support/twin.ts';

const QUICK = { stepMs: 1 };
/** The chain's clock is ahead, so that quickly made blocks never look old. */
const AHEAD_MS = 600_000;

describe('27 producers', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ producers: 27, nodeCount: 2 });
    service.devnet.mine(1, { timestampMs: service.clock.now() + AHEAD_MS });
  });
  afterAll(() => service.stop());

  test.each(someCases([17, 1, 2, 5], 2))(
    'a fork of %i blocks: what lies below stays, what was orphaned returns to PENDING or moves, and each is paid once',
    async (depth) => {
      const kept = await orderPaidAtHead(service);
      const gone = await orderPaidAtHead(service);
      if (depth > 1) service.devnet.mine(depth - 1, QUICK);
      await untilExamined(service);
      service.devnet.fork({ depth, keepTransactions: false });
      await untilStatus(service, gone.id, 'PENDING');
      service.devnet.mineUntilSolid(QUICK);
      await untilPaid(service, kept);

      const moved = await orderPaidAtHead(service);
      const internal = await newOrder(service);
      const txId = await payByContract(service, internal);
      if (depth > 1) service.devnet.mine(depth - 1, QUICK);
      await untilExamined(service);
      const [orphan] = await headersOf(service, moved.blockNumber, moved.blockNumber);
      service.devnet.fork({ depth });
      service.devnet.mineUntilSolid(QUICK);
      await untilPaid(service, moved, internal);

      const [evidence] = await evidenceOf(service, moved.txId);
      const number = Number(evidence?.blockNumber);
      const [final] = await headersOf(service, number, number);
      expect(evidence).toMatchObject({ verified: 'proven', blockId: final?.id, producer: final?.producer });
      expect(evidence?.blockId).not.toBe(orphan?.id);
      expect(await evidenceOf(service, txId)).toMatchObject([{ kind: 'matched', verified: 'agreed:2' }]);
      for (const order of [kept, moved, internal]) {
        const types = await readInvoiceEvents(service, order);
        expect(types.filter((type) => type === 'invoice.paid')).toHaveLength(1);
        expect(types.at(-1)).toBe('invoice.paid');
      }
      expect(await readInvoiceEvents(service, kept)).toEqual(['invoice.confirming', 'invoice.paid']);
      expect(await readInvoiceEvents(service, gone)).toEqual(['invoice.confirming', 'invoice.pending']);
    },
  );
});

test('two nodes show competing heads: the payment of one branch comes and goes with it, and is PAID when that branch is irreversible', async () => {
  const config: Networks = {};
  const service = await startTestService({ config });
  const twin = await startTwin(service.devnet);
  try {
    config.networks = networksOf(service.devnet, [service.devnet.url, twin.url], 1);
    await service.restart();
    const order = await orderPaidAtHead(service);
    // The other branch is longer, was made by the same producers, and doesn't contain the payment.
    twin.mine(2, { stepMs: 6000 });
    service.devnet.setFault({ kind: 'unavailable-503' });
    await untilStatus(service, order.id, 'PENDING');
    service.devnet.setFault();
    // The watcher follows the longer of two branches.
    service.devnet.mine(2);
    await untilStatus(service, order.id, 'CONFIRMING');
    service.devnet.mineUntilSolid();
    await untilPaid(service, order);
    expect(await readInvoiceEvents(service, order)).toEqual([
      'invoice.confirming',
      'invoice.pending',
      'invoice.confirming',
      'invoice.paid',
    ]);
  } finally {
    await service.stop();
    await twin.stop();
  }
});
