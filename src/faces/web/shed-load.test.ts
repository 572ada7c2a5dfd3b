import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test, vi } from 'vitest';
import { eventually } from '../../../test/support/service.ts';
import { unixMs } from '../../core/domain/time.ts';
import { createLogger } from '../../core/runtime/log.ts';
import { createMetrics } from '../../core/runtime/metrics.ts';
import { LIMITS } from './load-gate.ts';
import { createServer } from './server.ts';
import { hijackForStream } from './shed-load.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** A server whose lag the test controls. `/slow` answers when the test releases it. `work` counts the work done for requests. */
async function startServer() {
  const state = { lagMs: 0, work: 0, release: () => {} };
  const gate = new Promise<void>((resolve) => {
    state.release = resolve;
  });
  const metrics = createMetrics();
  const app = createServer({
    publicUrl: () => 'http://localhost',
    trustProxy: ['loopback'],
    recognize: (apiKey) => (apiKey === 'known' ? { id: 'key', projectId: 'project' } : null),
    now: () => unixMs(0),
    random: (bytes) => new Uint8Array(bytes),
    log: createLogger({ level: 'silent' }),
    metrics,
    lagMs: () => state.lagMs,
  });
  const onRequest = async () => {
    state.work += 1;
  };
  const ok = async () => ({ ok: true });
  app.get('/healthz', ok);
  app.get('/readyz', ok);
  app.post('/v1/invoices', { onRequest }, ok);
  app.get('/c/:token', { onRequest }, ok);
  app.get('/slow', { onRequest }, async () => {
    await gate;
    return { ok: true };
  });
  app.get('/too-often', { onRequest }, (_request, reply) => reply.code(429).send({}));
  app.get('/stream', async (request, reply) => {
    hijackForStream(request, reply);
    reply.raw.writeHead(200).write('open');
    return reply;
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  stops.push(async () => {
    state.release();
    await app.close();
  });
  const { port } = app.server.address() as AddressInfo;
  return { app, state, metrics, port, url: `http://127.0.0.1:${port}` };
}

const post = (url: string, path = '/v1/invoices') => fetch(url + path, { method: 'POST', body: '{}' });

test('an event loop that lags: 503 OVERLOADED with Retry-After before anything is done, health is answered, and it ends by itself', async () => {
  const { state, url, metrics } = await startServer();
  const headers = { 'x-api-key': 'known' };
  const busy = Array.from({ length: LIMITS.few }, () => fetch(`${url}/slow`, { headers }));
  await eventually(
    () => state.work,
    (work) => work === LIMITS.few,
  );
  state.lagMs = LIMITS.lagMs.api + 1;
  const refused = await post(url);
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toMatch(/^[1-4]$/);
  expect(refused.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  expect(await refused.json()).toMatchObject({
    type: 'http://localhost/docs/errors#OVERLOADED',
    status: 503,
    code: 'OVERLOADED',
    requestId: refused.headers.get('x-request-id'),
  });
  expect(state.work).toBe(LIMITS.few);
  for (const path of ['/healthz', '/readyz', '/c/token']) expect((await fetch(url + path)).status, path).toBe(200);
  state.lagMs = LIMITS.lagMs.page + 1;
  for (const path of ['/c/token', '/nothing']) expect((await fetch(url + path)).status, path).toBe(503);
  for (const path of ['/healthz', '/readyz']) expect((await fetch(url + path)).status, path).toBe(200);
  state.lagMs = 0;
  expect((await post(url)).status).toBe(200);
  state.release();
  expect((await Promise.all(busy)).map(({ status }) => status)).toEqual(busy.map(() => 200));
  const shed = await metrics.registry.getSingleMetricAsString('quittance_http_shed_total');
  expect(shed).toMatch(/line="page",reason="lag"} 1$/m);
  expect(shed, 'what was not refused is there too').toMatch(/line="live",reason="late"} 0$/m);
});

test('what is refused because everything is full was not begun, and what waited is answered', async () => {
  const { state, app } = await startServer();
  const count = LIMITS.room.stranger + 1;
  const answers = Array.from({ length: count }, () => app.inject('/slow').then((answer) => answer));
  const refused = await Promise.race(answers);
  expect(refused.statusCode).toBe(503);
  await eventually(
    () => state.work,
    (work) => work >= LIMITS.most.strangers,
  );
  expect(state.work).toBe(LIMITS.most.strangers);
  state.release();
  const statuses = (await Promise.all(answers)).map(({ statusCode }) => statusCode);
  expect(statuses.filter((status) => status === 200)).toHaveLength(LIMITS.room.stranger);
});

test('junk that fills its line refuses nobody of another network, and holds up no caller whose key is known, not even of its own', async () => {
  const { state, app } = await startServer();
  const from = (ip: string) => ({ 'x-forwarded-for': ip });
  const junk = Array.from({ length: LIMITS.room.stranger }, () =>
    app.inject({ url: '/slow', headers: from('198.51.100.1') }).then((answer) => answer),
  );
  await eventually(
    () => state.work,
    (work) => work === LIMITS.most.strangers,
  );
  const known = { ...from('198.51.100.1'), 'x-api-key': 'known' };
  const order = await app.inject({ method: 'POST', url: '/v1/invoices', headers: known, body: '{}' });
  expect(order.statusCode).toBe(200);
  const other = app.inject({ url: '/slow', headers: from('198.51.100.2') }).then((answer) => answer);
  expect((await Promise.race(junk)).statusCode).toBe(503);
  state.release();
  expect((await other).statusCode).toBe(200);
  const statuses = (await Promise.all(junk)).map(({ statusCode }) => statusCode);
  expect(statuses.filter((status) => status !== 200)).toEqual([503]);
});

test.each([
  ['in the middle of their body', 'POST /v1/invoices HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{'],
  ['with requests behind each other', 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2)],
])('clients that hang up %s leave no place taken', async (_what, bytes) => {
  const { state, app, port } = await startServer();
  const sockets = Array.from({ length: LIMITS.most.strangers }, () => connect(port, '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  for (const socket of sockets) socket.write(bytes);
  await eventually(
    () => state.work,
    (work) => work >= LIMITS.most.strangers,
  );
  for (const socket of sockets) socket.destroy();
  state.release();
  // As many requests as there are places begin, so all places are free again. Otherwise the last request would wait in vain.
  const answers = await Promise.all(Array.from({ length: LIMITS.most.strangers }, () => app.inject('/slow')));
  expect(answers.every(({ statusCode }) => statusCode === 200)).toBe(true);
});

test('who asked too often hears it after a moment in which he takes no place, and a caller with a key at once', async () => {
  const { url, state } = await startServer();
  const ask = async (headers: Record<string, string> = {}) =>
    expect((await fetch(`${url}/too-often`, { headers })).status).toBe(429);
  // Time is stopped for held responses.
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  let heard = 0;
  const strangers = Array.from({ length: LIMITS.most.strangers + 1 }, () => ask().then(() => (heard += 1)));
  while (state.work < strangers.length) await nextTurn();
  await ask({ 'x-api-key': 'known' });
  expect(heard).toBe(0);
  await vi.advanceTimersByTimeAsync(LIMITS.holdMs);
  await Promise.all(strangers);
});

test('bodies that come slowly take no places, and are answered when they have come', async () => {
  const { state, port, url } = await startServer();
  const head = 'POST /v1/invoices HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{';
  const sockets = Array.from({ length: LIMITS.room.stranger }, () => connect(port, '127.0.0.1').setEncoding('latin1'));
  for (const socket of sockets) socket.write(head);
  await eventually(
    () => state.work,
    (work) => work === sockets.length,
  );
  expect((await fetch(`${url}/c/token`)).status).toBe(200);
  expect((await post(url)).status).toBe(200);
  const [socket] = sockets;
  socket?.write('}');
  const [answer] = socket === undefined ? [''] : await once(socket, 'data');
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  for (const each of sockets) each.destroy();
});

test('streams take no places, open or ended', async () => {
  const { state, app, url } = await startServer();
  const streams = [];
  for (let n = 0; n < LIMITS.most.strangers + 1; n += 1) streams.push(await fetch(`${url}/stream`));
  state.release();
  expect((await app.inject('/slow')).statusCode).toBe(200);
  await Promise.all(streams.map(({ body }) => body?.cancel()));
  expect((await app.inject('/slow')).statusCode).toBe(200);
});

test('each stream that takes an answer over gives its place back: no other file hijacks one', () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const hijacking = files.filter((name) => readFileSync(join(root, name), 'utf8').includes('.hijack('));
  expect(hijacking.filter((name) => !name.endsWith('.test.ts'))).toEqual([join('faces', 'web', 'shed-load.ts')]);
});
