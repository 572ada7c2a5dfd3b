import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import { expandReferences } from '../support/expand-references.ts';
import {
  createTestProject,
  eventually,
  payableOf,
  readInvoice,
  startTestService,
  type TestProject,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { ask, created, expectProblem, fieldsOf, get, order } from './ask.ts';

let service: TestService;
let other: TestProject;
beforeAll(async () => {
  service = await startTestService();
  other = await createTestProject(service.db);
});
afterAll(() => service.stop());

describe('GET /v1/invoices/:id?expand=payment', () => {
  test('adds payment: {requestedAmount, payableAmount, address, transaction: null}', async () => {
    const invoice = await created(service, { body: order({ amount: '12.5' }) });
    const { status, body } = await get(service, `/v1/invoices/${invoice.invoiceId}?expand=payment`);
    expect(status).toBe(200);
    const { payment, ...projection } = body;
    expect(projection).toEqual(invoice);
    expect(payment).toEqual({
      requestedAmount: '12.500000',
      payableAmount: expect.stringMatching(/^12\.50[0-9]{3}[1-9]$/),
      address: service.project.addresses[0],
      transaction: null,
    });
  });

  test('transaction is {txId, logIndex, blockNumber, blockTime, from, amount, late, confirmations}', async () => {
    const { invoiceId } = await created(service);
    const invoice = await payableOf(service, invoiceId);
    const { usdtContract: usdt, fakeUsdtContract: fakeUsdt, multisendContract: multisend } = service.devnet;
    const { txIds } = await payScenario(service.payer, {
      scenario: 'exact',
      contracts: { usdt, fakeUsdt, multisend },
      invoice,
    });
    const [block] = service.devnet.mine();
    const confirming = await untilStatus(service, invoiceId, 'CONFIRMING');
    expect(confirming.payment.transaction).toEqual({
      txId: txIds[0],
      logIndex: 0,
      blockNumber: block?.number,
      blockTime: new Date(block?.timestampMs ?? 0).toISOString(),
      from: service.payer.address,
      amount: confirming.payment.payableAmount,
      late: false,
      confirmations: 1,
    });
    service.devnet.mineUntilSolid();
    await untilStatus(service, invoiceId, 'PAID');
    // Confirmations are counted up to the newest examined block, which may still be the transfer's own when it becomes irreversible.
    const read = await eventually(
      () => readInvoice(service, invoiceId),
      ({ body }) => body.payment.transaction.confirmations > 1,
    );
    const { payment } = read.body;
    const { confirmations, ...rest } = payment.transaction;
    const { confirmations: _before, ...expected } = confirming.payment.transaction;
    expect(rest).toEqual(expected);
    expect(confirmations).toBeGreaterThan(1);
  });

  test('any other expand is refused, and says what is known', async () => {
    const { invoiceId } = await created(service);
    for (const query of ['expand=payments', 'expand=', 'expand=payment&expand=payment', 'expandd=payment']) {
      const problem = expectProblem(await get(service, `/v1/invoices/${invoiceId}?${query}`), 400, 'INVALID_REQUEST');
      expect(fieldsOf(problem)).toHaveLength(1);
    }
  });

  test('without expand the projection stays exactly five fields', async () => {
    const { invoiceId } = await created(service);
    expect(Object.keys((await get(service, `/v1/invoices/${invoiceId}`)).body)).toHaveLength(5);
  });
});

describe('GET /v1/invoices?externalId=…', () => {
  test('{data: [projection]}, at most one', async () => {
    const invoice = await created(service);
    const reply = await get(service, `/v1/invoices?externalId=${invoice.externalId}`);
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({ data: [invoice] });
  });

  test('an id that is unknown, another project’s, or impossible is an empty list', async () => {
    const theirs = await created(service, { project: other });
    for (const id of [
      theirs.externalId,
      'unknown',
      'x'.repeat(201),
      '%00',
      '%EF%BF%BD',
      '%F0%9F%98%80',
      'x'.repeat(9000),
    ]) {
      const reply = await get(service, `/v1/invoices?externalId=${id}`);
      expect({ id, status: reply.status, body: reply.body }).toEqual({ id, status: 200, body: { data: [] } });
    }
  });

  test('the id is compared exactly', async () => {
    const { externalId } = await created(service, { body: order({ externalId: 'Order 1+1' }) });
    const ids = ['order 1+1', 'Order 1+1 ', 'Order%201'];
    for (const id of ids) {
      expect((await get(service, `/v1/invoices?externalId=${encodeURIComponent(id)}`)).body.data).toEqual([]);
    }
    const found = await get(service, `/v1/invoices?externalId=${encodeURIComponent(externalId)}`);
    expect(found.body.data).toHaveLength(1);
  });

  test('empty, twice, or with another parameter: INVALID_REQUEST', async () => {
    for (const query of [
      '?externalId=',
      '?externalId=a&externalId=b',
      '?externalId=a&status=PAID',
      '?externalId=a&limit=0',
      '?externalID=a',
    ]) {
      expectProblem(await get(service, `/v1/invoices${query}`), 400, 'INVALID_REQUEST');
    }
  });

  test('bytes that are not UTF-8 match nothing', async () => {
    const { externalId } = await created(service, { body: order({ externalId: 'a\ufffdb' }) });
    const reply = await get(service, '/v1/invoices?externalId=a%ffb');
    expect(reply.body.data ?? []).toEqual([]);
    expect((await get(service, `/v1/invoices?externalId=${encodeURIComponent(externalId)}`)).body.data).toHaveLength(1);
  });

  test('it needs the same authentication', async () => {
    expectProblem(await ask(`${service.url}/v1/invoices?externalId=x`), 401, 'UNAUTHENTICATED');
  });
});

describe('GET /openapi.json', () => {
  test('is OpenAPI 3.1 with webhooks, without a key', async () => {
    const { status, headers, body } = await ask(`${service.url}/openapi.json`);
    expect(status).toBe(200);
    expect(headers['content-type']).toMatch(/^application\/json/);
    expect(body.openapi).toMatch(/^3\.1\./);
    expect(Object.keys(body.webhooks).sort()).toEqual(
      expect.arrayContaining([
        'invoice.confirming',
        'invoice.expired',
        'invoice.paid',
        'invoice.pending',
        'transfer.duplicate',
        'transfer.unmatched',
      ]),
    );
  });

  test('has a tag by which it is asked whether it changed, and is the same text each time', async () => {
    const url = `${service.url}/openapi.json`;
    const { headers, text } = await ask(url);
    const tag = String(headers['etag']);
    expect(tag).toMatch(/^"[^"]{16,}"$/);
    for (const named of [tag, `W/${tag}`, `"another", ${tag}`, '*']) {
      const reply = await ask(url, { headers: { 'if-none-match': named } });
      expect([reply.status, reply.text, reply.headers['etag']], named).toEqual([304, '', tag]);
    }
    const changed = await ask(url, { headers: { 'if-none-match': '"another"' } });
    expect([changed.status, changed.text]).toEqual([200, text]);
  });

  test('describes both stable endpoints with their headers, bodies and every error status', async () => {
    const { paths } = expandReferences((await ask(`${service.url}/openapi.json`)).body);
    const create = paths['/v1/invoices'].post;
    const read = paths['/v1/invoices/{invoiceId}'].get;
    expect(Object.keys(create.responses).sort()).toEqual([
      '201',
      '400',
      '401',
      '403',
      '409',
      '413',
      '415',
      '422',
      '429',
      '500',
      '503',
    ]);
    expect(Object.keys(read.responses)).toEqual(expect.arrayContaining(['200', '401', '404', '429', '500', '503']));
    const names = create.parameters.map(({ name }: { name: string }) => name.toLowerCase());
    expect(names).toContain('idempotency-key');
    const { schema } = create.requestBody.content['application/json'];
    // Either `amount` or `price` is required, which the description says.
    expect(schema.required.toSorted()).toEqual(['asset', 'externalId', 'network']);
    expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(['amount', 'price']));
    expect(schema.additionalProperties).toBe(false);
    const invoice = create.responses[201].content['application/json'].schema;
    expect(invoice.required.toSorted()).toEqual(['checkoutUrl', 'expiresAt', 'externalId', 'invoiceId', 'status']);
  });
});

test('GET /docs is a page for people that leads to the reference and the errors', async () => {
  const reply = await ask(`${service.url}/docs`);
  expect(reply.status).toBe(200);
  expect(reply.headers['content-type']).toMatch(/^text\/html/);
  expect(reply.text).toContain('/openapi.json');
  expect(reply.text).toContain('/docs/errors');
});

test('GET /healthz tells of the process, GET /readyz of database and migrations', async () => {
  expect((await ask(`${service.url}/healthz`)).status).toBe(200);
  expect((await ask(`${service.url}/readyz`)).status).toBe(200);
});

test('GET /metrics is on a separate internal port, not on this one', async () => {
  expectProblem(await ask(`${service.url}/metrics`), 404, 'ROUTE_NOT_FOUND');
});
