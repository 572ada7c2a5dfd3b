import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { explainInvoice } from '../../src/faces/operator/explain/explain-invoice.ts';
import { ask, created, expectProblem, get } from '../contract/ask.ts';
import { runSql } from '../contract/sql.ts';
import { openEventStream } from '../support/event-stream.ts';
import {
  createTestProject,
  eventually,
  type Json,
  payableOf,
  payExactly,
  startTestService,
  type TestProject,
  type TestService,
  untilServed,
  untilStatus,
} from '../support/service.ts';

let service: TestService;
let other: TestProject;
beforeAll(async () => {
  service = await startTestService();
  other = await createTestProject(service.db);
});
afterAll(() => service.stop());

function withdraw(id: string, { project = service.project, query = '', ...rest }: Json = {}) {
  const headers = { 'x-api-key': project.apiKey, ...rest.headers };
  return ask(`${service.url}/v1/invoices/${id}/withdraw${query}`, { method: 'POST', ...rest, headers });
}

const pageOf = async ({ checkoutUrl }: Json) => (await fetch(checkoutUrl)).text();

async function pay(id: string): Promise<void> {
  await payExactly(service, id);
  service.devnet.mine();
}

test('the page says at once that nothing is to be sent, and the five fields stay as they were', async () => {
  const invoice = await created(service);
  const { address } = await payableOf(service, invoice.invoiceId);
  const stream = await openEventStream(`${invoice.checkoutUrl}/live`);
  onTestFinished(() => stream.close());
  await eventually(
    () => stream.messages().at(-1),
    (message) => message?.state === 'waiting',
  );
  expect(await pageOf(invoice)).toContain(address.slice(4, 17));

  const reply = await withdraw(invoice.invoiceId);
  expect(reply.status).toBe(200);
  const { withdrawnAt, ...fields } = reply.body;
  expect(fields).toEqual(invoice);
  expect(new Date(withdrawnAt).toISOString()).toBe(withdrawnAt);
  await eventually(
    () => stream.messages().at(-1),
    (message) => message?.state === 'withdrawn' && message.parts.pay === '' && message.parts.help === '',
  );
  const page = await pageOf(invoice);
  for (const text of [address.slice(4, 17), 'data-copy=', 'class="qr"']) expect(page).not.toContain(text);
  expect(page).toContain('Do not send anything.');
  const shown = await (await fetch(`${invoice.checkoutUrl}/status`)).json();
  expect(shown).toMatchObject({ state: 'withdrawn', amount: null, address: null });

  // Repeating it gives the same answer, whatever the body.
  for (const body of [undefined, '{}', '{"a":1}', '[', Buffer.alloc(1000)]) {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    expect((await withdraw(invoice.invoiceId, { body, headers })).body).toEqual(reply.body);
  }
  expect((await get(service, `/v1/invoices/${invoice.invoiceId}`)).body).toEqual(invoice);
  const expanded = (await get(service, `/v1/invoices/${invoice.invoiceId}?expand=payment`)).body;
  expect(expanded).toMatchObject({ withdrawnAt, payment: { address, transaction: null } });
});

test('a payment that comes all the same pays; a block that is replaced meanwhile brings no way to pay back', async () => {
  const invoice = await created(service);
  await withdraw(invoice.invoiceId);
  await pay(invoice.invoiceId);
  await untilStatus(service, invoice.invoiceId, 'CONFIRMING');
  expect(await pageOf(invoice)).toContain('Payment found');
  service.devnet.fork({ depth: 1, keepTransactions: false });
  await untilStatus(service, invoice.invoiceId, 'PENDING');
  const page = await pageOf(invoice);
  expect(page).toContain('Do not send anything.');
  expect(page).not.toContain('Show how to pay');
  await pay(invoice.invoiceId);
  service.devnet.mineUntilSolid();
  await untilStatus(service, invoice.invoiceId, 'PAID');
  expect(await pageOf(invoice)).toContain('Your payment is final.');
  expectProblem(await withdraw((await paid()).invoiceId), 409, 'INVOICE_PAID');
});

async function paid(): Promise<Json> {
  const invoice = await created(service);
  await pay(invoice.invoiceId);
  service.devnet.mineUntilSolid();
  await untilStatus(service, invoice.invoiceId, 'PAID');
  return invoice;
}

test('only who owns the invoice withdraws it, and whatever else is asked is refused', async () => {
  const { invoiceId, checkoutUrl } = await created(service);
  const foreign = [
    await withdraw(invoiceId, { project: other }),
    await withdraw('inv_00000000000000000000000000'),
    await withdraw('x'),
  ];
  for (const reply of foreign) expectProblem(reply, 404, 'INVOICE_NOT_FOUND');
  expectProblem(await withdraw(invoiceId, { headers: { 'x-api-key': 'qt_test_x' } }), 401, 'UNAUTHENTICATED');
  expectProblem(await withdraw(invoiceId, { query: '?at=now' }), 400, 'INVALID_REQUEST');
  expectProblem(await withdraw(invoiceId, { method: 'GET' }), 405, 'METHOD_NOT_ALLOWED');
  expect(await pageOf({ checkoutUrl })).toContain('data-copy=');
});

test('it never comes back, and nobody moves its time', async () => {
  const { invoiceId } = await created(service);
  await withdraw(invoiceId);
  for (const to of ['null', "'2026-01-01'"])
    await expect(
      runSql(service, `update invoices set withdrawn_at = ${to} where withdrawn_at is not null`),
    ).rejects.toThrow('withdrawn_at of invoices never goes back');
});

test('whoever explains the invoice says so', async () => {
  const { invoiceId } = await created(service);
  const { withdrawnAt } = (await withdraw(invoiceId)).body;
  const located = { id: decodeId('inv', invoiceId) ?? '', projectId: service.project.id, network: 'devnet' as const };
  const { verdict, timeline } = await explainInvoice(
    service.db,
    { ...located, projectName: '' },
    unixMs(service.clock.now()),
  );
  expect(verdict.join(' ')).toContain(`The shop withdrew the invoice at ${withdrawnAt}`);
  expect(timeline.map(({ kind }) => kind)).toContain('withdrawn');
});

test('a hundred at once set one time', async () => {
  const { invoiceId } = await created(service);
  const replies = await Promise.all(Array.from({ length: 100 }, () => untilServed(() => withdraw(invoiceId))));
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(replies.map(({ body }) => body.withdrawnAt)).size).toBe(1);
});
