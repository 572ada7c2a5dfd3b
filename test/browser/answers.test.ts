import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import Fastify from 'fastify';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { registerCheckout } from '../../src/faces/checkout/page/register.ts';
import { LANGUAGES } from '../../src/faces/checkout/words/languages.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { updateProject } from '../../src/faces/operator/subjects/projects.ts';
import { FULL_BRAND } from '../support/checkout-page.ts';
import { LOGOS } from '../support/logos.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { newInvoice, payInto, type TestInvoice } from './checkout.ts';

let service: TestService;
let invoice: TestInvoice;
beforeAll(async () => {
  service = await startTestService();
  const { db, clock, project } = service;
  const deps = { db, now: () => unixMs(clock.now()) };
  const logo = { type: 'image/png', content: LOGOS.png } as const;
  const projectId = encodeId('prj', project.id);
  await updateProject.run(deps, commandActor('test'), { ...FULL_BRAND, logo, projectId });
  // Keeps pages from going blind, and the minute from changing between two compared answers.
  clock.freeze();
  invoice = await newInvoice(service);
});
afterAll(() => service.stop());

type Answered = { status: number; headers: Record<string, string>; text: string };

async function get(
  path: string,
  options: { method?: 'GET' | 'HEAD' | 'POST'; headers?: Record<string, string>; body?: string } = {},
): Promise<Answered> {
  const { method = 'GET', headers: sent = {}, body: content = null } = options;
  const { statusCode, headers, body } = await request(new URL(path, service.url), {
    method,
    headers: sent,
    body: content,
  });
  // These headers depend on the connection and the individual request.
  const { date: _1, 'x-request-id': _2, connection: _3, 'keep-alive': _4, ...kept } = headers;
  const bytes = Buffer.from(await body.arrayBuffer());
  const isCompressed = 'content-encoding' in headers && bytes.length > 0;
  const decompress = headers['content-encoding'] === 'br' ? brotliDecompressSync : gunzipSync;
  return {
    status: statusCode,
    headers: kept as Record<string, string>,
    text: (isCompressed ? decompress(bytes) : bytes).toString(),
  };
}

const NONCE = /nonce[-=]"?([A-Za-z0-9+/]{22}==)/g;

/** Removes the nonce, which differs in each answer. */
const settled = ({ headers, text, ...rest }: Answered): Answered => {
  const settle = (part: string) => part.replaceAll(NONCE, 'nonce');
  const policy = settle(headers['content-security-policy'] ?? '');
  return { ...rest, headers: { ...headers, 'content-security-policy': policy }, text: settle(text) };
};

const ask = (url: string, body: string) =>
  get(`${url}/ask`, { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body });

