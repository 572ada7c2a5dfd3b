import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCli } from '../cli/run-cli.ts';
import { call, createInvoice, startTestService, type TestService } from '../support/service.ts';
import { runSql } from './sql.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ addressCount: 5 });
});
afterAll(() => service.stop());

const SAID = {
  returnUrl: 'http://localhost:3000/orders/{invoiceId}',
  expiresInSeconds: 900,
  description: 'Two tickets, “Café”',
  metadata: { cart: 'c-17', 'customer.id': '', Z: '漢😀' },
};

const read = async (id: string, expand?: string) =>
  call(`${service.url}/v1/invoices/${id}${expand === undefined ? '' : `?expand=${expand}`}`, {
    headers: { 'x-api-key': service.project.apiKey },
  });
/** Updates the project like an operator. The service notices when it reads the key again. */
async function updateProject(...options: string[]): Promise<void> {
  const env = { DATABASE_URL: service.connectionString };
  const { code, stderr } = await runCli(['project', 'update', service.project.projectId, ...options], { env });
  expect(code, stderr).toBe(0);
  await service.restart();
}
const page = async (url: string) => (await fetch(url)).text();

describe('what a shop says of an invoice beside what it must', () => {
  test('is shown to the shop where it asks for it, and to the payer what is for payers', async () => {
    const before = service.clock.now();
    const { status, body } = await createInvoice(service, { body: SAID });
    expect(status).toBe(201);
    expect(Object.keys(body)).toEqual(['invoiceId', 'externalId', 'status', 'checkoutUrl', 'expiresAt']);
    expect(Date.parse(body.expiresAt) - before).toBeLessThan(900_000 + 60_000);
    expect(Date.parse(body.expiresAt) - before).toBeGreaterThanOrEqual(900_000);
    expect((await read(body.invoiceId)).body).toEqual(body);
    const { metadata, description, returnUrl } = SAID;
    expect((await read(body.invoiceId, 'metadata')).body).toEqual({ ...body, metadata, description, returnUrl });
    const both = (await read(body.invoiceId, 'payment,metadata')).body;
    expect(both).toMatchObject({ metadata, description, returnUrl, payment: { requestedAmount: '25.000000' } });
    expect(await read(body.invoiceId, 'payment')).toMatchObject({ body: { payment: {} } });
    expect((await read(body.invoiceId, 'payment')).body.metadata).toBeUndefined();

    const text = await page(body.checkoutUrl);
    expect(text).toContain('Two tickets, “Café”');
    expect(text).toContain(`href="http://localhost:3000/orders/${body.invoiceId}"`);
    expect(text).not.toContain('c-17');
  });

  test('changes nothing where nothing is said', async () => {
    const { body } = await createInvoice(service, { body: { metadata: {} } });
    expect((await read(body.invoiceId, 'metadata')).body).toEqual({ ...body, metadata: {} });
    expect(await page(body.checkoutUrl)).not.toContain('class="purpose"');
    const [row] = await runSql(service, 'select options from invoices where external_id = $1', [body.externalId]);
    expect(row).toEqual({ options: null });
  });

  test('is told in the events of the invoice', async () => {
    const { body } = await createInvoice(service, { body: { metadata: SAID.metadata, expiresInSeconds: 300 } });
    const { body: silent } = await createInvoice(service, { body: { expiresInSeconds: 300 } });
    service.clock.advance(301_000);
    await expect
      .poll(async () => {
        service.devnet.mine();
        return (await read(silent.invoiceId)).body.status;
      })
      .toBe('EXPIRED');
    const { body: feed } = await call(`${service.url}/v1/events?types=invoice.expired`, {
      headers: { 'x-api-key': service.project.apiKey },
    });
    const of = (id: string) => feed.data.find((event: { data: { invoiceId: string } }) => event.data.invoiceId === id);
    expect(of(body.invoiceId).data.metadata).toEqual(SAID.metadata);
    expect(Object.keys(of(silent.invoiceId).data)).not.toContain('metadata');
  });
});

