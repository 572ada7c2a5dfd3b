import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { onTestFinished } from 'vitest';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import type { AdapterKind } from '../../src/core/store/outbox/adapter-orders.ts';
import { storeAdapter } from '../../src/faces/operator/subjects/adapters.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import type { Json, TestProject, TestService } from '../support/service.ts';

export const SECRET = 'an-old-secret-of-the-shop-1234';

export type ShopAdapter = { id: string; url: string; secret: string };

/** Adds an adapter to a project like the command does; a USDT costs 7.2 CNY. */
export async function addTestAdapter(
  service: TestService,
  kind: AdapterKind,
  project: Pick<TestProject, 'id'> = service.project,
): Promise<ShopAdapter> {
  const id = uuidV7(Date.now(), randomBytes(10));
  const deps = { keyRing: TEST_KEY_RING, now: unixMs(Date.now()), random: randomBytes };
  const adapter = {
    kind,
    currency: 'CNY',
    rateMicro: 7_200_000n,
    rateSource: null,
    rateMinMicro: 5_040_000n,
    rateMaxMicro: 10_080_000n,
    readMicro: null,
    readAt: null,
    secret: SECRET,
  };
  await service.db.transaction((tx) => storeAdapter(tx, deps, { ...adapter, id, projectId: project.id }));
  return { id, url: `${service.url}/adapters/${encodeId('whe', id)}`, secret: SECRET };
}

/** Signs like a shop, implemented independently from the documents of these systems: it shares no code with the service. */
export function signAsShop(fields: Record<string, unknown>, secret: string): string {
  let text = '';
  for (const name of Object.keys(fields).sort()) {
    const value = fields[name];
    if (value === '' || value === null || value === undefined || /^(signature|sign|sign_type)$/.test(name)) continue;
    text += `${text === '' ? '' : '&'}${name}=${value}`;
  }
  return createHash('md5').update(`${text}${secret}`, 'utf8').digest('hex');
}

/** Starts a shop for one test. */
export async function shopFor(...answers: (string | number)[]) {
  const shop = await startShop(...answers);
  onTestFinished(() => shop.stop());
  return shop;
}

type Told = { method: string; query: URLSearchParams; text: string; body: Json };

/**
 * Starts a shop that receives callbacks. It answers with `answers` in turn, repeating the last one, or with whatever its `answer` returns:
 * a text or a status, where 0 closes the connection.
 */
export async function startShop(...answers: (string | number)[]) {
  const told: Told[] = [];
  const shop = {
    told,
    answer: (_: Told): string | number => answers[Math.min(told.length, answers.length) - 1] ?? 'ok',
  };
  const server = createServer(async (asked, answer) => {
    let text = '';
    for await (const chunk of asked) text += chunk;
    const query = new URL(asked.url ?? '/', 'http://shop').searchParams;
    const one = { method: asked.method ?? '', query, text, body: text === '' ? null : JSON.parse(text) };
    told.push(one);
    const said = shop.answer(one);
    if (said === 0) return void answer.destroy();
    answer.statusCode = typeof said === 'number' ? said : 200;
    answer.end(typeof said === 'number' ? '' : said);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(shop, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
}

export type Asked = { status: number; location: string | undefined; text: string; body: Json };

export async function send(
  url: string,
  options: { method?: string; type?: string; body?: string } = {},
): Promise<Asked> {
  const { method = options.body === undefined ? 'GET' : 'POST', type = 'application/json', body } = options;
  const headers = body === undefined ? {} : { 'content-type': type };
  const reply = await request(url, { method: method as 'GET', headers, body: body ?? null });
  const text = await reply.body.text();
  const isJson = String(reply.headers['content-type']).includes('json');
  const location = reply.headers['location'];
  return {
    ...{ status: reply.statusCode, location: typeof location === 'string' ? location : undefined, text },
    body: isJson ? JSON.parse(text) : null,
  };
}

/** Builds an order for epusdt, signed after all overrides. */
export function orderAtEpusdt(shop: { url: string }, fields: Record<string, unknown> = {}, secret = SECRET) {
  const order = {
    order_id: `A-${randomBytes(6).toString('hex')}`,
    amount: 100,
    notify_url: `${shop.url}/notify`,
    ...fields,
  };
  return { ...order, signature: fields['signature'] ?? signAsShop(order, secret) };
}

/** Builds an order for EPay, signed after all overrides. */
export function orderAtEpay(
  shop: { url: string },
  fields: Record<string, string> = {},
  secret = SECRET,
): Record<string, string> {
  const out = `E-${randomBytes(6).toString('hex')}`;
  const order = {
    pid: '1000',
    type: 'usdt',
    out_trade_no: out,
    notify_url: `${shop.url}/notify?gate=1`,
    money: '72.00',
    name: 'VIP 月卡',
  };
  const all: Record<string, string> = { ...order, ...fields };
  return { ...all, sign: fields['sign'] ?? signAsShop(all, secret), sign_type: 'MD5' };
}
