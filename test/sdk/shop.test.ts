import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isFulfillable, Quittance, type WebhookEvent } from '../../packages/sdk/src/index.ts';
import { quittanceWebhook } from '../../packages/sdk/src/middleware/express.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { addTestEndpoint } from '../support/key-ring.ts';
import { eventually, payableOf, startTestService, type TestService } from '../support/service.ts';
import { SDK_KEY } from './sdk-key.ts';

const received: WebhookEvent[] = [];
const secret = createWebhookSecret(() => Buffer.alloc(32, 7));
const receiver = createServer(quittanceWebhook({ secret }, (event) => received.push(event)));

let service: TestService;
let quittance: Quittance;
beforeAll(async () => {
  service = await startTestService();
  quittance = new Quittance({ apiKey: service.project.apiKey, baseUrl: service.url });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  await addTestEndpoint(service.db, { projectId: service.project.id, url, secret });
});
afterAll(async () => {
  receiver.closeAllConnections();
  receiver.close();
  await service.stop();
});

const untilReceived = (count: number) =>
  eventually(
    () => received,
    (events) => events.length === count,
  );

test('a shop creates an invoice, hears that it is paid, fulfils it, and finds the same events in the feed', async () => {
  const order = { amount: '25.00', externalId: 'order-1 ₮' };
  const invoice = await quittance.invoices.create(order, { idempotencyKey: 'attempt-1' });
  expect(await quittance.invoices.create(order, { idempotencyKey: 'attempt-1' })).toEqual(invoice);
  expect(isFulfillable(invoice, order.externalId)).toBe(false);

  const { address, amountMicro } = await payableOf(service, invoice.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mine();
  await untilReceived(1);
  service.devnet.mineUntilSolid();
  const [confirming, paid] = await untilReceived(2);
  expect([confirming?.type, paid?.type]).toEqual(['invoice.confirming', 'invoice.paid']);
  const read = await quittance.invoices.get(invoice.invoiceId, { expand: 'payment' });
  expect(read).toMatchObject({ status: 'PAID', payment: { requestedAmount: '25.000000' } });
  expect(isFulfillable(read, order.externalId)).toBe(true);
  expect(await quittance.invoices.findByExternalId(order.externalId)).toMatchObject({ status: 'PAID' });

  const feed: WebhookEvent[] = [];
  for await (const event of quittance.events.list({ limit: 1 })) feed.push(event);
  expect(feed).toEqual(received);
  expect(await quittance.events.page({ after: paid?.id })).toEqual({ data: [], hasMore: false, latest: paid?.id });
});

test('what the API refuses is an error with its code, fields and invoice', async () => {
  const order = { amount: '26.00', externalId: 'order-2' };
  const { invoiceId } = await quittance.invoices.create(order, { idempotencyKey: 'attempt-2' });
  const again = quittance.invoices.create(order, { idempotencyKey: 'attempt-3' });
  const conflict = { code: 'IDEMPOTENCY_CONFLICT', status: 409, conflict: 'externalId', invoiceId };
  await expect(again).rejects.toMatchObject({ ...conflict, requestId: expect.stringMatching(/^req_/) });
  const wrong = quittance.invoices.create({ ...order, note: 'x' } as never, { idempotencyKey: 'attempt-4' });
  const errors = [expect.objectContaining({ field: 'note' })];
  await expect(wrong).rejects.toMatchObject({ code: 'INVALID_REQUEST', errors });
  await expect(quittance.invoices.get('inv_unknown')).rejects.toMatchObject({ code: 'INVOICE_NOT_FOUND' });
  await expect(quittance.events.page({ after: `evt_${'0'.repeat(26)}` })).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
  });
  const stranger = new Quittance({ apiKey: SDK_KEY, baseUrl: service.url });
  await expect(stranger.invoices.get(invoiceId)).rejects.toMatchObject({ code: 'UNAUTHENTICATED', status: 401 });
  expect(await quittance.invoices.findByExternalId('order-3')).toBeNull();
});
