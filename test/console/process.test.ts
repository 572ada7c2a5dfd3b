import { type OutgoingHttpHeaders, request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { MASTER_KEY } from '../admin/console-service.ts';
import { newDirectory } from '../cli/run-cli.ts';
import { startServiceProcess } from '../processes/service-process.ts';
import { createTestDatabase, openTestDatabase } from '../support/postgres.ts';
import { createTestProject } from '../support/service.ts';
import { findSteadyPort } from '../support/steady-port.ts';

test('a process with the role console alone shows the pages, for it opens the master key that it is given', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const port = await findSteadyPort();
  const env = {
    ...{ QUITTANCE_ROLES: 'console', QUITTANCE_CONSOLE_PORT: `${port}`, QUITTANCE_MASTER_KEY: MASTER_KEY },
    ...{ DATABASE_URL: database.connectionString, QUITTANCE_NILE_NODES: 'https://node.example' },
  };
  const process = await startServiceProcess({ env, folder: newDirectory() });
  onTestFinished(() => process.kill());
  expect(await process.ready, process.output()).toBe('ready');
  const response = await fetch(`http://localhost:${port}/sign-in`);
  expect([response.status, (await response.text()).includes('With a password')]).toEqual([200, true]);
});

/** Sends a request from one of this machine's addresses, each of which counts as a separate network. */
function askFrom(from: string, url: string, { headers = {}, body }: { headers?: OutgoingHttpHeaders; body: string }) {
  return new Promise<number>((resolve, reject) => {
    const sent = request(url, { method: 'POST', localAddress: from, agent: false, headers }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    sent.once('error', (error) => reject(new Error(`${from} ${url}: ${error.message}`))).end(body);
  });
}

test('while three hundred networks try passwords at once, each order is made', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const db = openTestDatabase(database);
  const shop = await createTestProject(db, { addressCount: 3 });
  await db.close();
  const [port, consolePort] = [await findSteadyPort(), await findSteadyPort()];
  const process = await startServiceProcess({
    env: {
      ...{ QUITTANCE_ROLES: 'api,console', QUITTANCE_PORT: `${port}`, QUITTANCE_CONSOLE_PORT: `${consolePort}` },
      ...{ DATABASE_URL: database.connectionString, QUITTANCE_MASTER_KEY: MASTER_KEY },
      ...{ QUITTANCE_DEVNET_NODES: 'http://127.0.0.1:9', QUITTANCE_DEVNET_USDT: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' },
    },
    folder: newDirectory(),
  });
  onTestFinished(() => process.kill());
  expect(await process.ready, process.output()).toBe('ready');
  const origin = `http://localhost:${consolePort}`;
  const flood = Array.from({ length: 300 }, (_, n) =>
    askFrom(`127.9.${n >> 8}.${n & 255}`, `http://127.0.0.1:${consolePort}/sign-in`, {
      headers: { host: new URL(origin).host, origin, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'login=ann&password=one+that+is+wrong&code=123456',
    }),
  );
  const made: number[] = [];
  for (let order = 0; order < 30; order += 1) {
    const body = { amount: '25.00', asset: 'USDT', network: 'TRON', externalId: `order-${order}` };
    made.push(
      await askFrom('127.0.0.2', `http://127.0.0.1:${port}/v1/invoices`, {
        headers: { 'x-api-key': shop.apiKey, 'idempotency-key': `${order}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  }
  expect(made).toEqual(made.map(() => 201));
  const refused = await Promise.all(flood);
  expect([...new Set(refused)].filter((status) => ![401, 429, 503].includes(status))).toEqual([]);
  expect(refused).toContain(401);
});
