import { gzipSync } from 'node:zlib';
import Fastify from 'fastify';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { renderPage } from '../../src/checkout/page.ts';
import { registerCheckout } from '../../src/checkout/register.ts';
import { unixMs } from '../../src/domain/time.ts';
import { openDatabase } from '../../src/store/database.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { newInvoice, payInto, type TestInvoice } from './checkout.ts';

let service: TestService;
let invoice: TestInvoice;
beforeAll(async () => {
  service = await startTestService();
  invoice = await newInvoice(service);
});
afterAll(() => service.stop());

const KIB = 1024;

async function get(path: string, method: 'GET' | 'HEAD' = 'GET') {
  const { statusCode, headers, body } = await request(new URL(path, service.url), { method });
  // These are of the connection and of the one request.
  const { date: _1, 'x-request-id': _2, connection: _3, 'keep-alive': _4, ...kept } = headers;
  return { status: statusCode, headers: kept as Record<string, string>, text: await body.text() };
}

test('the page with its QR code and style is at most 10 KiB, the script at most 6, compressed', async () => {
  const { text: page } = await get(invoice.url);
  const [css, js] = [...page.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path);
  const [style, script] = [(await get(css ?? '')).text, (await get(js ?? '')).text];
  const sizes = { page: gzipSync(page).length, style: gzipSync(style).length, script: gzipSync(script).length };
  expect(sizes.page + sizes.style).toBeLessThanOrEqual(10 * KIB);
  expect(sizes.script).toBeLessThanOrEqual(6 * KIB);
});

test('the page names nothing but its two assets, and has no inline script, style or handler', async () => {
  const { text } = await get(invoice.url);
  expect(text.match(/(?:src|href|action)="[^"]*"/g)).toEqual([
    'href="data:,"',
    expect.stringMatching(/^href="\/assets\/checkout\.css\?v=[0-9a-f]{12}"$/),
    expect.stringMatching(/^src="\/assets\/checkout\.js\?v=[0-9a-f]{12}"$/),
    `href="${new URL(invoice.url).pathname}"`,
  ]);
  expect(text).not.toMatch(/<style|<script>|\sstyle=|\son\w+=|https?:/i);
  expect(text).not.toContain(invoice.id);
});

test('nothing about a payment is kept, framed or leaked by its link', async () => {
  for (const suffix of ['', '/fragment', '/status']) {
    const { headers } = await get(`${invoice.url}${suffix}`);
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-robots-tag': 'noindex, nofollow',
    });
    const policy = headers['content-security-policy']?.split('; ') ?? [];
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy.join()).not.toMatch(/unsafe|\*|https?:/);
  }
});

test('an asset is kept for ever under its version and for no time under another', async () => {
  const { text } = await get(invoice.url);
  const [, path = ''] = /src="([^"]+)"/.exec(text) ?? [];
  expect((await get(path)).headers['cache-control']).toBe('public, max-age=31536000, immutable');
  for (const other of ['/assets/checkout.js', '/assets/checkout.js?v=old', `${path}&v=old`]) {
    expect((await get(other)).headers['cache-control']).toBe('no-cache');
  }
});

test('a link that is unknown, malformed, cut or hostile gets one and the same calm answer', async () => {
  const unknown = await get('/c/1111111111111111111111');
  expect(unknown.status).toBe(404);
  expect(unknown.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(unknown.text).toContain('There is no invoice at this link');
  const { pathname } = new URL(invoice.url);
  const malformed = [
    '/c/',
    '/c/x',
    `${pathname}.`,
    `${pathname}/`,
    pathname.slice(0, 12),
    '/c/%3Cscript%3E',
    '/c/%E0%A4%A',
    '/c/..%2f..%2fetc',
    `/c/${'1'.repeat(3000)}`,
    '/c/1111111111111111111111/more/of/it',
  ];
  for (const path of malformed) expect(await get(path), path).toEqual(unknown);
});

test('HEAD answers as GET does, without the body', async () => {
  for (const path of [invoice.url, `${invoice.url}/status`, '/c/unknown', '/assets/checkout.css']) {
    const [head, got] = [await get(path, 'HEAD'), await get(path)];
    expect(head, path).toEqual({ ...got, text: '' });
  }
});

test('the status in JSON has amount and address only while a transfer is wanted', async () => {
  const waiting = await get(`${invoice.url}/status`);
  expect(JSON.parse(waiting.text)).toEqual({
    state: 'waiting',
    amount: invoice.amount,
    address: invoice.address,
    projectName: 'Test shop',
    expiresAt: expect.any(String),
    blind: false,
    transaction: null,
  });
  await payInto(service, invoice);
  expect(JSON.parse((await get(`${invoice.url}/status`)).text)).toMatchObject({
    state: 'confirming',
    amount: null,
    address: null,
    transaction: { amount: invoice.amount, confirmations: 1 },
  });
});

test('a project name is text, whatever it holds', () => {
  const page = renderPage({
    view: {
      state: 'waiting',
      amount: '25.000009',
      address: 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY',
      projectName: `</title><script>alert(1)</script>" onload='x' \u202egnp & <b>`,
      expiresAt: '2026-09-01T12:30:00.000Z',
      blind: false,
      transaction: null,
    },
    path: '/c/1111111111111111111111',
    now: unixMs(Date.parse('2026-09-01T12:00:30.000Z')),
    hadPayment: false,
  });
  expect(page).not.toContain('<script>alert');
  expect(page).not.toMatch(/" onload/);
  expect(page).toContain(
    '<bdi>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&#39;x&#39; \u202egnp &amp; &lt;b&gt;</bdi>',
  );
  expect(page).toContain(
    '<strong><time datetime="2026-09-01T12:30:00.000Z">1 Sept 2026, 12:30 UTC</time></strong><br>29 minutes left',
  );
});

test('while the database is away the page says so calmly', async () => {
  // Nothing listens there.
  const connection = { host: '127.0.0.1', port: 1, user: 'nobody', password: '', database: 'none' };
  const db = openDatabase({ connection, poolSize: 1, applicationName: 'test', onError: () => undefined });
  const app = Fastify();
  registerCheckout(app, { db, now: () => unixMs(0) });
  const { statusCode, headers, body } = await app.inject('/c/1111111111111111111111');
  await db.close();
  expect({ statusCode, retry: headers['retry-after'], body }).toEqual({
    statusCode: 503,
    retry: '5',
    body: expect.stringContaining('Do not send it again'),
  });
});
