import { afterAll, beforeAll, expect, test } from 'vitest';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import {
  createInvoice,
  eventually,
  inboxOf,
  payableOf,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const contracts = () => ({
  usdt: service.devnet.usdtContract,
  fakeUsdt: service.devnet.fakeUsdtContract,
  multisend: service.devnet.multisendContract,
});

async function newInvoice(amount = '25.00'): Promise<string> {
  return (await createInvoice(service, { body: { amount } })).body.invoiceId;
}

/** Waits until the watcher has recorded everything that is irreversible now. */
async function untilProcessed(): Promise<void> {
  const { number } = service.devnet.solid();
  await eventually(
    async () =>
      (await (await fetch(`${service.metricsUrl}/readyz`)).json()) as { networks: { devnet: { solidBlock: number } } },
    ({ networks }) => networks.devnet.solidBlock >= number,
  );
}

test('an exact transfer makes an invoice CONFIRMING, then PAID, with one verified webhook each', async () => {
  const id = await newInvoice();
  const invoice = await payableOf(service, id);
  const { txIds } = await payScenario(service.payer, { scenario: 'exact', contracts: contracts(), invoice });
  service.devnet.mine();
  const confirming = await untilStatus(service, id, 'CONFIRMING');
  expect(confirming.payment.transaction).toMatchObject({ txId: txIds[0], late: false, confirmations: 1 });
  service.devnet.mineUntilSolid();
  const paid = await untilStatus(service, id, 'PAID');
  expect(paid.payment.transaction).toMatchObject({
    txId: txIds[0],
    logIndex: 0,
    amount: paid.payment.payableAmount,
    from: service.payer.address,
  });
  const received = await eventually(
    () => inboxOf(service, id),
    (webhooks) => webhooks.length === 2,
  );
  expect(received.map(({ type, verified, attempts }) => ({ type, verified, attempts }))).toEqual([
    { type: 'invoice.confirming', verified: true, attempts: 1 },
    { type: 'invoice.paid', verified: true, attempts: 1 },
  ]);
  expect(received.map(({ body }) => body.sequence)).toEqual([1, 2]);
  expect(received[1]?.body.data).toMatchObject({ invoiceId: id, status: 'PAID' });
});

test.each(['short', 'over', 'fake-token'] as const)('a transfer that is %s never pays', async (scenario) => {
  const id = await newInvoice();
  const invoice = await payableOf(service, id);
  await payScenario(service.payer, { scenario, contracts: contracts(), invoice });
  service.devnet.mineUntilSolid();
  await untilProcessed();
  expect((await readInvoice(service, id)).body).toMatchObject({ status: 'PENDING', payment: { transaction: null } });
  expect(await inboxOf(service, id)).toEqual([]);
});

test('a transfer that fits no invoice is told as transfer.unmatched', async () => {
  const id = await newInvoice();
  const { address } = await payableOf(service, id);
  const txId = await service.payer.transfer({
    contract: service.devnet.usdtContract,
    to: address,
    amountMicro: 1_234_560n,
  });
  service.devnet.mineUntilSolid();
  const [webhook] = await eventually(
    async () => (await inboxOf(service)).filter(({ body }) => body.data.txId === txId),
    (webhooks) => webhooks.length > 0,
  );
  expect(webhook).toMatchObject({
    type: 'transfer.unmatched',
    body: { sequence: 1, data: { amount: '1.234560', to: address } },
  });
});

test('a payment through a contract, seen only in its log, pays once', async () => {
  const id = await newInvoice();
  const invoice = await payableOf(service, id);
  await payScenario(service.payer, { scenario: 'contract', contracts: contracts(), invoice });
  service.devnet.mineUntilSolid();
  await untilStatus(service, id, 'PAID');
  expect(
    (
      await eventually(
        () => inboxOf(service, id),
        (all) => all.some(({ type }) => type === 'invoice.paid'),
      )
    ).filter(({ type }) => type === 'invoice.paid'),
  ).toHaveLength(1);
});

test('two payments in one transaction pay two invoices, each by its own log index', async () => {
  const [first, secondId] = [await newInvoice(), await newInvoice()];
  const [invoice, second] = [await payableOf(service, first), await payableOf(service, secondId)];
  await payScenario(service.payer, { scenario: 'two-in-one', contracts: contracts(), invoice, second });
  service.devnet.mineUntilSolid();
  const [a, b] = [await untilStatus(service, first, 'PAID'), await untilStatus(service, secondId, 'PAID')];
  expect(a.payment.transaction.txId).toBe(b.payment.transaction.txId);
  expect([a.payment.transaction.logIndex, b.payment.transaction.logIndex]).toEqual([0, 1]);
});

test('a second exact transfer is a duplicate and changes nothing', async () => {
  const id = await newInvoice();
  const invoice = await payableOf(service, id);
  const { txIds } = await payScenario(service.payer, { scenario: 'twice', contracts: contracts(), invoice });
  service.devnet.mineUntilSolid();
  const paid = await untilStatus(service, id, 'PAID');
  const [duplicate] = await eventually(
    async () =>
      (await inboxOf(service)).filter(({ type, body }) => type === 'transfer.duplicate' && body.data.invoiceId === id),
    (all) => all.length > 0,
  );
  expect(txIds).toContain(duplicate.body.data.txId);
  expect(duplicate.body.data.txId).not.toBe(paid.payment.transaction.txId);
});

test('an invoice expires on the chain’s clock and is still paid by a late transfer', async () => {
  const id = await newInvoice();
  const invoice = await payableOf(service, id);
  const expiresAt = Date.parse((await readInvoice(service, id)).body.expiresAt);
  service.devnet.mine(1, { timestampMs: Math.ceil(expiresAt / 3000) * 3000 + 3000 });
  await untilStatus(service, id, 'EXPIRED');
  await payScenario(service.payer, { scenario: 'exact', contracts: contracts(), invoice });
  service.devnet.mine();
  await untilStatus(service, id, 'CONFIRMING');
  service.devnet.mineUntilSolid();
  const paid = await untilStatus(service, id, 'PAID');
  expect(paid.payment.transaction.late).toBe(true);
  const types = (
    await eventually(
      () => inboxOf(service, id),
      (all) => all.length === 3,
    )
  ).map(({ type }) => type);
  expect(types).toEqual(['invoice.expired', 'invoice.confirming', 'invoice.paid']);
});
