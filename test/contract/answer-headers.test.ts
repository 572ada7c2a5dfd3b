import { afterAll, beforeAll, expect, test } from 'vitest';
import { ASSETS } from '../../src/faces/checkout/page/render-document.ts';
import { createInvoice, startTestService, type TestService } from '../support/service.ts';
import { ask, expectOnlyAnswer, post, sendRaw } from './ask.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

test('no answer of whatever kind is taken for another type or shown in a frame', async () => {
  const { pathname } = new URL((await createInvoice(service)).body.checkoutUrl);
  const paths: [path: string, status: number][] = [
    ['/healthz', 200],
    ['/readyz', 200],
    ['/openapi.json', 200],
    ['/docs', 200],
    ['/docs/errors', 200],
    ['/docs/postman.json', 200],
    ['/llms.txt', 200],
    ['/robots.txt', 200],
    [ASSETS.js.path, 200],
    ['/.well-known/quittance-receipt-keys.json', 200],
    [pathname, 200],
    [`${pathname}/status`, 200],
    ['/c/none', 404],
    ['/nothing', 404],
    ['/v1/invoices/none', 401],
  ];
  for (const [path, status] of paths) expect((await ask(service.url + path)).status, path).toBe(status);
  expect((await ask(`${service.url}/v1/invoices`, { method: 'DELETE' })).status).toBe(405);
  expect((await ask(`${service.url}/v1/invoices`, { method: 'OPTIONS' })).status).toBe(204);
  expect((await post(service)).status).toBe(201);
  expect((await post(service, { body: '{' })).status).toBe(400);
});

test('neither is what is no HTTP, nor what the port for metrics says', async () => {
  const reply = await sendRaw(service.url, 'what is this\r\n\r\n');
  expect(reply.status).toBe(400);
  expectOnlyAnswer(reply.headers);
  for (const path of ['/metrics', '/healthz', '/nothing']) {
    expectOnlyAnswer(Object.fromEntries((await fetch(service.metricsUrl + path)).headers));
  }
});
