import { randomUUID } from 'node:crypto';
import { base58 } from '@scure/base';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { createTestProject, startTestService, type TestService } from '../support/service.ts';
import { ask, created, expectProblem, get, INVOICE_ID, order, post } from './ask.ts';
import { runSql } from './sql.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

test('POST /v1/invoices: success is 201 with the projection, exactly these five, all strings', async () => {
  const body = order();
  const reply = await post(service, { body });
  expect(reply.status).toBe(201);
  expect(reply.headers['content-type']).toMatch(/^application\/json(;|$)/);
  expect(Object.keys(reply.body).sort()).toEqual(['checkoutUrl', 'expiresAt', 'externalId', 'invoiceId', 'status']);
  for (const value of Object.values(reply.body)) expect(typeof value).toBe('string');
  expect(reply.body).toMatchObject({ externalId: body['externalId'], status: 'PENDING' });
  expect(reply.headers['idempotent-replayed']).toBeUndefined();
});

test('expiresAt is ISO 8601 in UTC, by default 30 minutes after the creation', async () => {
  const before = service.clock.now();
  const { expiresAt } = await created(service);
  const after = service.clock.now();
  expect(expiresAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
  const createdAt = Date.parse(expiresAt) - 30 * 60_000;
  expect(createdAt).toBeGreaterThanOrEqual(before);
  expect(createdAt).toBeLessThanOrEqual(after);
});

test('invoiceId is a TypeID: inv_ and 26 base32 characters of a UUIDv7', async () => {
  const before = Date.now();
  const { invoiceId } = await created(service);
  const after = Date.now();
  expect(invoiceId).toMatch(INVOICE_ID);
  const uuid = decodeId('inv', invoiceId) ?? '';
  expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const madeAt = Number.parseInt(uuid.replaceAll('-', '').slice(0, 12), 16);
  expect(madeAt).toBeGreaterThanOrEqual(before);
  expect(madeAt).toBeLessThanOrEqual(after);
});

test('the checkout token is 128 random bits in base58', async () => {
  const tokens = await Promise.all(Array.from({ length: 20 }, () => tokenOf()));
  for (const token of tokens) expect(base58.decode(token)).toHaveLength(16);
  expect(new Set(tokens).size).toBe(tokens.length);
  // Random bits differ among 20 tokens. The first bits of a time or counter would be the same.
  const firstBytes = new Set(tokens.map((token) => base58.decode(token)[0]));
  expect(firstBytes.size).toBeGreaterThan(5);
});

test('a checkout link reveals no invoiceId and no externalId', async () => {
  const { invoiceId, externalId, checkoutUrl } = await created(service);
  expect(checkoutUrl).not.toContain(externalId);
  expect(checkoutUrl).not.toContain(invoiceId.slice(4));
  const page = await fetch(checkoutUrl);
  expect(page.status).toBe(200);
  const html = (await page.text()) + JSON.stringify([...page.headers]);
  expect(html).not.toContain(externalId);
  expect(html).not.toContain(invoiceId);
  expect(html).not.toContain(decodeId('inv', invoiceId));
});

test('the checkout token is separate: it opens no invoice in the API', async () => {
  expect((await get(service, `/v1/invoices/${await tokenOf()}`)).status).toBe(404);
});

test('GET /v1/invoices/:invoiceId: the same projection, 200', async () => {
  const invoice = await created(service);
  const reply = await get(service, `/v1/invoices/${invoice.invoiceId}`);
  expect(reply.status).toBe(200);
  expect(reply.headers['content-type']).toMatch(/^application\/json(;|$)/);
  expect(reply.body).toEqual(invoice);
});

test('header names are case-insensitive and a charset of UTF-8 changes nothing', async () => {
  const reply = await ask(`${service.url}/v1/invoices`, {
    method: 'POST',
    headers: {
      'X-API-KEY': service.project.apiKey,
      'IDEMPOTENCY-KEY': 'upper',
      'Content-Type': 'Application/JSON; Charset="UTF-8"',
    },
    body: JSON.stringify(order()),
  });
  expect(reply.status, reply.text).toBe(201);
});

test('externalId is echoed exactly: 1 to 200 characters, whatever they are', async () => {
  const ids = [
    'x',
    'x'.repeat(200),
    '😀'.repeat(200),
    ' padded ',
    'e\u0301 and \u00e9',
    '"quotes" \\ and \n\t controls',
    '\u2028\u2029\ufeff',
    '__proto__',
    "'; drop table invoices; --",
    '../../x?y=1&z#%00',
  ];
  for (const externalId of ids) {
    const { invoiceId, externalId: echoed } = await created(service, { body: order({ externalId }) });
    expect(echoed).toBe(externalId);
    expect((await get(service, `/v1/invoices/${invoiceId}`)).body.externalId).toBe(externalId);
    const found = await get(service, `/v1/invoices?externalId=${encodeURIComponent(externalId)}`);
    expect(found.body.data).toEqual([expect.objectContaining({ invoiceId, externalId })]);
  }
});

test('external ids that only look alike are different ids', async () => {
  const ids = ['caf\u00e9', 'cafe\u0301', 'CAF\u00c9', ' caf\u00e9'].map((id) => `${id}`);
  const made = await Promise.all(ids.map((externalId) => created(service, { body: order({ externalId }) })));
  expect(new Set(made.map(({ invoiceId }) => invoiceId)).size).toBe(ids.length);
});

test('the default lifetime is per project, 5 minutes to 30 days', async () => {
  const minutes = [5, 30 * 24 * 60];
  for (const [index, lifetime] of minutes.entries()) {
    const project = await projectWithLifetime(lifetime * 60_000);
    const before = service.clock.now();
    const { expiresAt } = await created(service, { project, body: order({ externalId: `life-${index}` }) });
    expect(Math.round((Date.parse(expiresAt) - before) / 60_000)).toBe(lifetime);
  }
});

async function tokenOf(): Promise<string> {
  const { checkoutUrl } = await created(service);
  return checkoutUrl.split('/').at(-1);
}

async function projectWithLifetime(lifetimeMs: number) {
  const project = await createTestProject(service.db);
  await runSql(service, 'update projects set invoice_lifetime_ms = $1 where id = $2', [lifetimeMs, project.id]);
  return project;
}

test('a parameter of the query is refused, as unknown ones are everywhere, and nothing is created', async () => {
  const externalId = randomUUID();
  const body = order({ externalId });
  for (const query of ['expand=payment', 'x=', 'amount=1']) {
    const reply = await ask(`${service.url}/v1/invoices?${query}`, {
      method: 'POST',
      headers: {
        'x-api-key': service.project.apiKey,
        'idempotency-key': externalId,
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    });
    expectProblem(reply, 400, 'INVALID_REQUEST');
    expect(reply.body.errors).toEqual([expect.objectContaining({ field: query.split('=')[0], code: 'UNKNOWN_FIELD' })]);
  }
  expect((await get(service, `/v1/invoices?externalId=${externalId}`)).body).toEqual({ data: [] });
});