test('the page names nothing of others but the links of the merchant, and runs nothing but its own style and script', async () => {
  const answer = await get(invoice.url);
  const { text, headers } = answer;
  const { pathname } = new URL(invoice.url);
  const named = [...text.matchAll(/\s(src|href|action)="([^"]*)"/g)].map(
    ([, attribute, url = '']) => `${attribute} ${url}`,
  );
  const languages = named.filter((name) => name.startsWith('href ?lang='));
  expect(languages).toHaveLength(LANGUAGES.length - 1);
  expect(named.filter((name) => !languages.includes(name))).toEqual([
    'href data:,',
    expect.stringMatching(/^src \/assets\/checkout\.js\?v=[0-9a-f]{12}$/),
    expect.stringMatching(/^src \/logos\/[0-9a-f]{32}$/),
    `action ${pathname}/ask#transaction-answer`,
    `action ${pathname}/ask#fee-answer`,
    `action ${pathname}/ask#paste-answer`,
    `href ${pathname}`,
    'href mailto:help@shop.example',
    `href ${FULL_BRAND.returnUrl}`,
  ]);
  // Also excludes origins anywhere else. A nonce may contain two slashes.
  expect(settled(answer).text.replaceAll(/ href="[^"]*"/g, '')).not.toMatch(/\/\/[a-z0-9]|url\(|@import/i);
  const [nonce] = [...(headers['content-security-policy'] ?? '').matchAll(NONCE)].map(([, found]) => found);
  expect(text.match(/<(?:style|script)\b[^>]*>/g)).toEqual([
    `<style nonce="${nonce}">`,
    expect.stringMatching(/^<script src="\/assets\/checkout\.js\?v=[0-9a-f]{12}" nonce="[^"]+" defer>$/),
  ]);
  expect(text).toContain(`nonce="${nonce}" defer>`);
  expect(text).not.toMatch(/<[^>]*\s(?:on[a-z]+|style)=/i);
  expect(text).not.toMatch(/<(?:iframe|object|embed|base|link rel="(?!icon))/i);
  expect(text).not.toContain(invoice.id);
});

test('each answer has a nonce of its own, in its policy and in its page', async () => {
  const nonces = async () => {
    const { headers, text } = await get(invoice.url);
    return [...`${headers['content-security-policy']}${text}`.matchAll(NONCE)].map(([, nonce]) => nonce);
  };
  const all = [...(await nonces()), ...(await nonces())];
  expect(all).toHaveLength(8);
  expect(new Set(all).size).toBe(2);
});

const NEVER_KEPT = ['', '/status', '/parts', '/live', '/receipt', '/ask', '/receipt.json', '/what/ever'];

test.each(NEVER_KEPT)('nothing about a payment is kept, framed or leaked by its link: %s', async (suffix) => {
  const { headers } = await get(`${invoice.url}${suffix}`, { method: 'HEAD' });
  expect(headers).toMatchObject({
    'cache-control': expect.stringMatching(/^no-store/),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-robots-tag': 'noindex, nofollow',
  });
  const policy = headers['content-security-policy']?.split('; ') ?? [];
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).toContain("base-uri 'none'");
  expect(policy.join()).not.toMatch(/unsafe|\*|https?:/);
});

test('an asset is kept for ever under its version and for no time under another', async () => {
  const { text } = await get(invoice.url);
  const [, path = ''] = /src="(\/assets[^"]+)"/.exec(text) ?? [];
  expect((await get(path)).headers['cache-control']).toBe('public, max-age=31536000, immutable');
  for (const other of ['/assets/checkout.js', '/assets/checkout.js?v=old', `${path}&v=old`]) {
    expect((await get(other)).headers['cache-control']).toBe('no-cache');
  }
});

test.each([
  ['?lang=ar', {}, 'ar', 'rtl'],
  ['?lang=fa', { 'accept-language': 'fr' }, 'fa', 'rtl'],
  ['', { 'accept-language': 'zh-TW,zh;q=0.9,en;q=0.8' }, 'zh-Hant', 'ltr'],
  ['?lang=%3Cscript%3E', { 'accept-language': 'pt-PT' }, 'pt-BR', 'ltr'],
  ['?lang=fr&lang=es', { 'accept-language': 'xx;q=oops,*' }, 'en', 'ltr'],
  ['', { 'accept-language': `tr,${'x'.repeat(10_000)}` }, 'tr', 'ltr'],
])(
  'a reader who asks with "%s" and %j reads %s, in a page that says so',
  async (query, headers, language, direction) => {
    for (const url of [invoice.url, '/c/unknown']) {
      const answer = await get(`${url}${query}`, { headers });
      expect(answer.text).toContain(`<html lang="${language}" dir="${direction}">`);
      expect(answer.headers['vary']).toBe('Accept-Encoding, Accept-Language');
    }
  },
);

test('a link that is unknown, malformed, cut or hostile gets one and the same calm answer', async () => {
  const unknown = settled(await get('/c/1111111111111111111111'));
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
    pathname.toLowerCase() === pathname ? `${pathname}a` : pathname.toLowerCase(),
    '/c/%3Cscript%3E',
    '/c/%22%3E%3Cimg%20src=x%3E',
    '/c/%E0%A4%A',
    '/c/%00',
    '/c/..%2f..%2fetc',
    `/c/${'1'.repeat(3000)}`,
    '/c/1111111111111111111111/more/of/it',
    '/c/1111111111111111111111/receipt',
    '/c/1111111111111111111111/ask',
    '/c/x/receipt',
  ];
  for (const path of malformed) expect(settled(await get(path)), path).toEqual(unknown);
  for (const url of ['/c/1111111111111111111111', '/c/x', '/c/%3Cscript%3E']) {
    expect(settled(await ask(url, 'transaction=x')), url).toEqual(unknown);
  }
});

