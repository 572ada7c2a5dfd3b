import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import {
  type ApiErrorCode,
  type Invoice,
  type InvoiceWithMetadata,
  type InvoiceWithPayment,
  isFulfillable,
  Quittance,
  type QuittanceOptions,
  type WebhookEvent,
} from '../../packages/sdk/src/index.ts';
import type { ProblemCode } from '../../src/faces/web/problem.ts';
import { INVOICE, json, startAnsweringServer } from './answering-server.ts';
import { SDK_KEY } from './sdk-key.ts';

const API_KEY = SDK_KEY;
/** Values that a program without types may pass. */
const as = (value: unknown) => value as never;
let server: Awaited<ReturnType<typeof startAnsweringServer>>;
let quittance: Quittance;
beforeAll(async () => {
  server = await startAnsweringServer();
  quittance = new Quittance({ apiKey: API_KEY, baseUrl: `${server.url}/pay/` });
});
afterAll(() => server.stop());

describe('options', () => {
  const create = (options: Partial<QuittanceOptions>) => () =>
    new Quittance({ apiKey: API_KEY, baseUrl: 'https://pay.example.com', ...options });

  test.each([
    'http://pay.example.com',
    'http://localhost.example.com',
    'http://127.0.0.1.example.com',
    'http://10.0.0.1',
    'ftp://pay.example.com',
    'https://user:pass@pay.example.com',
    'https://pay.example.com/?a=1',
    'pay.example.com',
    '',
  ])('the address %j is refused', (baseUrl) => {
    expect(create({ baseUrl })).toThrow(TypeError);
  });

  test.each(['http://localhost:3000', 'http://127.1.2.3', 'http://[::1]:80', 'http://shop.localhost'])(
    'plain http is accepted for this machine: %s',
    (baseUrl) => {
      expect(create({ baseUrl })).not.toThrow();
    },
  );

  test('plain http to another machine needs to be asked for', () => {
    expect(create({ baseUrl: 'http://quittance.internal', allowInsecureHttp: true })).not.toThrow();
  });

  test.each([
    { apiKey: '' },
    { apiKey: SDK_KEY.slice(0, -1) },
    { apiKey: SDK_KEY.replace('0', '1') },
    { apiKey: 'qt_test_a\r\nb' },
    { timeoutMs: Number.NaN },
    { maxRetries: 11 },
  ])('what cannot work is refused without being repeated: %j', (options) => {
    expect(create(options)).toThrow(/^(?!.*qt_test)/);
    expect(create(options)).toThrow(TypeError);
  });

  test('the client shows its key to nobody who prints or serialises it', () => {
    expect(inspect(quittance, { depth: 9, showHidden: true }) + JSON.stringify(quittance)).not.toContain(API_KEY);
  });
});

