import { once } from 'node:events';
import { request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from 'vitest';
import { unixMs } from '../../core/domain/time.ts';
import { createLogger } from '../../core/runtime/log.ts';
import { createMetrics } from '../../core/runtime/metrics.ts';
import { createServer } from './server.ts';

test('a stop answers what is under way, closes its connection, and waits for no connection that asks for nothing', async () => {
  const app = createServer({
    publicUrl: () => 'http://localhost',
    trustProxy: [],
    now: () => unixMs(0),
    random: (bytes) => new Uint8Array(bytes),
    log: createLogger({ level: 'silent' }),
    metrics: createMetrics(),
  });
  let answer = () => {};
  const asked = new Promise<void>((begun) => {
    app.get('/slow', async () => {
      await new Promise<void>((resolve) => {
        answer = resolve;
        begun();
      });
      return { done: true };
    });
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const silent = connect(port, '127.0.0.1');
  await once(silent, 'connect');
  const slow = request({ port, host: '127.0.0.1', path: '/slow', headers: { connection: 'keep-alive' } });
  slow.end();
  await asked;
  const closed = app.close();
  await once(silent, 'close');
  answer();
  const [response] = await once(slow, 'response');
  response.resume();
  expect([response.statusCode, response.headers.connection]).toEqual([200, 'close']);
  // Either connection, if left open, would delay the stop beyond the test's time limit.
  await closed;
});