test('HEAD answers as GET does, without the body', async () => {
  const paths = ['', '?lang=ru', '/status', '/receipt'].map((suffix) => `${invoice.url}${suffix}`);
  for (const path of [...paths, '/c/unknown', '/assets/checkout.js', '/robots.txt']) {
    for (const headers of [{}, { 'accept-encoding': 'gzip' }, { 'accept-encoding': 'br' }]) {
      // When compressed, two nonces may differ in length.
      const comparable = (answer: Answered) => {
        const { 'content-length': length, ...rest } = settled(answer).headers;
        return { status: answer.status, headers: rest, hasLength: Number(length) >= 0 };
      };
      const [head, got] = [await get(path, { method: 'HEAD', headers }), await get(path, { headers })];
      expect(comparable(head), path).toEqual(comparable(got));
      expect(head.text).toBe('');
    }
  }
});

test.each(['gzip', 'br'])('a page is compressed by %s for whoever accepts that, and is the same', async (coding) => {
  const plain = await get(invoice.url);
  const compressed = await get(invoice.url, { headers: { 'accept-encoding': coding } });
  expect(plain.headers['content-encoding']).toBeUndefined();
  expect(compressed.headers['content-encoding']).toBe(coding);
  expect(settled(compressed).text).toBe(settled(plain).text);
  expect(Number(compressed.headers['content-length'])).toBeLessThan(Number(plain.headers['content-length']) / 2);
  const refusing = await get(invoice.url, { headers: { 'accept-encoding': `${coding};q=0` } });
  expect(refusing.headers['content-encoding']).toBeUndefined();
});

test.each([
  ['transaction', `"><img src=x onerror=alert(1)>`],
  ['transaction', '</textarea></title><script>alert(1)</script>'],
  ['fee', `1" autofocus onfocus="alert(1)`],
  ['paste', `\u202e'><svg onload=alert(1)>`],
])('what is entered as %s comes back as text: %s', async (field, text) => {
  const answer = await ask(invoice.url, new URLSearchParams({ [field]: text }).toString());
  expect(answer.status).toBe(200);
  expect(answer.text).not.toMatch(/<img src=x|<script>|<svg onload|" autofocus/);
  expect(answer.text).toMatch(new RegExp(`name="${field}" value="[^"]+"`));
});

test('the address of an answer leads back to the page, in the same language', async () => {
  const { status, headers } = await get(`${invoice.url}/ask?lang=fa`);
  expect([status, headers['location']]).toEqual([303, `${new URL(invoice.url).pathname}?lang=fa`]);
});

test('what is no form of the page asks nothing, and is answered by the page', async () => {
  const page = settled(await get(invoice.url));
  for (const body of ['', 'x=1', 'lang=ar', '%E0%A4%A', '&&&=', '\u0000']) {
    const answer = settled(await ask(invoice.url, body));
    expect(answer.status, body).toBe(200);
    expect(answer.text, body).toBe(page.text);
  }
});

test('the status in JSON has amount and address only while a transfer is wanted', async () => {
  const waiting = await get(`${invoice.url}/status`);
  expect(JSON.parse(waiting.text)).toEqual({
    state: 'waiting',
    amount: invoice.amount,
    address: invoice.address,
    projectName: FULL_BRAND.name,
    expiresAt: expect.any(String),
    blind: false,
    suspended: null,
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

test('while the database is away the page says so calmly', async () => {
  // Nothing listens there.
  const connection = { host: '127.0.0.1', port: 1, user: 'nobody', password: '', database: 'none' };
  const db = openDatabase({ connection, poolSize: 1, applicationName: 'test', onError: () => undefined });
  const app = Fastify();
  const site = { publicUrl: () => 'https://pay.example', usdt: {}, proofOf: () => null };
  registerCheckout(app, { db, now: () => unixMs(0), site });
  const { statusCode, headers, body } = await app.inject('/c/1111111111111111111111');
  await db.close();
  expect({ statusCode, retry: headers['retry-after'], kept: headers['cache-control'], body }).toEqual({
    statusCode: 503,
    retry: '5',
    kept: 'no-store',
    body: expect.stringContaining('Do not send it again'),
  });
});
