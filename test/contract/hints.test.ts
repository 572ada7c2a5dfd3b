import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';
import { ask, expectProblem } from './ask.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const headers = () => ({ 'x-api-key': service.project.apiKey, 'content-type': 'application/json' });

test.each([
  ['/v1/events/', 'Remove the slash at the end of the path'],
  ['/v1/transfers/?limit=1', 'Remove the slash at the end of the path'],
  ['/v1/invoices/', 'Remove the slash at the end of the path'],
  ['/v1/invoices/?limit=1', 'Remove the slash at the end of the path'],
  ['/v1/webhook-endpoints/', 'Remove the slash at the end of the path'],
  ['/api/v1/order/create-transaction', "An adapter's URL begins with /adapters/whe_"],
  ['/submit.php?pid=1', "An adapter's URL begins with /adapters/whe_"],
])('a wrong path such as %s gets a hint', async (path, hint) => {
  const reply = await ask(service.url + path, { headers: headers() });
  expectProblem(reply, 404, 'ROUTE_NOT_FOUND');
  expect(reply.body.detail).toContain(hint);
});

test('a creation at a path with a slash at the end gets the hint, too', async () => {
  const reply = await ask(`${service.url}/v1/invoices/`, { method: 'POST', headers: headers(), body: '{}' });
  expectProblem(reply, 404, 'ROUTE_NOT_FOUND');
  expect(reply.body.detail).toContain('Remove the slash at the end of the path');
});

test('a wrong path that looks like nothing gets no hint', async () => {
  const { body } = await ask(`${service.url}/v1/nothing`, { headers: headers() });
  expect(body.detail).toBe('There is nothing at /v1/nothing. All URLs are listed in /openapi.json.');
});

test('a body that begins with a byte order mark is told so in words', async () => {
  const body = Buffer.from('\uFEFF{}');
  const reply = await ask(`${service.url}/v1/invoices`, {
    method: 'POST',
    headers: { ...headers(), 'idempotency-key': 'bom' },
    body,
  });
  expectProblem(reply, 400, 'INVALID_JSON');
  expect(reply.body.detail).toContain('byte order mark (BOM, EF BB BF); send UTF-8 without it');
});

test('a plus sign that is not escaped in a time is told how to write it', async () => {
  const reply = await ask(`${service.url}/v1/invoices?createdAfter=2026-09-01T00:00:00+02:00`, { headers: headers() });
  expectProblem(reply, 400, 'INVALID_REQUEST');
  expect(reply.body.detail).toContain('createdAfter must be a time such as 2026-09-01T00:00:00Z; write + as %2B');
});

test('a creation that asks for more than the five fields is told where to read them', async () => {
  const reply = await ask(`${service.url}/v1/invoices?expand=payment`, {
    method: 'POST',
    headers: { ...headers(), 'idempotency-key': 'expand' },
    body: '{}',
  });
  expectProblem(reply, 400, 'INVALID_REQUEST');
  expect(reply.body.errors).toEqual([
    {
      field: 'expand',
      code: 'UNKNOWN_FIELD',
      message:
        'is not supported here: create the invoice, then read it with GET /v1/invoices/{invoiceId}?expand=payment',
    },
  ]);
});

test('a request without a key is told which header carries one', async () => {
  const reply = await ask(`${service.url}/v1/invoices/inv_x`);
  expectProblem(reply, 401, 'UNAUTHENTICATED');
  expect(reply.headers['www-authenticate']).toBe('ApiKey realm="Quittance", header="X-Api-Key"');
});