describe('invoices', () => {
  test('create sends the key, the headers and the defaults, and answers the invoice', async () => {
    server.answer(json(201, INVOICE));
    const invoice = await quittance.invoices.create(
      { amount: '25.00', externalId: 'order-1' },
      { idempotencyKey: 'attempt-1' },
    );
    expect(invoice).toEqual(INVOICE);
    expect(server.seen).toHaveLength(1);
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      url: '/pay/v1/invoices',
      headers: { 'x-api-key': API_KEY, 'idempotency-key': 'attempt-1', 'content-type': 'application/json' },
    });
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({
      amount: '25.00',
      asset: 'USDT',
      network: 'TRON',
      externalId: 'order-1',
    });
  });

  test.each([undefined, '', 'with space', 'ü', 'x'.repeat(256)])('create needs an idempotency key: %j', async (key) => {
    server.answer(json(201, INVOICE));
    const input = { amount: '25.00', externalId: 'order-1' };
    await expect(quittance.invoices.create(input, { idempotencyKey: key as string })).rejects.toThrow(TypeError);
    expect(server.seen).toEqual([]);
  });

  test('a conflict says which rule was broken, and which invoice there is', async () => {
    const problem = {
      code: 'IDEMPOTENCY_CONFLICT',
      detail: 'The externalId is already reserved.',
      requestId: 'req_1',
      conflict: 'externalId',
      fields: ['amount'],
      invoiceId: INVOICE.invoiceId,
    };
    server.answer(json(409, problem));
    const creating = quittance.invoices.create({ amount: '1', externalId: 'order-1' }, { idempotencyKey: 'k' });
    await expect(creating).rejects.toMatchObject({
      name: 'QuittanceError',
      code: 'IDEMPOTENCY_CONFLICT',
      status: 409,
      conflict: 'externalId',
      fields: ['amount'],
      supported: [],
      retryAfterMs: undefined,
      invoiceId: INVOICE.invoiceId,
      requestId: 'req_1',
      message: expect.stringContaining('The externalId is already reserved.'),
    });
  });

  test.each<[string, () => Promise<unknown>]>([
    [
      'a number for an amount',
      () => quittance.invoices.create(as({ amount: 25, externalId: 'o' }), { idempotencyKey: 'k' }),
    ],
    ['no amount', () => quittance.invoices.create(as({ externalId: 'o' }), { idempotencyKey: 'k' })],
    [
      'an amount of nothing',
      () => quittance.invoices.create({ amount: '0.00', externalId: 'o' }, { idempotencyKey: 'k' }),
    ],
    ['no externalId', () => quittance.invoices.create(as({ amount: '1' }), { idempotencyKey: 'k' })],
    [
      'another asset',
      () => quittance.invoices.create(as({ amount: '1', externalId: 'o', asset: 'TRX' }), { idempotencyKey: 'k' }),
    ],
    ['no input', () => quittance.invoices.create(as(undefined), { idempotencyKey: 'k' })],
    ['no options', () => quittance.invoices.create({ amount: '1', externalId: 'o' }, as(undefined))],
    [
      'a key with a space',
      () => quittance.invoices.create({ amount: '1', externalId: 'o' }, { idempotencyKey: 'a b' }),
    ],
    ['no id', () => quittance.invoices.get(as(undefined))],
    ['something else to expand', () => quittance.invoices.get('inv_1', as({ expand: 'all' }))],
    ['two without a comma', () => quittance.invoices.get('inv_1', as({ expand: 'paymentmetadata' }))],
    ['an externalId of 201 characters', () => quittance.invoices.findByExternalId('x'.repeat(201))],
    ['a limit of 1000', () => quittance.events.page({ limit: 1000 })],
    ['a page after no event', () => quittance.events.page({ after: 'inv_1' })],
  ])('%s is a TypeError, and nothing is sent', async (_, call) => {
    server.answer(json(200, INVOICE));
    await expect(call()).rejects.toThrow(TypeError);
    expect(server.seen).toEqual([]);
  });

  test('an amount with too many decimals is told so', async () => {
    const creating = quittance.invoices.create({ amount: '1.0000001', externalId: 'o' }, { idempotencyKey: 'k' });
    await expect(creating).rejects.toThrow('amount has too many decimals: at most 6');
    expect(server.seen).toEqual([]);
  });

  test('it says who asks', async () => {
    server.answer(json(200, INVOICE));
    await quittance.invoices.get(INVOICE.invoiceId);
    const { version } = JSON.parse(
      await readFile(join(import.meta.dirname, '../../packages/sdk/package.json'), 'utf8'),
    );
    expect(server.seen[0]?.headers['user-agent']).toBe(`quittance-sdk/${version}`);
  });

  test('invalid input names every field', async () => {
    const errors = [{ field: 'amount', code: 'TOO_PRECISE', message: 'has 7 decimals' }];
    server.answer(json(400, { code: 'INVALID_REQUEST', detail: 'x', errors: [...errors, null, { field: 1 }] }));
    const creating = quittance.invoices.create({ amount: '1', externalId: 'o' }, { idempotencyKey: 'k' });
    await expect(creating).rejects.toMatchObject({ errors });
  });

  test('get answers the payment only if it is asked for, and its type says so', async () => {
    server.answer(json(200, INVOICE));
    const plain = await quittance.invoices.get(INVOICE.invoiceId);
    expectTypeOf(plain).toEqualTypeOf<Invoice>();
    const expanded = await quittance.invoices.get(INVOICE.invoiceId, { expand: ['payment'] });
    expectTypeOf(expanded).toEqualTypeOf<InvoiceWithPayment>();
    await quittance.invoices.get(INVOICE.invoiceId, { expand: 'payment' });
    const path = `/pay/v1/invoices/${INVOICE.invoiceId}`;
    const said = await quittance.invoices.get(INVOICE.invoiceId, { expand: 'metadata' });
    expectTypeOf(said).toEqualTypeOf<InvoiceWithMetadata>();
    await quittance.invoices.get(INVOICE.invoiceId, { expand: ['payment', 'metadata'] });
    expect(server.seen.map(({ url }) => url)).toEqual([
      ...[path, `${path}?expand=payment`, `${path}?expand=payment`],
      ...[`${path}?expand=metadata`, `${path}?expand=payment,metadata`],
    ]);
  });

  test.each(['', '..', 'a/b', 'inv_1?expand=x'])('get asks for no other page than an invoice: %j', async (id) => {
    await expect(quittance.invoices.get(id)).rejects.toThrow(TypeError);
  });

  test('findByExternalId answers the invoice, or null', async () => {
    server.answer(json(200, { data: [{ ...INVOICE, externalId: 'a&b=ü ' }] }), json(200, { data: [] }));
    expect(await quittance.invoices.findByExternalId('a&b=ü ')).toMatchObject({ externalId: 'a&b=ü ' });
    expect(await quittance.invoices.findByExternalId('order-2')).toBeNull();
    expect(server.seen[0]?.url).toBe('/pay/v1/invoices?externalId=a%26b%3D%C3%BC%20');
  });

  test.each(['', 'a\uD800'])('findByExternalId refuses what no invoice can have: %j', async (externalId) => {
    await expect(quittance.invoices.findByExternalId(externalId)).rejects.toThrow(TypeError);
  });

  test('an answer about another invoice than the one asked for is not handed on', async () => {
    const other = { ...INVOICE, invoiceId: 'inv_other', externalId: 'order-9', status: 'PAID' };
    const refused = { code: 'UNEXPECTED_ANSWER' };
    server.answer(json(200, other));
    await expect(quittance.invoices.get(INVOICE.invoiceId)).rejects.toMatchObject(refused);
    server.answer(json(200, { data: [other] }));
    await expect(quittance.invoices.findByExternalId('order-1')).rejects.toMatchObject(refused);
    server.answer(json(200, { data: 'x' }));
    await expect(quittance.invoices.findByExternalId('order-1')).rejects.toMatchObject(refused);
  });
});

