import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, type Invoice, newInvoice, pay, untilRecorded, withApiOnly } from '../support/lookup-flow.ts';
import { call, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ nodeCount: 2, config: { trustProxy: ['127.0.0.1'] } });
});
afterAll(() => service.stop());

test('nodes are asked once for what is asked at the same time, in the next seconds, and of what is final for minutes', async () => {
  const invoice = await newInvoice(service);
  const txId = await pay(service, invoice, 'short');
  service.devnet.mineUntilSolid();
  await untilRecorded(service);
  await withApiOnly(service, async ({ url, requests, advance }) => {
    // The first question makes each node report its network.
    await ask(invoice, 'b2'.repeat(32), { at: url });
    const asked = async (pasted: string, count: number) => {
      const before = await requests();
      await Promise.all(Array.from({ length: count }, () => ask(invoice, pasted, { at: url })));
      return (await requests()) - before;
    };
    expect(await asked(txId, 4)).toBe(2);
    advance(9 * 60_000);
    expect(await asked(txId, 4)).toBe(0);
    advance(61_000);
    expect(await asked(txId, 1)).toBe(2);
    // Both nodes must say that it doesn't exist.
    const unknown = 'a1'.repeat(32);
    expect(await asked(unknown, 2)).toBe(2);
    advance(2900);
    expect(await asked(unknown, 1)).toBe(0);
    advance(200);
    expect(await asked(unknown, 1)).toBe(2);
  });
});

test('nodes are asked no more than the budget of a process allows', async () => {
  const invoices = await Promise.all(Array.from({ length: 8 }, () => newInvoice(service)));
  await withApiOnly(service, async ({ url, requests }) => {
    const codes: string[] = [];
    for (const invoice of invoices) {
      for (let each = 0; each < 5; each++) {
        const { body } = await ask(invoice, randomBytes(32).toString('hex'), { at: url });
        codes.push(body.code);
      }
    }
    // Half of the 30 questions are available to anyone who asks. In the other half, each link gets the two of a newcomer.
    expect(await requests()).toBe(2 + 2 * 25);
    expect(codes.slice(0, 15)).toEqual(Array(15).fill('not_found'));
    const newcomer = ['not_found', 'not_found', 'unavailable', 'unavailable', 'unavailable'];
    expect(codes.slice(15)).toEqual(Array(5).fill(newcomer).flat());
  });
});

test('one client, and one link from many clients, is told when to ask again', async () => {
  const [first, second, third] = [await newInvoice(service), await newInvoice(service), await newInvoice(service)];
  await withApiOnly(service, async ({ url, advance }) => {
    const from = (client: string, invoice: Invoice) => ask(invoice, 'nonsense', { client, at: url });
    const statusOf = async (client: string, invoice: Invoice) => (await from(client, invoice)).status;
    const client = '2001:db8:ffff:ffff::1';
    for (let each = 0; each < 10; each++) expect(await statusOf(client, each % 2 === 0 ? first : second)).toBe(200);
    const limited = await from('2001:db8:ffff:ffff::2', first);
    expect(limited).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' }, headers: { 'retry-after': '1' } });
    expect(limited.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    advance(1000);
    expect(await statusOf(client, first)).toBe(200);

    for (let each = 0; each < 10; each++) expect(await statusOf(`192.0.2.${each}`, third)).toBe(200);
    const busy = await from('192.0.2.99', third);
    expect(busy).toMatchObject({ status: 429, headers: { 'retry-after': '1' } });
    expect(await statusOf('192.0.2.99', second)).toBe(200);
    advance(1000);
    expect(await statusOf('192.0.2.99', third)).toBe(200);
  });
});

test.each([
  ['415', 'UNSUPPORTED_MEDIA_TYPE', { 'content-type': 'text/plain' }, '{"transaction":"a"}'],
  ['400', 'INVALID_JSON', {}, '{'],
  ['400', 'INVALID_REQUEST', {}, '{}'],
  ['400', 'INVALID_REQUEST', {}, '{"transaction":7}'],
  ['400', 'INVALID_REQUEST', {}, '[]'],
  ['413', 'PAYLOAD_TOO_LARGE', {}, JSON.stringify({ transaction: 'a'.repeat(5000) })],
])('%s %s', async (status, code, headers, body) => {
  const { checkoutUrl } = await newInvoice(service);
  const answer = await call(`${checkoutUrl}/lookup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': `198.51.100.${randomBytes(1)[0]}`, ...headers },
    body,
  });
  expect(answer).toMatchObject({ status: Number(status), body: { code } });
});
