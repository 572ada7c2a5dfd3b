import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { addTestAdapter, orderAtEpusdt, SECRET, send, startShop } from '../adapters/fixture.ts';
import { runSql } from '../contract/sql.ts';
import { createCertificate } from '../support/create-certificate.ts';
import { eventually, payExactly, startTestService, type TestService } from '../support/service.ts';

const run = promisify(execFile);

/** The client accepts only https. */
async function startTls(to: string, { key, cert }: { key: string; cert: string }): Promise<string> {
  const server = createServer({ key, cert }, (asked, answer) => {
    const options = { method: asked.method, headers: asked.headers };
    const passed = request(new URL(asked.url ?? '/', to), options, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(answer);
    });
    asked.pipe(passed);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://localhost:${(server.address() as AddressInfo).port}`;
}

/** Returns the callbacks of an order that expires and is paid afterwards. */
async function collectCallbacks(service: TestService, url: string): Promise<object[]> {
  const shop = await startShop('ok');
  onTestFinished(() => shop.stop());
  const body = JSON.stringify(orderAtEpusdt(shop, { amount: 100.5 }));
  const { data } = (await send(`${url}/api/v1/order/create-transaction`, { body })).body;
  const [row] = await runSql(service, 'select expires_at from invoices where id = $1', [
    decodeId('inv', data.trade_id),
  ]);
  service.devnet.mine(1, { timestampMs: Math.ceil(Number(row?.['expires_at']) / 3000) * 3000 + 3000 });
  service.devnet.mineUntilSolid();
  const told = (count: number) =>
    eventually(
      () => shop.told.length,
      (length) => length === count,
    );
  await told(1);
  await payExactly(service, data.trade_id);
  service.devnet.mine();
  service.devnet.mineUntilSolid();
  await told(2);
  return shop.told.map((each) => each.body);
}

test('the client of PyPI orders, asks, cancels and verifies; an order in USD is refused at a rate for CNY', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'bepusdt-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await run('python3', ['-m', 'venv', 'venv'], { cwd: folder });
  await run(join(folder, 'venv/bin/pip'), ['install', '--quiet', 'bepusdt==0.3.15'], { cwd: folder });
  const service = await startTestService();
  onTestFinished(() => service.stop());
  const adapter = await addTestAdapter(service, 'bepusdt');
  const certificate = createCertificate(['localhost']);
  const gateway = await startTls(service.url, certificate);
  await writeFile(join(folder, 'ca.pem'), certificate.cert);
  const told = await collectCallbacks(service, adapter.url);
  expect(told).toMatchObject([{ status: 3 }, { status: 2 }]);
  const forged = told.map((each) => ({ ...each, order_id: 'other' }));
  await writeFile(join(folder, 'callbacks.json'), JSON.stringify([...told, ...forged]));

  const program = join(import.meta.dirname, 'programs/order_at_bepusdt.py');
  const url = gateway + new URL(adapter.url).pathname;
  const env = {
    ...process.env,
    REQUESTS_CA_BUNDLE: join(folder, 'ca.pem'),
    no_proxy: 'localhost',
    NO_PROXY: 'localhost',
  };
  const { stdout } = await run(join(folder, 'venv/bin/python'), [program, url, SECRET, 'callbacks.json'], {
    cwd: folder,
    env,
  });
  const answers = JSON.parse(stdout);
  const refused = (reason: string) => ({ status_code: 400, message: expect.stringContaining(reason) });
  expect(answers).toMatchObject({
    order: { order_id: 'py-1', amount: 100, token: service.project.addresses[0], fiat: 'CNY', status: 1 },
    usd: refused('fiat is "USD"'),
    silent: { order_id: 'py-3', amount: 100.5, fiat: 'CNY' },
    rate: refused('rate is "0.5"'),
    address: refused('address is "T1"'),
    coin: refused('trade_type is "tron.trx"'),
    waiting: { trade_id: answers.order.trade_id, status: 1 },
    cancelled: { trade_id: answers.order.trade_id },
    after: { status: 4 },
    unknown: refused('order does not exist'),
    callbacks: [true, true, false, false],
  });
  expect(Math.floor(answers.order.actual_amount * 100)).toBe(1389);
  expect(answers.order.expiration_time).toBeLessThanOrEqual(1200);
  expect(await runSql(service, `select from invoices where external_id = 'py-2'`)).toEqual([]);
});
