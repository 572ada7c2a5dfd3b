import { randomBytes } from 'node:crypto';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { addTestEndpoint } from '../support/key-ring.ts';
import {
  type Answer,
  call,
  createInvoice,
  createTestProject,
  eventually,
  type Json,
  payExactly,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { deliver, forge, type WebhookRequest } from './forged-webhooks.ts';
import { isPresent, type Program, type RunningProgram, START_LIMIT_MS, startProgram } from './program.ts';

/**
 * Describes what every example must do, in any language. The languages run in parallel, each with its own project. The invoice of the order
 * `onHold` has a status that no program knows.
 */
export function describeReceiver(program: Program, service: () => TestService, onHold?: string): void {
  if (!isPresent(program)) {
    describe(`in ${program.language}`, () => {
      test.skip(`not run, because this machine has no ${program.probe[0]}`, () => undefined);
    });
    return;
  }
  describe.concurrent(`in ${program.language}`, () => {
    const secret = createWebhookSecret(randomBytes);
    let shop: TestService;
    let running: RunningProgram;
    beforeAll(async () => {
      shop = { ...service(), project: await createTestProject(service().db) };
      running = await startProgram(program, {
        QUITTANCE_URL: shop.url,
        QUITTANCE_API_KEY: shop.project.apiKey,
        QUITTANCE_WEBHOOK_SECRET: secret,
      });
    }, START_LIMIT_MS);
    afterAll(() => running?.stop());

    const place = (order: Json) => call(`${running.url}/orders`, json(order));
    const stateOf = async (externalId: string) => (await call(`${running.url}/orders/${externalId}`)).body;
    const send = (webhook: WebhookRequest) => post(`${running.url}/hooks/quittance`, webhook);
    const waiting = { state: 'waiting', fulfilments: 0 };
    const fulfilledOnce = { state: 'paid', fulfilments: 1 };

    /** Pays an order, and returns its event before any webhook was sent to the program. */
    const payUntold = async (externalId: string) => {
      const { invoiceId } = (await place({ externalId, amount: '25.00' })).body;
      await pay(shop, invoiceId);
      await untilStatus(shop, invoiceId, 'PAID');
      return eventOf(shop, invoiceId);
    };

    test.sequential('an order that is placed again has the same invoice, and another amount is refused', async () => {
      const order = { externalId: 'order-0', amount: '12.50' };
      const [first, again] = [await place(order), await place(order)];
      expect([first.status, again.status]).toEqual([201, 201]);
      expect(first.body).toEqual({
        invoiceId: expect.stringMatching(/^inv_/),
        checkoutUrl: expect.stringMatching(/\/c\/\w+$/),
      });
      expect(again.body).toEqual(first.body);
      expect((await place({ ...order, amount: '12.51' })).status).toBe(409);
      expect((await place({ ...order, externalId: '' })).status).toBe(400);
      expect(await stateOf('order-0')).toEqual(waiting);
    });

    test.sequential('a forged webhook about an order that is paid is refused and fulfils nothing', async () => {
      const event = await payUntold('order-1');
      const answers: Record<string, number> = {};
      const forged = Object.entries(forge(event, secret));
      for (const [name, webhook] of forged) answers[name] = await send(webhook);
      expect(Object.entries(answers).filter(([, status]) => status < 400 || status > 499)).toEqual([]);
      expect(await stateOf('order-1')).toEqual(waiting);

      // These would have no effect if a forgery had been remembered as handled. The last two are different events.
      const genuine = [event, event, event, { ...event, id: `${event.id}-a` }, { ...event, id: `${event.id}-b` }];
      const statuses = await Promise.all(genuine.map((one) => send(deliver(one, secret))));
      expect(statuses).toEqual([204, 204, 204, 204, 204]);
      expect(await send(deliver(event, secret))).toBe(204);
      expect(await stateOf('order-1')).toEqual(fulfilledOnce);
    });

    test.sequential('the second of two signatures is enough, as while a secret is rotated', async () => {
      const webhook = deliver(await payUntold('order-2'), secret);
      const old = `v1,${Buffer.alloc(32).toString('base64')}`;
      webhook.headers['webhook-signature'] = `${old} ${webhook.headers['webhook-signature']}`;
      expect(await send(webhook)).toBe(204);
      expect(await stateOf('order-2')).toEqual(fulfilledOnce);
    });

    test.sequential('nothing is fulfilled for an invoice that is not PAID, nor for another order, whatever the event says', async () => {
      const { invoiceId } = (await place({ externalId: 'order-3', amount: '30.00' })).body;
      const stranger = (await createInvoice(shop, { body: { externalId: 'not-ours' } })).body;
      await pay(shop, stranger.invoiceId);
      await untilStatus(shop, stranger.invoiceId, 'PAID');
      const event = (id: string, type: string, data: Json) => ({ id, type, sequence: 1, data });
      const claimed = { invoiceId, externalId: 'order-3', status: 'PAID' };
      const events = [
        event('evt_1', 'invoice.confirming', { ...claimed, status: 'CONFIRMING' }),
        event('evt_2', 'invoice.paid', claimed),
        event('evt_3', 'invoice.paid', { ...claimed, invoiceId: stranger.invoiceId }),
        event('evt_4', 'invoice.from.the.future', claimed),
        event('evt_5', 'ping', {}),
      ];
      for (const one of events) expect([one.id, await send(deliver(one, secret))]).toEqual([one.id, 204]);
      expect(await stateOf('order-3')).toEqual(waiting);
      expect(await post(`${running.url}/orders/not-ours`)).toBe(404);
    });

    if (onHold !== undefined) {
      test.sequential('nothing is fulfilled by an unknown status', async () => {
        const { invoiceId } = (await place({ externalId: onHold, amount: '35.00' })).body;
        await pay(shop, invoiceId);
        const event = await eventually(
          () => eventOf(shop, invoiceId),
          (found) => found !== undefined,
        );
        expect(await send(deliver(event, secret))).toBe(204);
        expect(await stateOf(onHold)).toEqual(waiting);
      });
    }

    test.sequential('an event that cannot be looked up is asked for again', async () => {
      const data = { invoiceId: 'inv_00000000000000000000000000' };
      expect(await send(deliver({ id: 'evt_6', type: 'invoice.paid', data } as Json, secret))).toBe(500);
    });

    test.sequential('an order is fulfilled once by the webhooks that Quittance sends', async () => {
      await addTestEndpoint(shop.db, { projectId: shop.project.id, url: `${running.url}/hooks/quittance`, secret });
      const { invoiceId } = (await place({ externalId: 'order-4', amount: '40.00' })).body;
      await pay(shop, invoiceId);
      await eventually(
        () => stateOf('order-4'),
        ({ fulfilments }) => fulfilments > 0,
      );
      expect(await send(deliver(await eventOf(shop, invoiceId), secret))).toBe(204);
      expect(await stateOf('order-4')).toEqual(fulfilledOnce);
    });
  });
}

/** Pays an invoice in an irreversible block. */
export async function pay(shop: TestService, invoiceId: string): Promise<void> {
  await payExactly(shop, invoiceId);
  shop.devnet.mineUntilSolid();
}

/** Returns an invoice's `invoice.paid` from the feed. */
export async function eventOf(shop: TestService, invoiceId: string): Promise<Json> {
  const feed = await call(`${shop.url}/v1/events?limit=100`, { headers: { 'x-api-key': shop.project.apiKey } });
  return feed.body.data.find(({ type, data }: Json) => type === 'invoice.paid' && data.invoiceId === invoiceId);
}

function json(body: Json): Parameters<typeof call>[1] {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** Returns the status. A program that hangs up on a body that it won't read counts as 413 too. */
async function post(url: string, webhook?: WebhookRequest): Promise<Answer['status']> {
  try {
    const method = webhook === undefined ? 'GET' : 'POST';
    const response = await request(url, { method, headers: webhook?.headers ?? {}, body: webhook?.body ?? null });
    await response.body.dump();
    return response.statusCode;
  } catch (error) {
    if (webhook !== undefined && webhook.body.length > 64 * 1024) return 413;
    throw error;
  }
}
