import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { expect, onTestFinished, test } from 'vitest';
import { Quittance, type WebhookEvent } from '../../packages/sdk/src/index.ts';
import { quittanceWebhook } from '../../packages/sdk/src/middleware/express.ts';
import { runSql } from '../contract/sql.ts';
import { addTestEndpoint } from '../support/key-ring.ts';
import { eventually, startTestService, type TestService } from '../support/service.ts';

const INVOICES = 1000;
const RECEIVERS = 10;

/** A shop's receiver, which reads the invoice of each event. Counts how often it handled each. */
async function startReceiver(quittance: Quittance, secret: string) {
  const handled = new Map<string, number>();
  const handle = async ({ id, data }: WebhookEvent) => {
    const { status } = await quittance.invoices.get((data as { invoiceId: string }).invoiceId);
    if (status !== 'EXPIRED') throw new Error(`read ${status}`);
    handled.set(id, (handled.get(id) ?? 0) + 1);
  };
  // Quittance records every response, so errors need no second record.
  const app = express().post('/hook', quittanceWebhook({ secret, onError: () => undefined }, handle));
  const server: Server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, handled };
}

async function createInvoices(quittance: Quittance): Promise<void> {
  const numbers = Array.from({ length: INVOICES }, (_, index) => index);
  const work = async () => {
    for (let number = numbers.pop(); number !== undefined; number = numbers.pop()) {
      const order = { amount: `${10 + number}`, externalId: `order-${number}` };
      await quittance.invoices.create(order, { idempotencyKey: order.externalId });
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
}

/** Makes a block after every deadline, so that all invoices expire in one batch. */
async function expireAll(service: TestService): Promise<void> {
  const [row] = await runSql(service, 'select max(expires_at) as last from invoices');
  service.devnet.mine(1, { timestampMs: Math.ceil(Number(row?.['last']) / 3000) * 3000 + 3000 });
  service.devnet.mineUntilSolid();
}

test('1,000 invoices expire at once: each of ten receivers reads and handles every one once, and none times out', async () => {
  // The limits of production, and ten receivers that share one key.
  const config = { rateLimit: { perSecond: 100, burst: 200 } };
  const service = await startTestService({ config, addressCount: 10 });
  onTestFinished(() => service.stop());
  const quittance = new Quittance({ baseUrl: service.url, apiKey: service.project.apiKey });
  await createInvoices(quittance);
  const receivers = await Promise.all(
    Array.from({ length: RECEIVERS }, () => startReceiver(quittance, service.webhookSecret)),
  );
  for (const { url } of receivers) {
    await addTestEndpoint(service.db, { projectId: service.project.id, url, secret: service.webhookSecret });
  }
  await expireAll(service);
  await eventually(
    async () => receivers.map(({ handled }) => handled.size),
    (sizes) => sizes.every((size) => size === INVOICES),
    3_000_000,
  );
  await eventually(
    () => runSql(service, "select from deliveries where status = 'pending'"),
    (rows) => rows.length === 0,
  );
  // Ten receivers read more often than the limit allows, so some responses are 500 or 503, and Quittance sends those events again.
  const timeouts = await runSql(service, "select from delivery_attempts where error like 'timeout%'");
  const twice = receivers.flatMap(({ handled }) => [...handled.values()].filter((times) => times > 1));
  expect(twice).toEqual([]);
  expect(timeouts).toEqual([]);
}, 3_600_000);
