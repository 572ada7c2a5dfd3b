import { afterEach, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { limitPages } from '../../src/faces/checkout/page/register.ts';
import { LIMITS } from '../../src/faces/web/load-gate.ts';
import { createServer } from '../../src/faces/web/server.ts';
import { eventually } from '../support/service.ts';

let stop = async () => {};
afterEach(() => stop());

test('a page that is refused under load is a page that people can read, and what scripts ask for is JSON', async () => {
  const state = { lagMs: 0, begun: 0, release: () => {} };
  const released = new Promise<void>((resolve) => {
    state.release = resolve;
  });
  const now = () => unixMs(Date.now());
  const app = createServer({
    publicUrl: () => 'http://localhost',
    trustProxy: [],
    now,
    random: (bytes) => new Uint8Array(bytes),
    log: createLogger({ level: 'silent' }),
    metrics: createMetrics(),
    lagMs: () => state.lagMs,
  });
  stop = async () => {
    state.release();
    await app.close();
  };
  limitPages(app, { now });
  const slowly = async () => {
    state.begun += 1;
    await released;
    return 'shown';
  };
  app.get('/c/:token', slowly);
  app.get('/c/:token/status', slowly);
  const shown = Array.from({ length: LIMITS.few }, () => app.inject('/c/token').then((answer) => answer));
  await eventually(
    () => state.begun,
    (begun) => begun === LIMITS.few,
  );
  state.lagMs = LIMITS.lagMs.page + 1;
  const page = await app.inject({ url: '/c/token', headers: { 'accept-language': 'es' } });
  expect([page.statusCode, page.headers['content-type']]).toEqual([503, 'text/html; charset=utf-8']);
  expect(page.headers['retry-after']).toMatch(/^[1-4]$/);
  expect(page.body).toContain('<html lang="es"');
  const status = await app.inject('/c/token/status');
  expect(status.statusCode).toBe(503);
  expect(status.json()).toMatchObject({ code: 'OVERLOADED' });
  state.release();
  expect((await Promise.all(shown)).every(({ body }) => body === 'shown')).toBe(true);
});
