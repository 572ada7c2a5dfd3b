import { request } from 'undici';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { runSql } from '../contract/sql.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { addTestAdapter, orderAtEpay, orderAtEpusdt, type ShopAdapter, send, startShop } from './fixture.ts';

let service: TestService;
let adapters: Record<'epusdt' | 'bepusdt' | 'epay', ShopAdapter>;
beforeAll(async () => {
  service = await startTestService();
  const [epusdt, bepusdt, epay] = [
    await addTestAdapter(service, 'epusdt'),
    await addTestAdapter(service, 'bepusdt'),
    await addTestAdapter(service, 'epay'),
  ];
  adapters = { epusdt, bepusdt, epay };
});
afterAll(() => service.stop());

type Form = 'epusdt' | 'epay' | 'words' | 'both';

/** Expects an error in the form of its protocol, with this HTTP status. */
function expectForm(answer: { status: number; type: string; text: string }, form: Form, status: number): void {
  expect(answer.status, answer.text).toBe(status);
  if (form === 'words') {
    expect(answer.type).toMatch(/^text\/plain/);
    expect(answer.text).toMatch(/^[^{}\n]+\n$/);
    return;
  }
  expect(answer.type).toMatch(/^application\/json/);
  const { status_code, message, data, request_id, code, msg, ...rest } = JSON.parse(answer.text);
  expect(rest).toEqual({});
  const inEpusdt = {
    status_code: status,
    message: expect.any(String),
    data: null,
    request_id: expect.stringMatching(/^req_/),
  };
  expect({ status_code, message, data, request_id }).toEqual(
    form === 'epay' ? { status_code, message, data, request_id } : inEpusdt,
  );
  expect({ code, msg }).toEqual(form === 'epusdt' ? {} : { code: -1, msg: expect.any(String) });
}

type Options = { method?: string; body?: string | undefined; type?: string };

async function ask(url: string, { method = 'GET', body, type }: Options = {}) {
  const headers = type === undefined ? {} : { 'content-type': type };
  const reply = await request(url, { method: method as 'GET', headers, body: body ?? null });
  return {
    status: reply.statusCode,
    type: String(reply.headers['content-type']),
    text: await reply.body.text(),
    headers: reply.headers,
  };
}

const ORDERS: [kind: keyof typeof adapters, path: string, form: Form][] = [
  ['epusdt', '/api/v1/order/create-transaction', 'epusdt'],
  ['epusdt', '/payments/gmpay/v1/order/create-transaction', 'epusdt'],
  ['bepusdt', '/api/v1/order/create-transaction', 'epusdt'],
  ['bepusdt', '/api/v1/order/create-order', 'epusdt'],
  ['bepusdt', '/api/v1/order/cancel-transaction', 'epusdt'],
  ['epay', '/submit.php', 'words'],
  ['epay', '/payments/epay/v1/order/create-transaction/submit.php', 'words'],
  ['epay', '/mapi.php', 'epay'],
  ['epay', '/api.php', 'epay'],
];

test.each(ORDERS)('of %s, %s answers 405, 413, 415 and 429 in its form', async (kind, path, form) => {
  const url = adapters[kind].url + path;
  const refused = await ask(url, { method: 'DELETE' });
  expectForm(refused, form, 405);
  expect(refused.headers['allow']).toContain('POST');
  expectForm(await ask(url, { method: 'POST', body: 'x'.repeat(20_000), type: 'application/json' }), form, 413);
  expectForm(await ask(url, { method: 'POST', body: '{}', type: 'a b' }), form, 415);
  const limited = await startTestService({ config: { rateLimit: { perSecond: 0.001, burst: 1 } } });
  onTestFinished(() => limited.stop());
  const at = await addTestAdapter(limited, kind);
  const order =
    kind === 'epay'
      ? orderAtEpay({ url: 'http://127.0.0.1:1' })
      : orderAtEpusdt({ url: 'http://127.0.0.1:1' }, { pid: 1000 });
  const ordering = () =>
    kind === 'epay' && path === '/api.php'
      ? ask(`${at.url}${path}?act=order&pid=1000&key=${at.secret}`)
      : kind === 'epay'
        ? ask(`${at.url}${path}?${new URLSearchParams(order as Record<string, string>)}`)
        : ask(at.url + path, { method: 'POST', body: JSON.stringify(order), type: 'application/json' });
  await ordering();
  const second = await ordering();
  expectForm(second, form, 429);
  expect(Number(second.headers['retry-after'])).toBeGreaterThan(0);
});

test.each<[path: string, form: Form]>([
  ['/submit.phpsubmit.php', 'words'],
  ['/submit.php/', 'words'],
  ['/x/submit.php', 'words'],
  ['//submit.php', 'words'],
  ['/mapi.phpmapi.php', 'epay'],
  ['/api.php/x', 'epay'],
  ['/api/v1/order/create-transaction/', 'epusdt'],
  ['/api/v1/order/create-transaction/api/v1/order/create-transaction', 'epusdt'],
  ['/api/v1/order/refund', 'epusdt'],
  ['/api/v1/pay/info', 'epusdt'],
  ['/payments/gmpay/v1/config', 'epusdt'],
  ['/pay/check-status', 'epusdt'],
  ['/pay/checkout-counter/x', 'epusdt'],
  ['', 'both'],
  ['/', 'both'],
  ['/pay.php', 'both'],
  ['/%zz', 'both'],
  ['/%', 'both'],
  ['/%E0%A4', 'both'],
])('below an adapter, %j is a 404 in its form, for any method, and says what to compare', async (path, form) => {
  for (const method of ['GET', 'POST', 'PUT']) {
    for (const id of [new URL(adapters.epay.url).pathname, '/adapters/whe_x', '/adapters/%zz']) {
      const answer = await ask(`${service.url}${id}${path}?sign=secret`, { method });
      expectForm(answer, form, 404);
      expect(answer.text).toContain('docs/guides/adapters.md');
      expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'x-robots-tag': 'noindex' });
      expect(answer.text).not.toContain('secret');
    }
  }
});

test.each(ORDERS)(
  'of %s, %s answers 503 in its form while the secret of the adapter does not open',
  async (kind, path, form) => {
    const other = await startTestService();
    onTestFinished(() => other.stop());
    const at = await addTestAdapter(other, kind);
    await runSql(other, 'alter table webhook_secrets disable trigger user');
    await runSql(other, `update webhook_secrets set master_key_id = '0123456789abcdef' where endpoint_id = $1`, [
      at.id,
    ]);
    const post = { method: 'POST', body: '{"a":1}', type: 'application/json' };
    const answer = await ask(at.url + path, kind === 'epay' ? {} : post);
    expectForm(answer, form, 503);
    expect(answer.headers['retry-after']).toBe('60');
  },
);

test('an answer elsewhere keeps its form', async () => {
  const answer = await ask(`${service.url}/adaptersubmit.php`);
  expect([answer.status, answer.type]).toEqual([404, expect.stringContaining('application/problem+json')]);
});

test('BEpusdt has one code for every refusal', async () => {
  const shop = await startShop('ok');
  onTestFinished(() => shop.stop());
  for (const fields of [
    { amount: 0 },
    { fiat: 'USD' },
    { rate: '7' },
    { trade_type: 'tron.trx' },
    { notify_url: 'x' },
  ]) {
    const order = orderAtEpusdt(shop, fields);
    const reply = await send(`${adapters.bepusdt.url}/api/v1/order/create-transaction`, {
      body: JSON.stringify(order),
    });
    expect(reply).toMatchObject({ status: 200, body: { status_code: 400, data: null } });
  }
});
