import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';
import { ask, created, expectProblem, fieldsOf, get, order, post, type Reply } from './ask.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const invoices = () => `${service.url}/v1/invoices`;

describe('each row of the table of errors', () => {
  const rows: [number, string, () => Promise<Reply>][] = [
    [400, 'INVALID_JSON', () => post(service, { body: '{' })],
    [400, 'INVALID_REQUEST', () => post(service, { body: {} })],
    [400, 'IDEMPOTENCY_KEY_REQUIRED', () => post(service, { headers: { 'idempotency-key': null } })],
    [400, 'IDEMPOTENCY_KEY_INVALID', () => post(service, { headers: { 'idempotency-key': 'a b' } })],
    [401, 'UNAUTHENTICATED', () => post(service, { headers: { 'x-api-key': null } })],
    [404, 'INVOICE_NOT_FOUND', () => get(service, '/v1/invoices/none')],
    [404, 'ROUTE_NOT_FOUND', () => get(service, '/v1/nothing')],
    [405, 'METHOD_NOT_ALLOWED', () => ask(invoices(), { method: 'DELETE' })],
    [413, 'PAYLOAD_TOO_LARGE', () => post(service, { body: 'x'.repeat(16 * 1024 + 1) })],
    [415, 'UNSUPPORTED_MEDIA_TYPE', () => post(service, { headers: { 'content-type': 'text/plain' } })],
    [422, 'UNSUPPORTED_ASSET', () => post(service, { body: order({ asset: 'USDC' }) })],
    [422, 'UNSUPPORTED_NETWORK', () => post(service, { body: order({ network: 'ETHEREUM' }) })],
  ];
  test.each(rows)(
    '%i %s is a problem with type, title, status, code, detail and requestId',
    async (status, code, run) => {
      expectProblem(await run(), status, code);
    },
  );

  test.each(rows)('%i %s: type is the URL of its documentation page', async (status, code, run) => {
    const { type } = expectProblem(await run(), status, code);
    expect(type).toMatch(/^https?:\/\//);
    if (!type.startsWith(service.url)) return;
    const page = await fetch(type);
    expect(page.status, type).toBe(200);
    expect(await page.text()).toContain(code);
  });
});

describe('invalid input: errors has all of them at once', () => {
  test('an empty object lacks all four fields', async () => {
    const problem = expectProblem(await post(service, { body: {} }), 400, 'INVALID_REQUEST');
    expect(fieldsOf(problem)).toEqual(['amount', 'asset', 'externalId', 'network']);
  });

  test.each(['amount', 'asset', 'network', 'externalId'])('%s is required', async (field) => {
    const { [field]: _left, ...body } = order();
    const problem = expectProblem(await post(service, { body }), 400, 'INVALID_REQUEST');
    expect(fieldsOf(problem)).toEqual([field]);
  });

  test('four wrong types and an unknown field are five errors', async () => {
    const body = { amount: 25, asset: null, network: ['TRON'], externalId: { id: 1 }, memo: 'hello' };
    const problem = expectProblem(await post(service, { body }), 400, 'INVALID_REQUEST');
    expect(fieldsOf(problem)).toEqual(['amount', 'asset', 'externalId', 'memo', 'network']);
  });

  test('a wrong amount, an empty externalId and two unknown fields are four errors', async () => {
    const body = order({ amount: '-1', externalId: '', one: 1, two: 2 });
    const problem = expectProblem(await post(service, { body }), 400, 'INVALID_REQUEST');
    expect(fieldsOf(problem)).toEqual(['amount', 'externalId', 'one', 'two']);
  });

  test.each([
    ['null', 'null'],
    ['an array', '[]'],
    ['an array of a correct order', `[${JSON.stringify(order())}]`],
    ['a string', '"order"'],
    ['a number', '25'],
    ['true', 'true'],
  ])('%s instead of an object is INVALID_REQUEST', async (_what, body) => {
    expectProblem(await post(service, { body }), 400, 'INVALID_REQUEST');
  });

  test.each([null, 25, true, {}, [], ['25.00'], { $gt: '' }])('%j is a wrong type in every field', async (value) => {
    for (const field of ['amount', 'asset', 'network', 'externalId']) {
      const problem = expectProblem(await post(service, { body: order({ [field]: value }) }), 400, 'INVALID_REQUEST');
      expect(fieldsOf(problem)).toEqual([field]);
    }
  });

  test.each([
    ['empty', ''],
    ['201 characters', 'x'.repeat(201)],
    ['201 astral characters', '😀'.repeat(201)],
    ['NUL', 'a\u0000b'],
  ])('an externalId that is %s is refused', async (_what, externalId) => {
    const problem = expectProblem(await post(service, { body: order({ externalId }) }), 400, 'INVALID_REQUEST');
    expect(fieldsOf(problem)).toEqual(['externalId']);
  });

  test.each(['\\ud83d', '\\ude00', 'a\\udc00b', '\\ud83d\\ud83d'])(
    'an externalId with the lone surrogate %s is refused',
    async (escaped) => {
      const body = JSON.stringify(order({ externalId: 'here' })).replace('here', escaped);
      const problem = expectProblem(await post(service, { body }), 400, 'INVALID_REQUEST');
      expect(fieldsOf(problem)).toEqual(['externalId']);
    },
  );

  test('fields are case-sensitive', async () => {
    const { externalId, ...rest } = order();
    const problem = expectProblem(
      await post(service, { body: { ...rest, externalID: externalId } }),
      400,
      'INVALID_REQUEST',
    );
    expect(fieldsOf(problem)).toEqual(['externalID', 'externalId']);
  });

  test('thousands of unknown fields are answered with a bounded response', async () => {
    const fields = Object.fromEntries(Array.from({ length: 1500 }, (_, index) => [`f${index}`, 1]));
    const reply = await post(service, { body: { ...order(), ...fields } });
    expectProblem(reply, 400, 'INVALID_REQUEST');
    expect(reply.text.length).toBeLessThan(512 * 1024);
  });
});

describe('422 lists what is supported', () => {
  test.each(['USDC', 'usdt', 'Usdt', 'USDT ', '', 'TRX', '__proto__', 'constructor'])('asset %j', async (asset) => {
    const problem = expectProblem(await post(service, { body: order({ asset }) }), 422, 'UNSUPPORTED_ASSET');
    expect(JSON.stringify(problem)).toContain('USDT');
  });

  test.each(['ETHEREUM', 'tron', 'TRC20', 'TRON ', '', 'nile', 'mainnet'])('network %j', async (network) => {
    const problem = expectProblem(await post(service, { body: order({ network }) }), 422, 'UNSUPPORTED_NETWORK');
    expect(JSON.stringify(problem)).toContain('TRON');
  });

  test('a wrong asset with a wrong network is told about both', async () => {
    const problem = expectProblem(
      await post(service, { body: order({ asset: 'DAI', network: 'SOLANA' }) }),
      422,
      'UNSUPPORTED_ASSET',
    );
    expect(fieldsOf(problem)).toEqual(['asset', 'network']);
  });
});

describe('detail says what happened, the values seen, and what to do', () => {
  test('the refused asset is named', async () => {
    const reply = await post(service, { body: order({ asset: 'USDC' }) });
    expect(reply.text).toContain('USDC');
  });

  test('a value that is huge is not echoed in full', async () => {
    const reply = await post(service, { body: order({ asset: 'A'.repeat(10_000) }) });
    expectProblem(reply, 422, 'UNSUPPORTED_ASSET');
    expect(reply.text.length).toBeLessThan(2000);
  });

  test('a secret key is never echoed', async () => {
    const wrong = `${service.project.apiKey.slice(0, -1)}!`;
    const reply = await post(service, { headers: { 'x-api-key': wrong } });
    expectProblem(reply, 401, 'UNAUTHENTICATED');
    expect(reply.text).not.toContain(wrong.slice(10, 30));
  });
});

describe('METHOD_NOT_ALLOWED comes with Allow', () => {
  test.each(['PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND'])('%s /v1/invoices', async (method) => {
    const reply = await ask(invoices(), { method });
    expectProblem(reply, 405, 'METHOD_NOT_ALLOWED');
    expect(allowed(reply)).toEqual(['GET', 'HEAD', 'OPTIONS', 'POST']);
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s /v1/invoices/:invoiceId', async (method) => {
    const { invoiceId } = await created(service);
    for (const id of [invoiceId, 'malformed']) {
      const reply = await ask(`${invoices()}/${id}`, { method });
      expectProblem(reply, 405, 'METHOD_NOT_ALLOWED');
      expect(allowed(reply)).toEqual(['GET', 'HEAD', 'OPTIONS']);
    }
  });

  test('OPTIONS grants no browser anything: there is no CORS', async () => {
    const headers = { origin: 'https://shop.example', 'access-control-request-method': 'POST' };
    const reply = await ask(invoices(), { method: 'OPTIONS', headers });
    expect({ status: reply.status, text: reply.text }).toEqual({ status: 204, text: '' });
    expect(allowed(reply)).toEqual(['GET', 'HEAD', 'OPTIONS', 'POST']);
    const read = await ask(invoices(), { headers: { ...headers, 'x-api-key': service.project.apiKey } });
    expect(Object.keys(read.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });
});

describe('ROUTE_NOT_FOUND', () => {
  test.each([
    '/',
    '/v1',
    '/v1/',
    '/v2/invoices',
    '/v1/invoice',
    '/V1/invoices',
    '//v1/invoices',
    '/v1/invoices/a/b',
    '/admin',
    '/v1/%2e%2e/x',
  ])('%s', async (path) => {
    expectProblem(await get(service, path), 404, 'ROUTE_NOT_FOUND');
  });

  test('a POST to an unknown path, too', async () => {
    expectProblem(await ask(`${service.url}/v1/refunds`, { method: 'POST', body: '{' }), 404, 'ROUTE_NOT_FOUND');
  });
});

function allowed(reply: Reply): string[] {
  return String(reply.headers['allow'])
    .split(',')
    .map((method) => method.trim())
    .sort();
}

test('a service that is no sandbox has none of its routes', async () => {
  for (const path of ['/sandbox/pay', '/sandbox/advance', '/sandbox/projects']) {
    const reply = await ask(service.url + path, { method: 'POST', headers: { 'x-api-key': service.project.apiKey } });
    expectProblem(reply, 404, 'ROUTE_NOT_FOUND');
  }
});
