import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import type { Scenario } from '../../src/developer/scenarios/scenarios.ts';
import { addTestEndpoint } from '../support/key-ring.ts';
import {
  eventually,
  inboxOf,
  type Json,
  payableOf,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { created, get, INVOICE_ID, order } from './ask.ts';
import { runSql } from './sql.ts';

type Delivery = { headers: IncomingHttpHeaders; raw: Buffer; body: Json };

/** Our own receiver, which stores the raw bytes and fails as often as it's told to. */
let receiver: Server;
let received: Delivery[] = [];
/** The receiver's statuses for an order, by externalId, before it answers 204. */
let answers = new Map<string, number[]>();
const secret = createWebhookSecret(randomBytes);
let service: TestService;

beforeAll(async () => {
  service = await startTestService();
  receiver = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const raw = Buffer.concat(chunks);
    const body = JSON.parse(raw.toString('utf8'));
    received.push({ headers: request.headers, raw, body });
    const status = answers.get(body.data.externalId)?.shift() ?? 204;
    response.writeHead(status, status === 503 ? { 'retry-after': '30' } : {}).end();
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  await addTestEndpoint(service.db, {
    projectId: service.project.id,
    url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook?tenant=1`,
    secret,
  });
});
beforeEach(() => {
  received = [];
  answers = new Map();
  // After a test that moved a clock, the chain's and ours may be far apart: makes a block now, then moves on by a minute.
  const nowMs = Math.ceil(service.clock.now() / 3000) * 3000;
  if (nowMs > service.devnet.head().timestampMs) service.devnet.mine(1, { timestampMs: nowMs });
  service.devnet.mineUntilSolid();
  service.clock.advance(Math.max(0, service.devnet.head().timestampMs - service.clock.now()) + 60_000);
});
afterAll(async () => {
  await service.stop();
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
});

async function pay(invoiceId: string, scenario: Scenario = 'exact'): Promise<void> {
  const invoice = await payableOf(service, invoiceId);
  const { usdtContract: usdt, fakeUsdtContract: fakeUsdt, multisendContract: multisend } = service.devnet;
  await payScenario(service.payer, { scenario, contracts: { usdt, fakeUsdt, multisend }, invoice });
}

const of = (invoiceId: string) => received.filter(({ body }) => body.data.invoiceId === invoiceId);

/** Waits for this many deliveries about an invoice. */
const deliveriesOf = (invoiceId: string, count: number) =>
  eventually(
    () => of(invoiceId),
    (all) => all.length >= count,
  );

/** Waits until the failed first attempt about an invoice is recorded. Another one may have followed early. */
async function untilRecorded(invoiceId: string): Promise<void> {
  const text = `select d.last_status from deliveries d join events e on e.id = d.event_id
    join webhook_endpoints w on w.id = d.endpoint_id
    where e.body::json->'data'->>'invoiceId' = $1 and w.url like '%?tenant=1' and d.attempt_count > 0 and d.last_status is not null`;
  await eventually(
    () => runSql(service, text, [invoiceId]),
    (rows) => rows.length > 0,
  );
}

/** Waits until everything about an invoice is recorded as delivered. */
async function untilDelivered(invoiceId: string): Promise<void> {
  const text = `select d.status from deliveries d join events e on e.id = d.event_id
    join webhook_endpoints w on w.id = d.endpoint_id
    where e.body::json->'data'->>'invoiceId' = $1 and w.url like '%?tenant=1' and d.status <> 'delivered'`;
  await eventually(
    () => runSql(service, text, [invoiceId]),
    (rows) => rows.length === 0,
  );
}

async function paidInvoice(
  externalId = `hook-${randomUUID()}`,
): Promise<{ invoiceId: string; deliveries: Delivery[] }> {
  const { invoiceId } = await created(service, { body: order({ externalId }) });
  await pay(invoiceId);
  service.devnet.mine();
  await untilStatus(service, invoiceId, 'CONFIRMING');
  service.devnet.mineUntilSolid();
  await untilStatus(service, invoiceId, 'PAID');
  return { invoiceId, deliveries: await deliveriesOf(invoiceId, 2) };
}

/** Verifies a delivery with the published package, which reads the real clock, so the test must not have moved ours. */
function judge({ headers, raw }: Delivery): unknown {
  return new Webhook(secret).verify(raw, headers as Record<string, string>);
}

describe('the wire format is Standard Webhooks', () => {
  test('the published package standardwebhooks accepts what was sent', async () => {
    const { deliveries } = await paidInvoice();
    for (const delivery of deliveries) expect(judge(delivery)).toEqual(delivery.body);
  });

  test('… also with every character an externalId may have: the signature is over the raw bytes', async () => {
    const { deliveries } = await paidInvoice(`"é€😀\u2028\\ / <script> \u0001 ${randomUUID()}`);
    for (const delivery of deliveries) expect(judge(delivery)).toEqual(delivery.body);
  });

  test('a changed body, id or timestamp, and another secret, are refused by it', async () => {
    const { deliveries } = await paidInvoice();
    const [delivery] = deliveries as [Delivery];
    const { headers, raw } = delivery;
    const changed = Buffer.from(raw.toString().replace('CONFIRMING', 'PAID'));
    expect(() => judge({ ...delivery, raw: changed })).toThrow();
    expect(() => judge({ ...delivery, headers: { ...headers, 'webhook-id': 'evt_other' } })).toThrow();
    const later = String(Number(headers['webhook-timestamp']) + 1);
    expect(() => judge({ ...delivery, headers: { ...headers, 'webhook-timestamp': later } })).toThrow();
    expect(() =>
      new Webhook(createWebhookSecret(randomBytes)).verify(raw, headers as Record<string, string>),
    ).toThrow();
  });

  test('what the sandbox’s inbox received verifies with it, too', async () => {
    const { invoiceId } = await paidInvoice();
    const webhooks = await eventually(
      () => inboxOf(service, invoiceId),
      (all) => all.length === 2,
    );
    for (const { headers, body, verified } of webhooks) {
      expect(verified).toBe(true);
      expect(new Webhook(service.webhookSecret).verify(JSON.stringify(body), headers)).toEqual(body);
    }
  });

  test('headers: webhook-id, webhook-timestamp in Unix seconds, webhook-signature v1, webhook-protocol v2', async () => {
    const { deliveries } = await paidInvoice();
    for (const { headers, body } of deliveries) {
      expect(headers['webhook-id']).toBe(body.id);
      expect(body.id).toMatch(/^evt_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
      expect(headers['webhook-timestamp']).toMatch(/^[1-9][0-9]{9}$/);
      expect(headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
      expect(headers['webhook-protocol']).toBe('v2');
      expect(headers['content-type']).toMatch(/^application\/json/);
    }
  });

  test('secrets are whsec_ and base64 of 32 bytes', () => {
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32);
  });
});

describe('body', () => {
  test('{"id","type","timestamp","projectId","network","sequence","data"}, in this order and nothing else', async () => {
    const { deliveries } = await paidInvoice();
    for (const { body, raw } of deliveries) {
      expect(Object.keys(body)).toEqual(['id', 'type', 'timestamp', 'projectId', 'network', 'sequence', 'data']);
      expect(body.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
      expect(body.projectId).toBe(service.project.projectId);
      expect(body.network).toBe('TRON');
      expect(raw.length).toBeLessThan(20_000);
    }
  });

  test('for invoices data is the five-field projection plus payment', async () => {
    const { invoiceId, deliveries } = await paidInvoice();
    const [confirming, paid] = deliveries.map(({ body }) => body);
    expect(confirming).toMatchObject({ type: 'invoice.confirming', data: { invoiceId, status: 'CONFIRMING' } });
    expect(paid).toMatchObject({ type: 'invoice.paid', data: { invoiceId, status: 'PAID' } });
    const projection = (await get(service, `/v1/invoices/${invoiceId}`)).body;
    const { payment } = (await readInvoice(service, invoiceId)).body;
    const { payment: sent, ...rest } = paid.data;
    expect(rest).toEqual(projection);
    const { confirmations: _now, ...transaction } = payment.transaction;
    expect(sent).toMatchObject({ ...payment, transaction });
    expect(Object.keys(sent.transaction)).toEqual(Object.keys(payment.transaction));
  });

  test('sequence is gapless per invoice, and one state change is one event', async () => {
    const { invoiceId } = await created(service);
    const { expiresAt } = (await readInvoice(service, invoiceId)).body;
    service.devnet.mineUntilSolid();
    await pay(invoiceId);
    service.devnet.mine();
    await untilStatus(service, invoiceId, 'CONFIRMING');
    service.devnet.fork({ depth: 1, keepTransactions: false });
    await untilStatus(service, invoiceId, 'PENDING');
    const deadline = Math.ceil(Date.parse(expiresAt) / 3000) * 3000;
    service.devnet.mine(1, { timestampMs: Math.max(deadline, service.devnet.head().timestampMs) + 3000 });
    await untilStatus(service, invoiceId, 'EXPIRED');
    await pay(invoiceId);
    service.devnet.mine();
    await untilStatus(service, invoiceId, 'CONFIRMING');
    service.devnet.mineUntilSolid();
    await untilStatus(service, invoiceId, 'PAID');
    const deliveries = await deliveriesOf(invoiceId, 5);
    expect(deliveries.map(({ body }) => [body.sequence, body.type, body.data.status])).toEqual([
      [1, 'invoice.confirming', 'CONFIRMING'],
      [2, 'invoice.pending', 'PENDING'],
      [3, 'invoice.expired', 'EXPIRED'],
      [4, 'invoice.confirming', 'CONFIRMING'],
      [5, 'invoice.paid', 'PAID'],
    ]);
    expect(deliveries[1]?.body.data.payment.transaction).toBeNull();
    expect(deliveries[4]?.body.data.payment.transaction.late).toBe(true);
  });

  test('transfer.duplicate and transfer.unmatched tell of a transfer', async () => {
    const { invoiceId } = await created(service);
    await pay(invoiceId, 'twice');
    const { address } = await payableOf(service, invoiceId);
    const contract = service.devnet.usdtContract;
    const txId = await service.payer.transfer({ contract, to: address, amountMicro: 4_000_010n });
    service.devnet.mineUntilSolid();
    const [unmatched] = await eventually(
      () => received.filter(({ body }) => body.type === 'transfer.unmatched' && body.data.txId === txId),
      (all) => all.length === 1,
    );
    const [duplicate] = await eventually(
      () => of(invoiceId).filter(({ body }) => body.type === 'transfer.duplicate'),
      (all) => all.length === 1,
    );
    for (const delivery of [unmatched, duplicate] as Delivery[]) {
      expect(delivery.headers['webhook-id']).toBe(delivery.body.id);
      expect(delivery.body.data.transferId).toMatch(/^trf_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
      expect(delivery.body.data.to).toBe(address);
    }
    expect(unmatched?.body.data).toMatchObject({ amount: '4.000010' });
    expect(duplicate?.body.data.invoiceId).toMatch(INVOICE_ID);
  });
});

describe('attempts', () => {
  test('a retry has the same webhook-id and the same bytes, and the timestamp of its own attempt', async () => {
    const { invoiceId, externalId } = await created(service);
    // A Retry-After is respected, so no attempt comes early.
    answers.set(externalId, [503]);
    await pay(invoiceId);
    service.devnet.mine();
    const [first] = (await deliveriesOf(invoiceId, 1)) as [Delivery];
    await untilRecorded(invoiceId);
    service.clock.advance(60_000);
    const [, second] = (await deliveriesOf(invoiceId, 2)) as [Delivery, Delivery];
    expect(second.headers['webhook-id']).toBe(first.headers['webhook-id']);
    expect(second.raw.equals(first.raw)).toBe(true);
    const apart = Number(second.headers['webhook-timestamp']) - Number(first.headers['webhook-timestamp']);
    expect(apart).toBeGreaterThanOrEqual(59);
    expect(second.headers['webhook-signature']).not.toBe(first.headers['webhook-signature']);
    service.devnet.mineUntilSolid();
    await untilStatus(service, invoiceId, 'PAID');
  });

  test.each([301, 302, 307, 308])('a redirect (%i) is a failure and is not followed', async (status) => {
    const { invoiceId, externalId } = await created(service);
    answers.set(externalId, [status]);
    await pay(invoiceId);
    service.devnet.mine();
    await deliveriesOf(invoiceId, 1);
    await untilRecorded(invoiceId);
    service.clock.advance(60_000);
    const deliveries = await deliveriesOf(invoiceId, 2);
    expect(new Set(deliveries.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    service.devnet.mineUntilSolid();
    await untilStatus(service, invoiceId, 'PAID');
  });

  test.each([200, 201, 202, 204, 299])('any 2xx (%i) is a delivery', async (status) => {
    const externalId = `hook-${randomUUID()}`;
    answers.set(externalId, [status, status]);
    const { invoiceId, deliveries } = await paidInvoice(externalId);
    expect(deliveries).toHaveLength(2);
    await untilDelivered(invoiceId);
    service.clock.advance(600_000);
    const next = await paidInvoice();
    expect(next.deliveries).toHaveLength(2);
    expect(of(invoiceId)).toHaveLength(2);
  });

  test('order is per invoice: a later event waits while the earlier one is still being tried', async () => {
    const { invoiceId, externalId } = await created(service);
    // However often it's tried meanwhile.
    answers.set(externalId, Array(12).fill(500));
    await pay(invoiceId);
    service.devnet.mine();
    await deliveriesOf(invoiceId, 1);
    service.devnet.mineUntilSolid();
    await untilStatus(service, invoiceId, 'PAID');
    // Another invoice never waits.
    const other = await created(service);
    await pay(other.invoiceId);
    service.devnet.mineUntilSolid();
    await deliveriesOf(other.invoiceId, 1);
    expect(of(invoiceId).map(({ body }) => body.type)).not.toContain('invoice.paid');
    answers.delete(externalId);
    service.clock.advance(300_000);
    const deliveries = await eventually(
      () => of(invoiceId).map(({ body }) => body.type),
      (types) => types.includes('invoice.paid'),
    );
    expect(deliveries.slice(0, -1)).toEqual(Array(deliveries.length - 1).fill('invoice.confirming'));
  });
});
