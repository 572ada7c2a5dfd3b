import { afterAll, beforeAll, expect, test } from 'vitest';
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

async function newPaidInHead(): Promise<{ id: string; txId: string }> {
  const id = (await createInvoice(service)).body.invoiceId;
  const { address, amountMicro } = await payableOf(service, id);
  const txId = await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mine();
  await untilStatus(service, id, 'CONFIRMING');
  return { id, txId };
}

test('a transfer whose block is orphaned and that is gone returns the invoice to PENDING', async () => {
  const { id } = await newPaidInHead();
  service.devnet.fork({ depth: 1, keepTransactions: false });
  await untilStatus(service, id, 'PENDING');
  service.devnet.mineUntilSolid();
  const { body } = await readInvoice(service, id);
  expect(body).toMatchObject({ status: 'PENDING', payment: { transaction: null } });
  const received = await eventually(
    () => inboxOf(service, id),
    (all) => all.length === 2,
  );
  expect(received.map(({ type }) => type)).toEqual(['invoice.confirming', 'invoice.pending']);
});

test('a transfer that moves to another block in a fork is paid once and tells nothing twice', async () => {
  const { id, txId } = await newPaidInHead();
  service.devnet.fork({ depth: 1, keepTransactions: true });
  service.devnet.mineUntilSolid();
  const paid = await untilStatus(service, id, 'PAID');
  expect(paid.payment.transaction.txId).toBe(txId);
  const received = await eventually(
    () => inboxOf(service, id),
    (all) => all.some(({ type }) => type === 'invoice.paid'),
  );
  expect(received.filter(({ type }) => type === 'invoice.paid')).toHaveLength(1);
  expect(received.map(({ body }) => body.sequence)).toEqual(received.map((_, index) => index + 1));
});

test('after a restart in the middle of a fork the watcher finds the common ancestor', async () => {
  const { id } = await newPaidInHead();
  await service.stopService();
  service.devnet.fork({ depth: 2, keepTransactions: false });
  service.devnet.mine(1);
  await service.restart();
  await untilStatus(service, id, 'PENDING');
});

// Runs last, because it moves the chain's clock past all other deadlines.
test('a late transfer whose block is orphaned returns the invoice to EXPIRED', async () => {
  const id = (await createInvoice(service)).body.invoiceId;
  const { address, amountMicro } = await payableOf(service, id);
  const expiresAt = Date.parse((await readInvoice(service, id)).body.expiresAt);
  service.devnet.mine(1, { timestampMs: Math.ceil(expiresAt / 3000) * 3000 + 3000 });
  service.devnet.mineUntilSolid();
  await untilStatus(service, id, 'EXPIRED');
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mine();
  await untilStatus(service, id, 'CONFIRMING');
  service.devnet.fork({ depth: 1, keepTransactions: false });
  await untilStatus(service, id, 'EXPIRED');
});