describe('events', () => {
  const event = (id: string) => ({ id, type: 'invoice.paid', data: {} });
  const page = (ids: string[], hasMore: boolean) => json(200, { data: ids.map(event), hasMore, latest: 'evt_5' });

  test('list walks all pages to the end, each from where the last one ended', async () => {
    server.answer(page(['evt_2', 'evt_3'], true), page(['evt_4', 'evt_5'], true), page([], false));
    const ids: string[] = [];
    for await (const { id } of quittance.events.list({ after: 'evt_1', limit: 2 })) ids.push(id);
    expect(ids).toEqual(['evt_2', 'evt_3', 'evt_4', 'evt_5']);
    expect(server.seen.map(({ url }) => url.split('?')[1])).toEqual([
      'after=evt_1&limit=2',
      'after=evt_3&limit=2',
      'after=evt_5&limit=2',
    ]);
  });

  test('list asks for no page that is not needed', async () => {
    server.answer(page(['evt_1', 'evt_2'], true));
    for await (const _ of quittance.events.list()) break;
    expect(server.seen.map(({ url }) => url)).toEqual(['/pay/v1/events']);
  });

  test('pages that lead no further end in an error, not in a loop', async () => {
    server.answer(page(['evt_1'], true));
    const all = async () => {
      for await (const _ of quittance.events.list());
    };
    await expect(all()).rejects.toMatchObject({ code: 'UNEXPECTED_ANSWER' });
    expect(server.seen).toHaveLength(2);
  });

  test('page answers one page and the newest event', async () => {
    server.answer(page(['evt_4'], false));
    expect(await quittance.events.page({ after: 'evt_3' })).toEqual({
      data: [event('evt_4')],
      hasMore: false,
      latest: 'evt_5',
    });
  });
});

describe('isFulfillable', () => {
  test.each([
    [{ status: 'PAID', externalId: 'order-1' }, 'order-1', true],
    [{ status: 'PAID', externalId: 'order-2' }, 'order-1', false],
    [{ status: 'CONFIRMING', externalId: 'order-1' }, 'order-1', false],
    [{ status: 'paid', externalId: 'order-1' }, 'order-1', false],
    [{ status: ['PAID'], externalId: 'order-1' }, 'order-1', false],
    [{ status: 'PAID', externalId: 1 }, 1, false],
    [{ status: 'PAID', externalId: '' }, '', false],
    [{ status: 'PAID' }, undefined, false],
    [null, 'order-1', false],
    ['PAID', 'order-1', false],
  ])('%j for %j: %s', (invoice, externalId, expected) => {
    expect(isFulfillable(invoice as Invoice, externalId as string)).toBe(expected);
  });
});

test('the types know every error code and tell events apart', () => {
  expectTypeOf<ApiErrorCode>().toEqualTypeOf<ProblemCode>();
  const read = (event: WebhookEvent) => {
    if (event.type === 'invoice.paid') expectTypeOf(event.data.status).toEqualTypeOf<'PAID'>();
    if (event.type === 'transfer.unmatched') expectTypeOf(event.data.txId).toEqualTypeOf<string>();
    return event.id;
  };
  expectTypeOf(read).returns.toEqualTypeOf<string>();
});
