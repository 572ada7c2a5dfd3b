import { describe, expect, test } from 'vitest';
import { createWorldForEachTest, eventually, outcomesOf, type Received, startReceiver, world } from './fixture.ts';

const MINUTE_MS = 60_000;
createWorldForEachTest();

const ids = (received: Received[]) => received.map(({ id }) => id);
const times = (count: number) => Array.from({ length: count });

describe('other endpoints never wait', () => {
  test('an endpoint that hangs holds its own places and no more, and the other gets all of its events', async () => {
    const hanging = await startReceiver(world, () => undefined);
    const healthy = await startReceiver(world);
    const endpoints = [await world.addEndpoint(hanging.url), await world.addEndpoint(healthy.url)];
    for (const _ of times(30)) await world.addEvent(endpoints);
    const { metrics } = world.startDispatcher({ concurrency: 6, perEndpoint: 4 });
    await eventually(() => expect(healthy.received).toHaveLength(30));
    expect(hanging.received.length).toBeGreaterThan(0);
    expect(hanging.received.length).toBeLessThanOrEqual(4);
    expect(await outcomesOf(metrics)).toMatchObject({ retried: 0, dead: 0 });
  });

  test('two endpoints on one host do not wait for each other', async () => {
    const receiver = await startReceiver(world, (response, { id }) => {
      if (fast.some(({ wireId }) => wireId === id)) response.writeHead(204).end();
    });
    const [slow, quick] = [await world.addEndpoint(receiver.url), await world.addEndpoint(receiver.url)];
    for (const _ of times(8)) await world.addEvent([slow]);
    const fast = await Promise.all([world.addEvent([quick])]);
    world.startDispatcher({ concurrency: 6, perEndpoint: 4 });
    for (const event of fast) {
      await eventually(async () => expect(await world.delivery(event)).toMatchObject({ status: 'delivered' }));
    }
  });

  test('endpoints known to fail get one place each, and half of all together', async () => {
    const hanging = await startReceiver(world, () => undefined);
    const healthy = await startReceiver(world);
    for (const _ of times(3)) {
      const endpoint = await world.addEndpoint(hanging.url);
      for (const __ of times(4)) await world.addEvent([endpoint]);
    }
    await world.sql('update webhook_endpoints set failing_since = now()');
    const endpoint = await world.addEndpoint(healthy.url);
    for (const _ of times(20)) await world.addEvent([endpoint]);
    world.startDispatcher({ concurrency: 4, perEndpoint: 4 });
    await eventually(() => expect([healthy.received.length, hanging.received.length]).toEqual([20, 2]));
  });
});

describe('the order of one invoice at one endpoint', () => {
  test('is kept while everything works, and no poll lies between two of its events', async () => {
    const receiver = await startReceiver(world);
    const endpoint = await world.addEndpoint(receiver.url);
    const invoice = await world.addInvoice();
    const events = [];
    for (const sequence of [3, 1, 4, 2, 5]) {
      events.push({ sequence, ...(await world.addEvent([endpoint], { id: invoice, sequence })) });
    }
    world.startDispatcher({ pollMs: 2 ** 30 });
    await eventually(() => expect(receiver.received).toHaveLength(5));
    const inOrder = events.toSorted((a, b) => a.sequence - b.sequence).map(({ wireId }) => wireId);
    expect(ids(receiver.received)).toEqual(inOrder);
  });

  test('holds a later event back while an earlier one is tried, and nothing else', async () => {
    const down = await world.addEndpoint('http://127.0.0.1:1/');
    const receiver = await startReceiver(world);
    const up = await world.addEndpoint(receiver.url);
    const [invoice, other] = [await world.addInvoice(), await world.addInvoice()];
    const first = await world.addEvent([down], { id: invoice, sequence: 1 });
    world.startDispatcher();
    await eventually(async () => expect(await world.delivery(first)).toMatchObject({ last_error: expect.any(String) }));

    const second = await world.addEvent([down], { id: invoice, sequence: 2 });
    const ofOther = await world.addEvent([down], { id: other, sequence: 1 });
    const elsewhere = await world.addEvent([up], { id: invoice, sequence: 3 });
    const ofNone = await world.addEvent([down]);
    await eventually(async () => {
      expect(await world.delivery(elsewhere)).toMatchObject({ status: 'delivered' });
      expect(await world.delivery(ofOther)).toMatchObject({ attempt_count: 1 });
      expect(await world.delivery(ofNone)).toMatchObject({ attempt_count: 1 });
    });
    expect(await world.delivery(second)).toMatchObject({ attempt_count: 0 });

    await world.sql('update webhook_endpoints set url = $1', [receiver.url]);
    world.clock.advance(MINUTE_MS);
    await eventually(async () =>
      expect(await world.delivery(second)).toMatchObject({ status: 'delivered', attempt_count: 1 }),
    );
    const arrived = ids(receiver.received);
    expect(arrived.indexOf(first.wireId)).toBeLessThan(arrived.indexOf(second.wireId));
  });

  test('lets the later event pass when the earlier one has been tried for an hour', async () => {
    const receiver = await startReceiver(world, (response, { id }) =>
      response.writeHead(id === first.wireId ? 500 : 204).end(),
    );
    const endpoint = await world.addEndpoint(receiver.url);
    const invoice = await world.addInvoice();
    const first = await world.addEvent([endpoint], { id: invoice, sequence: 1 });
    world.clock.advance(59 * MINUTE_MS);
    const second = await world.addEvent([endpoint], { id: invoice, sequence: 2 });
    world.startDispatcher();
    await eventually(async () => expect(await world.delivery(first)).toMatchObject({ last_status: 500 }));
    expect(await world.delivery(second)).toMatchObject({ attempt_count: 0 });
    world.clock.advance(MINUTE_MS);
    await eventually(async () => expect(await world.delivery(second)).toMatchObject({ status: 'delivered' }));
    expect(await world.delivery(first)).toMatchObject({ status: 'pending' });
  });

  test('does not wait for an earlier event that is dead', async () => {
    const receiver = await startReceiver(world);
    const endpoint = await world.addEndpoint(receiver.url);
    const invoice = await world.addInvoice();
    const first = await world.addEvent([endpoint], { id: invoice, sequence: 1 });
    await world.sql(`update deliveries set status = 'dead' where event_id = $1`, [first.id]);
    const second = await world.addEvent([endpoint], { id: invoice, sequence: 2 });
    world.startDispatcher();
    await eventually(async () => expect(await world.delivery(second)).toMatchObject({ status: 'delivered' }));
  });
});
