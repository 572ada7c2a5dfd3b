import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isFulfillable, Quittance, type QuittanceError } from '../../packages/sdk/src/index.ts';
import { createLists } from '../../packages/sdk/src/lists.ts';
import { startServerOfTomorrow, TOMORROW } from '../support/server-of-tomorrow.ts';
import { eventually, payableOf, payExactly, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let tomorrow: Awaited<ReturnType<typeof startServerOfTomorrow>>;
beforeAll(async () => {
  service = await startTestService();
  tomorrow = await startServerOfTomorrow(service.url);
});
afterAll(async () => {
  await tomorrow.stop();
  await service.stop();
});

test('the SDK reads what a server of tomorrow answers, and fulfils nothing by a status that it does not know', async () => {
  const options = { apiKey: service.project.apiKey, baseUrl: tomorrow.url };
  const [quittance, lists] = [new Quittance(options), createLists(options)];
  const externalId = `order-${randomUUID()}`;
  const order = { amount: '25.00', externalId, metadata: { cart: 'c-17' } };
  const created = await quittance.invoices.create(order, { idempotencyKey: externalId });
  expect(created).toMatchObject({ status: 'PENDING', externalId });
  const read = await quittance.invoices.get(created.invoiceId, { expand: ['payment', 'metadata'] });
  expect(read).toMatchObject({ status: TOMORROW.status, metadata: { cart: 'c-17' }, payment: { transaction: null } });
  expect(isFulfillable(read, externalId)).toBe(false);
  expect(await quittance.invoices.findByExternalId(externalId)).toMatchObject({ invoiceId: created.invoiceId });

  const { address, amountMicro } = await payableOf(service, created.invoiceId);
  const contract = service.devnet.usdtContract;
  await service.payer.transfer({ contract, to: address, amountMicro: amountMicro - 1_000_000n });
  await payExactly(service, created.invoiceId);
  service.devnet.mineUntilSolid();
  const types = async () => {
    const all: string[] = [];
    for await (const { type } of quittance.events.list({ limit: 1 })) all.push(type);
    return all;
  };
  const seen = await eventually(types, (all) => all.includes('invoice.paid') && all.includes('transfer.unmatched'));
  expect(seen).toContain(TOMORROW.type);
  const reasons: unknown[] = [];
  for await (const { reason } of lists.transfers()) reasons.push(reason?.code);
  expect(reasons).toEqual([TOMORROW.reason]);
  const listed: string[] = [];
  for await (const { invoiceId } of lists.invoices({ limit: 1 })) listed.push(invoiceId);
  expect(listed).toEqual([created.invoiceId]);

  const refusal = (await quittance.invoices.get('inv_unknown').catch((error) => error)) as QuittanceError;
  expect(refusal).toMatchObject({ code: TOMORROW.code, status: 404 });
});
