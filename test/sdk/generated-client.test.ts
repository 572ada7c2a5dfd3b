import { randomUUID } from 'node:crypto';
import createClient from 'openapi-fetch';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { paths } from '../../packages/sdk/src/openapi.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

// The types are generated from /openapi.json, which another test compares. That this file compiles is half of the test.
test('a client that was generated from the document creates and reads an invoice, and knows what it is refused for', async () => {
  const { GET, POST } = createClient<paths>({
    baseUrl: service.url,
    headers: { 'X-Api-Key': service.project.apiKey },
  });
  const externalId = randomUUID();
  const header = { 'Idempotency-Key': externalId };
  const body = { amount: '25.00', asset: 'USDT', network: 'TRON', externalId } as const;
  const created = await POST('/v1/invoices', { params: { header }, body });
  expect(created.data).toMatchObject({ status: 'PENDING', externalId });
  const invoiceId = created.data?.invoiceId ?? '';
  const query = { expand: 'payment' } as const;
  const read = await GET('/v1/invoices/{invoiceId}', { params: { path: { invoiceId }, query } });
  expect(read.data).toMatchObject({ ...created.data, payment: { requestedAmount: '25.000000', transaction: null } });
  const found = await GET('/v1/invoices', { params: { query: { externalId } } });
  expect(found.data?.data).toEqual([created.data]);
  const refused = await POST('/v1/invoices', { params: { header }, body: { ...body, amount: '26.00' } });
  expect(refused.error).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT', conflict: 'idempotencyKey', invoiceId });
  const missing = await GET('/v1/invoices/{invoiceId}', { params: { path: { invoiceId: 'inv_none' } } });
  expect(missing.error?.code).toBe('INVOICE_NOT_FOUND');
  const { data: page } = await GET('/v1/events', { params: { query: { limit: 1 } } });
  expect(page).toEqual({ data: [], hasMore: false, latest: null });
});
