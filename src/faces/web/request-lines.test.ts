import { expect, onTestFinished, test } from 'vitest';
import { someCases } from '../../../test/support/some-cases.ts';
import { AppError } from '../../core/domain/errors.ts';
import { unixMs } from '../../core/domain/time.ts';
import { createLogger } from '../../core/runtime/log.ts';
import { createMetrics } from '../../core/runtime/metrics.ts';
import { Problem } from './problem.ts';
import { notesOf } from './request-notes.ts';
import { createServer } from './server.ts';

const KEY = { id: '0198c0de-0000-7000-8000-000000000001', projectId: '0198c0de-0000-7000-8000-000000000002' };

/** A server with the service's routes. `state.fail` returns the error of each request. */
function start(requestLines: boolean) {
  const state: { now: number; fail: ((route: string) => Error) | null } = { now: 0, fail: null };
  const lines: string[] = [];
  const app = createServer({
    ...{ publicUrl: () => 'http://localhost', trustProxy: [], metrics: createMetrics(), requestLines, lagMs: () => 0 },
    now: () => unixMs(state.now),
    random: (bytes) => new Uint8Array(bytes).fill(7),
    log: createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } }),
  });
  onTestFinished(() => app.close());
  const handler = (route: string) => async (request: Parameters<typeof notesOf>[0]) => {
    notesOf(request).key = KEY;
    if (state.fail !== null) throw state.fail(route);
    return { ok: true };
  };
  app.post('/v1/invoices', handler('create'));
  const reading = [
    '/v1/invoices/:id',
    '/v1/invoices',
    '/v1/events',
    '/c/:token',
    '/c/:token/live',
    '/c/:token/receipt',
  ];
  for (const route of [...reading, '/healthz', '/readyz']) app.get(route, handler(route));
  return { state, lines, app, told: () => lines.map((line) => JSON.parse(line)) };
}

const AWAY = () => new AppError('DATABASE_UNAVAILABLE', 'connect ECONNREFUSED 10.0.0.1:5432', { retryable: true });
const create = { method: 'POST', url: '/v1/invoices?secret=1' } as const;

test('with the setting each answer has one line, with the pattern of its route and no path', async () => {
  const { app, told, lines } = start(true);
  await app.inject({ method: 'GET', url: '/c/tokenoftheinvoice?x=1' });
  await app.inject({ method: 'GET', url: '/healthz' });
  await app.inject({ method: 'GET', url: '/nowhere' });
  const answered = { level: 'info', method: 'GET', requestId: expect.stringMatching(/^req_/), ms: expect.any(Number) };
  expect(told()).toMatchObject([
    { ...answered, route: '/c/:token', status: 200, key: expect.stringMatching(/^key_/) },
    { ...answered, route: 'none', status: 404, code: 'ROUTE_NOT_FOUND' },
  ]);
  expect(lines.join('')).not.toContain('tokenoftheinvoice');
});

test('without it only refused creations and failures have one, which are summed up to one a minute', async () => {
  const { app, state, told } = start(false);
  await app.inject({ method: 'GET', url: '/v1/events' });
  await app.inject({ method: 'GET', url: '/nowhere' });
  state.fail = (route) => new Problem(route === 'create' ? 'AMOUNT_UNAVAILABLE' : 'INVOICE_NOT_FOUND', 'none is left');
  await app.inject({ method: 'GET', url: '/v1/invoices/inv_1' });
  expect(told()).toEqual([]);
  for (let count = 0; count < 5; count += 1) await app.inject(create);
  state.now = 60_000;
  await app.inject(create);
  const refused = { level: 'info', method: 'POST', route: '/v1/invoices', status: 409, code: 'AMOUNT_UNAVAILABLE' };
  expect(told()).toMatchObject([
    { ...refused, requests: 1, key: expect.stringMatching(/^key_/) },
    { ...refused, requests: 5 },
  ]);
});

test.each(
  someCases(
    [
      ['of the database', AWAY],
      ['of ours', (route: string) => new Error(`a fault ${'x'.repeat(500)} of ${route} ${Math.random()}`)],
    ] as const,
    2,
  ),
)('an outage %s costs at most a megabyte of log an hour at 100 requests a second', async (_name, fail) => {
  const { app, state, lines, told } = start(true);
  const urls = ['/v1/invoices/inv_1', '/v1/invoices', '/v1/events', '/c/a', '/c/a/live', '/c/a/receipt', '/readyz'];
  state.fail = fail;
  const minutes = 3;
  for (let count = 0; count < minutes * 6000; count += 1) {
    state.now += 10;
    const url = urls[count % (urls.length + 1)];
    await app.inject(url === undefined ? create : { method: 'GET', url });
  }
  expect(lines.join('').length * (60 / minutes)).toBeLessThan(1_000_000);
  // All requests are included, except those of the last minute.
  const summed = told().filter(({ status }) => status >= 500);
  expect(summed.reduce((sum, { requests }) => sum + requests, 0)).toBeGreaterThan((minutes - 1) * 6000 - 100);
});