describe('a repeat', () => {
  test('is the same whatever order its members have, and a conflict that names what differs', async () => {
    const order = { idempotencyKey: randomUUID(), body: { externalId: randomUUID(), ...SAID } };
    const first = await createInvoice(service, order);
    const { Z, ...others } = SAID.metadata;
    const turned = { ...order.body, metadata: { Z, ...others } };
    const again = await createInvoice(service, { ...order, body: turned });
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.body.invoiceId).toBe(first.body.invoiceId);
    for (const [name, value] of [
      ['returnUrl', 'http://localhost:3000/other'],
      ['expiresInSeconds', 901],
      ['description', 'Two tickets'],
      ['metadata', { ...SAID.metadata, more: '1' }],
    ] as const) {
      const other = await createInvoice(service, { ...order, body: { ...order.body, [name]: value } });
      expect(other).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_CONFLICT', fields: [name] } });
    }
    const { metadata: _, ...without } = order.body;
    expect(await createInvoice(service, { ...order, body: without })).toMatchObject({
      status: 409,
      body: { fields: ['metadata'] },
    });
  });

  test('is answered also where the project would no longer allow it', async () => {
    const order = { idempotencyKey: randomUUID(), body: { externalId: randomUUID(), expiresInSeconds: 1800 } };
    const first = await createInvoice(service, order);
    await updateProject('--lifetime', '10m');
    try {
      const again = await createInvoice(service, order);
      expect(again).toMatchObject({ status: 201, body: { invoiceId: first.body.invoiceId } });
      expect(await createInvoice(service, { body: { expiresInSeconds: 1800 } })).toMatchObject({
        status: 400,
        body: { errors: [{ field: 'expiresInSeconds', code: 'OUT_OF_RANGE' }] },
      });
    } finally {
      await updateProject('--lifetime', '30m');
    }
  });
});

const long = (count: number) => 'x'.repeat(count);
const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 'v']));

describe('bad input is named, with its bound and an example, and nothing is stored', () => {
  test.each([
    ['returnUrl', 1, 'WRONG_TYPE', 'must be a string, not number'],
    ['returnUrl', null, 'WRONG_TYPE', 'not null'],
    ['returnUrl', 'javascript:alert(1)', 'WRONG_URL', 'https://shop.example.com/thanks'],
    ['returnUrl', 'http://shop.example/', 'WRONG_URL', 'use https://'],
    ['returnUrl', 'https://shop.example/{externalId}', 'WRONG_URL', '{invoiceId}'],
    ['returnUrl', `https://shop.example/${long(2048)}`, 'WRONG_URL', 'at most 2048'],
    ['returnUrl', 'https://shop.example/', 'NOT_ALLOWED', 'it allows none'],
    ['expiresInSeconds', '900', 'WRONG_TYPE', 'such as 900'],
    ['expiresInSeconds', 900.5, 'OUT_OF_RANGE', 'whole number'],
    ['expiresInSeconds', 299, 'OUT_OF_RANGE', '300 to 1800 seconds'],
    ['expiresInSeconds', 1801, 'OUT_OF_RANGE', '--lifetime'],
    ['expiresInSeconds', -1e300, 'OUT_OF_RANGE', 'whole number'],
    ['description', ['x'], 'WRONG_TYPE', 'an array'],
    ['description', '', 'WRONG_LENGTH', '1 to 140'],
    ['description', long(141), 'WRONG_LENGTH', 'has 141 characters: use at most 140'],
    ['description', 'a\nb', 'WRONG_CHARACTER', 'one line'],
    ['description', 'a\u202eb', 'WRONG_CHARACTER', 'reverses the text direction'],
    ['description', 'a\0b', 'WRONG_CHARACTER', 'control'],
    ['description', ' \u2800\u200b', 'WRONG_CHARACTER', 'no readable text'],
    ['description', `e${'\u0301'.repeat(5)}`, 'WRONG_CHARACTER', 'more than four combining marks'],
    ['description', 'Pay to TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t!', 'HOLDS_ADDRESS', 'remove it'],
    ['description', 'to Ｔ\u200bR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 'HOLDS_ADDRESS', 'only the payment address'],
    ['description', `to 0x${'Ab'.repeat(20)}`, 'HOLDS_ADDRESS', 'remove it'],
    ['metadata', [], 'WRONG_TYPE', '{"cart": "c-17"}'],
    ['metadata', 'x', 'WRONG_TYPE', 'not string'],
    ['metadata', { a: 1 }, 'WRONG_TYPE', 'each value must be a string'],
    ['metadata', { a: { b: 'c' } }, 'WRONG_TYPE', 'has object'],
    ['metadata', pairs(21), 'WRONG_LENGTH', 'at most 20'],
    ['metadata', { a: long(2048) }, 'WRONG_LENGTH', 'at most 2048'],
    ['metadata', { [long(41)]: '' }, 'WRONG_KEY', '1 to 40'],
    ['metadata', { '': '' }, 'WRONG_KEY', '1 to 40'],
    ['metadata', { 'a b': '' }, 'WRONG_KEY', 'begins with'],
    ['metadata', { a: '\0' }, 'WRONG_CHARACTER', 'U+0000'],
    ['metadata', { a: '\ud800' }, 'WRONG_CHARACTER', 'surrogate'],
  ])('%s %j', async (field, value, code, message) => {
    const externalId = randomUUID();
    const refused = await createInvoice(service, { body: { externalId, [field]: value } });
    expect(refused).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } });
    expect(refused.body.errors).toEqual([{ field, code, message: expect.stringContaining(message) }]);
    expect(await runSql(service, 'select from invoices where external_id = $1', [externalId])).toEqual([]);
  });

  test('keys that are there twice, and keys that programs stumble over', async () => {
    const send = (members: string) =>
      call(`${service.url}/v1/invoices`, {
        method: 'POST',
        headers: {
          'x-api-key': service.project.apiKey,
          'idempotency-key': randomUUID(),
          'content-type': 'application/json',
        },
        body: `{"amount":"25","asset":"USDT","network":"TRON","externalId":"${randomUUID()}","metadata":${members}}`,
      });
    expect((await send('{"a":"1","a":"2"}')).body.errors).toMatchObject([
      { field: 'metadata.a', code: 'DUPLICATE_FIELD' },
    ]);
    expect((await send('{"__proto__":"1"}')).body.errors).toMatchObject([{ field: 'metadata', code: 'WRONG_KEY' }]);
    expect((await send('{"constructor":"1"}')).status).toBe(201);
  });

  test('a site is allowed once the project names it', async () => {
    const sites = 'https://a.example https://b.example:8443';
    await updateProject('--return-url', 'https://shop.example/thanks', '--embed-origins', sites);
    try {
      for (const [returnUrl, status] of [
        ['https://shop.example/orders/{invoiceId}', 201],
        ['https://a.example/x', 201],
        ['https://b.example:8443/', 201],
        ['https://b.example/', 400],
        ['https://shop.example.evil.example/', 400],
        ['https://shop.example@evil.example/', 400],
      ] as const) {
        expect((await createInvoice(service, { body: { returnUrl } })).status, returnUrl).toBe(status);
      }
    } finally {
      await updateProject('--no-return-url', '--no-embed-origins');
    }
  });

  test('an expansion that is not known', async () => {
    const { body } = await createInvoice(service);
    for (const expand of ['', 'metadata,', 'all', 'payment,payments', 'Metadata']) {
      expect((await read(body.invoiceId, expand)).status, expand).toBe(400);
    }
  });
});

