import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isFulfillable, Quittance } from '../../packages/sdk/src/index.ts';
import { INVOICE_EVENTS } from '../../src/core/domain/event.ts';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { replayFiltered } from '../../src/faces/operator/subjects/delivery-replay.ts';
import { enableEndpoint } from '../../src/faces/operator/subjects/webhook-sending.ts';
import { created } from '../contract/ask.ts';
import { runSql } from '../contract/sql.ts';
import { addTestEndpoint } from '../support/key-ring.ts';
import {
  createTestProject,
  eventually,
  type Json,
  payableOf,
  startTestService,
  type TestProject,
  type TestService,
  untilStatus,
  untilTold,
} from '../support/service.ts';

const DAY_MS = 24 * 3_600_000;
const OPERATOR = commandActor('test');

let service: TestService;
let project: TestProject;
beforeAll(async () => {
  service = await startTestService();
  project = await createTestProject(service.db);
});
afterAll(() => service.stop());

/** Starts an integrator's server: it accepts webhooks, deduplicates them by id, and fulfils an order once the API says that it's paid. */
async function startShop() {
  const client = new Quittance({ apiKey: project.apiKey, baseUrl: service.url });
  const shop = {
    isDown: false,
    refusedCount: 0,
    /** The webhook ids in order of arrival. */
    received: [] as string[],
    handled: new Set<string>(),
    duplicates: [] as string[],
    fulfilled: [] as string[],
    handle: async (event: Json) => {
      if (shop.handled.has(event.id)) {
        shop.duplicates.push(event.id);
        return;
      }
      if (event.type === 'invoice.paid') {
        const { invoiceId, externalId } = event.data;
        if (isFulfillable(await client.invoices.get(invoiceId), externalId)) shop.fulfilled.push(externalId);
      }
      shop.handled.add(event.id);
    },
  };
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    if (shop.isDown) {
      shop.refusedCount += 1;
      response.writeHead(503).end();
      return;
    }
    shop.received.push(String(request.headers['webhook-id']));
    await shop.handle(JSON.parse(body));
    response.writeHead(204).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { shop, client, close, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

const at = () => ({ ...service, project });
/** The next block's time, on the slot grid and not ahead of the clock. */
const blockTime = () => ({ timestampMs: Math.floor(service.clock.now() / 3000) * 3000 });

async function pay(invoiceId: string, times = 1): Promise<void> {
  const { address: to, amountMicro } = await payableOf(at(), invoiceId);
  for (let i = 0; i < times; i++) {
    await service.payer.transfer({ contract: service.devnet.usdtContract, to, amountMicro });
  }
}

/**
 * Advances every clock by a day, wakes the dispatcher and waits for its work. An attempt recorded after the clock moved would only be
 * retried on the next day, so this first waits for each refusal.
 */
async function passDay(shop: { refusedCount: number }, isDone: () => Promise<boolean> | boolean): Promise<void> {
  await eventually(
    () =>
      runSql(
        service,
        'select from delivery_attempts where status = 503 and endpoint_id in (select id from webhook_endpoints where project_id = $1)',
        [project.id],
      ),
    // Early attempts continue meanwhile, so this counts again each time.
    ({ length }) => length === shop.refusedCount,
  );
  service.clock.advance(DAY_MS);
  service.devnet.mine(1, blockTime());
  service.devnet.mineUntilSolid();
  await runSql(service, 'notify quittance_deliveries');
  await eventually(isDone, Boolean);
}

const isDisabled = async () =>
  (
    await runSql(service, 'select 1 from webhook_endpoints where project_id = $1 and disabled_at is not null', [
      project.id,
    ])
  ).length === 1;

test('a receiver that was down for a week recovers from the feed alone, and takes late webhooks for what they are', async () => {
  // A week passes by the service's clock but not by the database's, which limits how long an endpoint may be paused.
  await runSql(service, 'alter table webhook_endpoints disable trigger webhook_endpoints_bound_pauses');
  const { shop, client, close, url } = await startShop();
  try {
    const secret = createWebhookSecret(randomBytes);
    const endpoint = await addTestEndpoint(service.db, { projectId: project.id, url, secret });
    const newOrder = () => created(service, { project });

    const before = await newOrder();
    await pay(before.invoiceId);
    service.devnet.mineUntilSolid();
    await eventually(
      () => shop.fulfilled,
      ({ length }) => length === 1,
    );
    const { latest } = await client.events.page({ limit: 1 });
    expect([...shop.handled]).toContain(latest);

    const handledBefore = shop.handled.size;

    // During that week, every webhook is refused.
    shop.isDown = true;
    const [early, expired, late, orphaned, unpaid] = [
      await newOrder(),
      await newOrder(),
      await newOrder(),
      await newOrder(),
      await newOrder(),
    ];
    await pay(early.invoiceId);
    service.devnet.mine();
    await untilStatus(at(), early.invoiceId, 'CONFIRMING');
    service.devnet.mineUntilSolid();
    await untilStatus(at(), early.invoiceId, 'PAID');
    await pay(orphaned.invoiceId);
    service.devnet.mine();
    await untilStatus(at(), orphaned.invoiceId, 'CONFIRMING');
    service.devnet.fork({ depth: 1, keepTransactions: false });
    await untilStatus(at(), orphaned.invoiceId, 'PENDING');
    for (let day = 1; day <= 7; day++) {
      const refusedBefore = shop.refusedCount;
      await passDay(shop, async () => shop.refusedCount > refusedBefore || (await isDisabled()));
      if (day === 1) for (const { invoiceId } of [expired, late, unpaid]) await untilStatus(at(), invoiceId, 'EXPIRED');
      if (day === 2) {
        await pay(late.invoiceId, 2);
        service.devnet.mineUntilSolid();
        await untilStatus(at(), late.invoiceId, 'PAID');
      }
      if (day === 4) {
        const { address: to } = await payableOf(at(), unpaid.invoiceId);
        await service.payer.transfer({ contract: service.devnet.usdtContract, to, amountMicro: 1_234_560n });
        service.devnet.mineUntilSolid();
      }
    }
    const afterDisabling = await newOrder();
    await pay(afterDisabling.invoiceId);
    service.devnet.mineUntilSolid();
    await untilStatus(at(), afterDisabling.invoiceId, 'PAID');
    await untilTold(service);
    expect(await isDisabled()).toBe(true);
    const delivered = await runSql(service, `select from deliveries where project_id = $1 and status = 'delivered'`, [
      project.id,
    ]);
    expect(delivered).toHaveLength(handledBefore);
    expect(shop.fulfilled).toEqual([before.externalId]);

    // The shop has only an API key and the last id that it handled.
    shop.isDown = false;
    const types = [];
    for await (const event of client.events.list({ after: latest ?? '', limit: 2 })) {
      await shop.handle(event);
      types.push(event.type);
    }
    const paid = await runSql(service, `select external_id from invoices where project_id = $1 and status = 'PAID'`, [
      project.id,
    ]);
    expect(shop.fulfilled.toSorted()).toEqual(paid.map(({ external_id }) => external_id).sort());
    expect(shop.fulfilled.toSorted()).toEqual([before, early, late, afterDisabling].map((i) => i.externalId).sort());
    expect(new Set(types)).toEqual(
      new Set([...Object.values(INVOICE_EVENTS), 'transfer.unmatched', 'transfer.duplicate', 'endpoint.disabled']),
    );
    const events = await runSql(service, 'select count(*)::int as count from events where project_id = $1', [
      project.id,
    ]);
    expect([...shop.handled]).toHaveLength(Number(events[0]?.['count']));
    expect(shop.duplicates).toEqual([]);

    // The operator enables the endpoint, and sends the events again that died or were never planned.
    const handled = [...shop.handled];
    const [fulfilled, receivedBefore] = [[...shop.fulfilled], shop.received.length];
    const now = () => unixMs(service.clock.now());
    await enableEndpoint.run({ db: service.db, now }, OPERATOR, { endpointId: encodeId('whe', endpoint.id) });
    const all = [...Object.values(INVOICE_EVENTS), 'transfer.unmatched', 'transfer.duplicate'] as const;
    await replayFiltered(
      { db: service.db, now, actor: OPERATOR },
      {
        projectId: project.id,
        endpointId: endpoint.id,
        statuses: ['missing', 'dead', 'pending'],
        onlyFailing: false,
        types: all,
        missingTypes: all,
        from: unixMs(0),
        until: unixMs(now() + 1),
      },
    );
    // Everything of that week except the event for other endpoints, which don't exist.
    const lateIds = await eventually(
      () => new Set(shop.received.slice(receivedBefore)),
      ({ size }) => size === handled.length - handledBefore - 1,
    );
    for (const id of lateIds) expect(handled).toContain(id);
    expect(new Set(shop.duplicates)).toEqual(lateIds);
    expect([shop.fulfilled, [...shop.handled]]).toEqual([fulfilled, handled]);
  } finally {
    close();
  }
});
