import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';
import { ask, created, expectProblem, sendRaw } from './ask.ts';

let service: TestService;
let link: string;
beforeAll(async () => {
  service = await startTestService();
  link = new URL((await created(service)).checkoutUrl).pathname;
});
afterAll(() => service.stop());

/** URLs that payers and their browsers open, and the methods of each. */
const READ = ['GET', 'HEAD', 'OPTIONS'];
const urls = (): [string, string[]][] => [
  [link, READ],
  [`${link}/status`, READ],
  [`${link}/live`, READ],
  [`${link}/parts`, READ],
  [`${link}/lookup`, ['OPTIONS', 'POST']],
  [`${link}/ask`, ['GET', 'HEAD', 'OPTIONS', 'POST']],
  [`${link}/receipt`, READ],
  [`${link}/receipt.json`, READ],
  ['/.well-known/quittance-receipt-keys.json', READ],
  ['/c/unknown', READ],
  ['/c/unknown/live', READ],
  ['/c/', READ],
  ['/c/cut/by/a/chat', READ],
  ['/assets/checkout.js', READ],
  ['/robots.txt', READ],
  ['/healthz', READ],
  ['/v1/invoices', ['GET', 'HEAD', 'OPTIONS', 'POST']],
];

describe('every URL of ours', () => {
  test('answers OPTIONS with its methods, and allows no other origin anything', async () => {
    const headers = { origin: 'https://shop.example', 'access-control-request-method': 'GET' };
    for (const [path, methods] of urls()) {
      // `ask` fails on any CORS header.
      const reply = await ask(service.url + path, { method: 'OPTIONS', headers });
      expect([path, reply.status, reply.headers['allow'], reply.text]).toEqual([path, 204, methods.join(', '), '']);
    }
  });

  test('refuses other methods with those that it has, whether there is such an invoice or not', async () => {
    for (const [path, methods] of urls()) {
      for (const method of ['PUT', 'DELETE', 'PATCH', 'TRACE']) {
        const reply = await ask(service.url + path, { method });
        expectProblem(reply, 405, 'METHOD_NOT_ALLOWED');
        expect([path, reply.headers['allow']]).toEqual([path, methods.join(', ')]);
      }
    }
    expectProblem(await ask(service.url + link, { method: 'POST' }), 405, 'METHOD_NOT_ALLOWED');
  });

  test('a URL that is none of ours is not found by any method', async () => {
    for (const method of ['OPTIONS', 'GET', 'DELETE']) {
      expectProblem(await ask(`${service.url}/nothing`, { method }), 404, 'ROUTE_NOT_FOUND');
    }
    const lines = ['OPTIONS * HTTP/1.1', 'Host: localhost', 'Connection: close', '', ''];
    expect((await sendRaw(service.url, lines.join('\r\n'))).status).toBe(404);
  });
});

test('a form that is too large is refused with its own limit', async () => {
  const reply = await ask(`${service.url}${link}/ask`, { method: 'POST', body: 'x'.repeat(6000) });
  expectProblem(reply, 413, 'PAYLOAD_TOO_LARGE');
  expect(reply.text).toContain('larger than 5000 bytes');
});

test('HEAD on what the script asks for has the status and the type of GET, and no body', async () => {
  for (const path of [`${link}/parts`, `${link}/status`, '/c/unknown/live', '/robots.txt']) {
    const [head, got] = [await ask(service.url + path, { method: 'HEAD' }), await ask(service.url + path)];
    expect([path, head.status, head.headers['content-type'], head.text]).toEqual([
      ...[path, got.status, got.headers['content-type'], ''],
    ]);
  }
});

test('robots are told to stay away', async () => {
  const { status, headers, text } = await ask(`${service.url}/robots.txt`);
  expect([status, headers['content-type'], text]).toEqual([
    ...[200, 'text/plain; charset=utf-8', 'User-agent: *\nDisallow: /\n'],
  ]);
});