test('no invoice waits for longer than its project says, also where that was changed a moment ago', async () => {
  // The service caches the project for some seconds.
  expect((await createInvoice(service, { body: { expiresInSeconds: 1800 } })).status).toBe(201);
  const setLifetime = (ms: number) => runSql(service, `update projects set invoice_lifetime_ms = ${ms}`);
  await setLifetime(600_000);
  try {
    const before = service.clock.now();
    const { status, body } = await createInvoice(service, { body: { expiresInSeconds: 1800 } });
    expect(status).toBe(201);
    expect(Date.parse(body.expiresAt) - before).toBeLessThan(600_000 + 60_000);
  } finally {
    await setLifetime(1_800_000);
  }
});

test('what somebody wrote to the database past the service stops nothing, and is shown as text', async () => {
  const { body } = await createInvoice(service, { body: { description: 'Tea' } });
  const options = { description: { html: '<h1>Pay elsewhere</h1>' }, returnUrl: true, metadata: { a: 1 } };
  await runSql(service, 'alter table invoices disable trigger invoices_keep_what_they_are');
  await runSql(service, 'update invoices set options = $1 where external_id = $2', [
    JSON.stringify(options),
    body.externalId,
  ]);
  await runSql(service, 'alter table invoices enable trigger invoices_keep_what_they_are');
  const text = await page(body.checkoutUrl);
  expect(text).not.toContain('Pay elsewhere');
  expect((await read(body.invoiceId, 'metadata')).body).toEqual({ ...body, metadata: {} });

  await runSql(service, `update projects set return_url = 'x'`);
  await service.restart();
  expect((await createInvoice(service)).status).toBe(201);
  expect((await createInvoice(service, { body: { returnUrl: 'https://x/' } })).status).toBe(400);
  await runSql(service, 'update projects set return_url = null');
});
