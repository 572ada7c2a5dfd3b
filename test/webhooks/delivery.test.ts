import { describe, expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger, createTally } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { leaseDueDeliveries } from '../../src/core/store/outbox/deliveries.ts';
import { createExpediter, recordAttempts } from '../../src/core/webhooks/record-attempts.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import {
  attemptsMade,
  createWorldForEachTest,
  deliveredOutcome,
  eventually,
  failedOutcome,
  judge,
  outcomesOf,
  recorded,
  startReceiver,
  world,
} from './fixture.ts';

const HOUR_MS = 3_600_000;
createWorldForEachTest();

describe('a delivery', () => {
  test('carries the stored bytes, and the published verifier accepts it', async () => {
    const receiver = await startReceiver(world);
    const endpoint = await world.addEndpoint(receiver.url);
    const event = await world.addEvent([endpoint]);
    const { metrics } = world.startDispatcher();
    await eventually(async () => expect(await world.delivery(event)).toMatchObject({ status: 'delivered' }));
    const [received] = receiver.received;
    expect(received?.body.toString()).toBe(event.body);
    expect(received?.headers).toMatchObject({ 'webhook-id': event.wireId, 'webhook-protocol': 'v2' });
    expect(received && judge(world, endpoint.secret, received)).toEqual(JSON.parse(event.body));
    expect(await world.delivery(event)).toMatchObject({ attempt_count: 1, last_status: 204, last_error: null });
    // Counted once the database has confirmed it.
    await eventually(async () => expect(await outcomesOf(metrics)).toEqual({ delivered: 1, retried: 0, dead: 0 }));
  });

  test('is made when it is notified, long before the next poll', async () => {
    const receiver = await startReceiver(world);
    const endpoint = await world.addEndpoint(receiver.url);
    world.startDispatcher({ pollMs: 2 ** 30 });
    const first = await world.addEvent([endpoint]);
    await eventually(() => expect(receiver.received.map(({ id }) => id)).toEqual([first.wireId]));
    const second = await world.addEvent([endpoint]);
    await eventually(() => expect(receiver.received.map(({ id }) => id)).toEqual([first.wireId, second.wireId]));
  });

  test('goes to each endpoint, signed with its own secret', async () => {
    const receivers = [await startReceiver(world), await startReceiver(world)];
    const endpoints = await Promise.all(receivers.map(({ url }) => world.addEndpoint(url)));
    await world.addEvent(endpoints);
    world.startDispatcher();
    await eventually(() => expect(receivers.map(({ received }) => received.length)).toEqual([1, 1]));
    for (const [index, { received }] of receivers.entries()) {
      for (const one of received) expect(() => judge(world, endpoints[index]?.secret ?? '', one)).not.toThrow();
      for (const one of received) expect(() => judge(world, endpoints[1 - index]?.secret ?? '', one)).toThrow();
    }
  });

  test('of an endpoint whose secret cannot be opened waits and uses up no attempt, and stops nothing else', async () => {
    const receiver = await startReceiver(world);
    const [bad, good] = [await world.addEndpoint(receiver.url), await world.addEndpoint(receiver.url)];
    const setKey = (name: string) =>
      world.sql('update webhook_secrets set master_key_id = $2 where endpoint_id = $1', [bad.id, name]);
    await setKey('f'.repeat(16));
    const [unsigned, signed] = [await world.addEvent([bad]), await world.addEvent([good])];
    const { lines } = world.startDispatcher();
    const reported = () => lines.filter((line) => line.includes('cannot be decrypted'));
    // It's due a microsecond earlier, which a Date can't represent.
    const dueAt = new Date(world.clock.now() + 60_000);
    const putOff = () =>
      world.sql("select from deliveries where next_attempt_at = $1::timestamptz - interval '1 microsecond'", [dueAt]);
    await eventually(async () => {
      expect(await world.delivery(signed)).toMatchObject({ status: 'delivered' });
      expect(await world.delivery(unsigned)).toMatchObject({ attempt_count: 0, last_error: null });
      expect(await putOff()).toHaveLength(1);
    });
    await world.addEvent([bad]);
    await eventually(async () => expect(await putOff()).toHaveLength(2));
    expect(reported()).toHaveLength(1);
    expect(reported()[0]).toContain(encodeId('whe', bad.id));
    expect(await world.endpoint(bad)).toMatchObject({ failing_since: null });
    await setKey(TEST_KEY_RING.current().id);
    world.clock.advance(60_000);
    await eventually(async () =>
      expect(await world.delivery(unsigned)).toMatchObject({ status: 'delivered', attempt_count: 1 }),
    );
  });

  test('is signed with the current secret and with those that were rotated and have not ended', async () => {
    const receiver = await startReceiver(world);
    const endpoint = await world.addEndpoint(receiver.url);
    const current = await world.rotateSecret(endpoint, new Date(world.clock.now() + HOUR_MS));
    world.startDispatcher();
    for (const [hours, signatures] of [
      [0, 2],
      [1, 1],
    ] as const) {
      world.clock.advance(hours * HOUR_MS);
      const event = await world.addEvent([endpoint]);
      await eventually(async () => expect(await world.delivery(event)).toMatchObject({ status: 'delivered' }));
      const received = receiver.received.at(-1) ?? expect.fail('nothing arrived');
      expect(String(received.headers['webhook-signature']).split(' ')).toHaveLength(signatures);
      expect(() => judge(world, current, received)).not.toThrow();
      if (signatures === 2) expect(() => judge(world, endpoint.secret, received)).not.toThrow();
      else expect(() => judge(world, endpoint.secret, received)).toThrow();
    }
  });
});

describe('a failed delivery', () => {
  test('is made again with the same id and bytes and a fresh signature', async () => {
    const receiver = await startReceiver(world, (response) =>
      response.writeHead(receiver.received.length < 4 ? 500 : 200).end(),
    );
    const endpoint = await world.addEndpoint(receiver.url);
    const event = await world.addEvent([endpoint]);
    const { metrics } = world.startDispatcher();
    for (let attempt = 1; attempt <= 4; attempt++) {
      await recorded(metrics, attempt);
      const received = receiver.received.at(-1) ?? expect.fail('nothing arrived');
      expect(() => judge(world, endpoint.secret, received)).not.toThrow();
      const delivery = await world.delivery(event);
      expect(delivery).toMatchObject({ attempt_count: attempt, last_status: attempt < 4 ? 500 : 200 });
      world.clock.moveTo(delivery['next_attempt_at']);
    }
    expect(new Set(receiver.received.map(({ id }) => id))).toEqual(new Set([event.wireId]));
    expect(new Set(receiver.received.map(({ body }) => body.toString()))).toEqual(new Set([event.body]));
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-signature'])).size).toBe(4);
    expect(await world.delivery(event)).toMatchObject({ status: 'delivered', last_error: null });
    expect(await world.endpoint(endpoint)).toMatchObject({ failing_since: null });
  });

  test('is attempted 12 times over at least 75 hours, and then it is dead', async () => {
    const receiver = await startReceiver(world, (response) => response.writeHead(500).end());
    const endpoint = await world.addEndpoint(receiver.url);
    const event = await world.addEvent([endpoint]);
    const { metrics, lines } = world.startDispatcher();
    const startMs = world.clock.now();
    for (let attempt = 1; attempt <= 12; attempt++) {
      await recorded(metrics, attempt);
      const delivery = await world.delivery(event);
      expect(delivery).toMatchObject({ attempt_count: attempt, last_status: 500 });
      world.clock.moveTo(delivery['next_attempt_at']);
    }
    expect(world.clock.now() - startMs).toBeGreaterThanOrEqual(75 * HOUR_MS);
    expect(await world.delivery(event)).toMatchObject({
      status: 'dead',
      last_error: expect.stringMatching(/^http_500: /),
    });
    world.clock.advance(1000 * HOUR_MS);
    const next = await world.addEvent([await world.addEndpoint((await startReceiver(world)).url)]);
    await eventually(async () => expect(await world.delivery(next)).toMatchObject({ status: 'delivered' }));
    expect(receiver.received).toHaveLength(12);
    expect(await outcomesOf(metrics)).toMatchObject({ retried: 11, dead: 1 });
    expect(lines.filter((line) => line.includes('webhook is dead'))).toHaveLength(1);
  });

  test('waits as long as Retry-After asks', async () => {
    const receiver = await startReceiver(world, (response) => response.writeHead(429, { 'retry-after': '600' }).end());
    const event = await world.addEvent([await world.addEndpoint(receiver.url)]);
    world.startDispatcher();
    const next = new Date(world.clock.now() + 600_000);
    await eventually(async () =>
      expect(await world.delivery(event)).toMatchObject({ attempt_count: 1, next_attempt_at: next }),
    );
  });

  test('a redirect is a failure, and its target gets nothing', async () => {
    const target = await startReceiver(world);
    const receiver = await startReceiver(world, (response) => response.writeHead(307, { location: target.url }).end());
    const event = await world.addEvent([await world.addEndpoint(receiver.url)]);
    world.startDispatcher();
    await eventually(async () =>
      expect(await world.delivery(event)).toMatchObject({ status: 'pending', last_status: 307 }),
    );
    expect(target.received).toHaveLength(0);
  });

  test('a receiver that is away and comes back gets everything', async () => {
    const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
    const event = await world.addEvent([endpoint]);
    world.startDispatcher();
    await eventually(async () =>
      expect(await world.delivery(event)).toMatchObject({ last_error: expect.stringMatching(/^connection_refused: /) }),
    );
    expect((await world.endpoint(endpoint))['failing_since']).toBeInstanceOf(Date);
    const receiver = await startReceiver(world);
    await world.sql('update webhook_endpoints set url = $1', [receiver.url]);
    world.clock.moveTo((await world.delivery(event))['next_attempt_at']);
    await eventually(async () => expect(await world.delivery(event)).toMatchObject({ status: 'delivered' }));
    expect(await world.endpoint(endpoint)).toMatchObject({ failing_since: null });
  });
});

test('a web page that answers 200 gets its event as delivered, with one warning a minute that quotes it', async () => {
  const receiver = await startReceiver(world, (response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Log in</title>'),
  );
  const endpoint = await world.addEndpoint(receiver.url);
  const events = [await world.addEvent([endpoint]), await world.addEvent([endpoint]), await world.addEvent([endpoint])];
  const { lines } = world.startDispatcher();
  await eventually(() => expect(receiver.received).toHaveLength(3));
  for (const event of events) {
    await eventually(async () => expect(await world.delivery(event)).toMatchObject({ status: 'delivered' }));
  }
  const warned = () => lines.filter((line) => line.includes('the endpoint returned a web page'));
  await eventually(() => expect(warned()).toEqual([expect.stringContaining('"page":"Log in"')]));
});

describe('an endpoint is disabled', () => {
  test('by its own 410, and its events are kept and not sent', async () => {
    const receiver = await startReceiver(world, (response) => response.writeHead(410).end());
    const endpoint = await world.addEndpoint(receiver.url);
    const event = await world.addEvent([endpoint]);
    const { lines } = world.startDispatcher();
    await eventually(async () => expect((await world.endpoint(endpoint))['disabled_at']).toBeInstanceOf(Date));
    expect(await world.endpoint(endpoint)).toMatchObject({ disabled_reason: 'the endpoint returned 410 Gone' });
    await eventually(() => expect(lines.filter((line) => line.includes('endpoint disabled'))).toHaveLength(1));
    expect(await world.delivery(event)).toMatchObject({ status: 'pending', last_status: 410 });

    const later = await world.addEvent([endpoint]);
    world.clock.advance(HOUR_MS);
    const other = await world.addEvent([await world.addEndpoint((await startReceiver(world)).url)]);
    await eventually(async () => expect(await world.delivery(other)).toMatchObject({ status: 'delivered' }));
    expect(await world.delivery(later)).toMatchObject({ status: 'pending', attempt_count: 0 });
    expect(receiver.received).toHaveLength(1);
  });

  test('by a 410 also when another attempt succeeds with it', async () => {
    const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
    await world.addBacklog([endpoint], 2, 1);
    const db = world.openDatabase();
    const now = unixMs(world.clock.now());
    const { deliveries } = await leaseDueDeliveries(db, { now, limit: 2, defaultRoom: 2, room: new Map() });
    const [gone, fine] = deliveries.map((delivery, index) =>
      index === 0 ? { ...failedOutcome(delivery), status: 410 } : deliveredOutcome(delivery),
    );
    if (gone === undefined || fine === undefined) return expect.fail('two are leased');
    const log = createLogger({ level: 'fatal', destination: { write: () => undefined } });
    const expediter = createExpediter({ db, clock: world.clock, log });
    await recordAttempts(
      { db, log, metrics: createMetrics(), outages: createTally(Date.now), expediter },
      [gone, fine],
      now,
    );
    expect(await world.endpoint(endpoint)).toMatchObject({ disabled_reason: 'the endpoint returned 410 Gone' });
  });

  test('not by a 410 from the URL that it had before', async () => {
    let answer: () => void = () => undefined;
    const former = await startReceiver(world, (response) => {
      answer = () => response.writeHead(410).end();
    });
    const endpoint = await world.addEndpoint(former.url);
    const event = await world.addEvent([endpoint]);
    world.startDispatcher();
    await eventually(() => expect(former.received).toHaveLength(1));
    await world.sql(`update webhook_endpoints set url = 'http://127.0.0.1:1/new'`);
    answer();
    await eventually(async () => expect(await world.delivery(event)).toMatchObject({ last_status: 410 }));
    await world.untilNothingIsUnderWay();
    expect(await world.endpoint(endpoint)).toMatchObject({ disabled_at: null, failing_since: null });
  });

  test('later, while its row is locked: what came of the attempts is recorded without waiting for that', async () => {
    const receiver = await startReceiver(world, (response) => response.writeHead(410).end());
    const endpoint = await world.addEndpoint(receiver.url);
    await world.sql('begin');
    await world.sql('select from webhook_endpoints for no key update');
    const event = await world.addEventApart([endpoint]);
    const { lines } = world.startDispatcher();
    await eventually(async () => expect(await world.delivery(event)).toMatchObject({ last_status: 410 }));
    await eventually(() =>
      expect(lines.some((line) => line.includes('Quittance counts them at the next attempt'))).toBe(true),
    );
    await world.sql('commit');
    expect(await world.endpoint(endpoint)).toMatchObject({ disabled_at: null });
    world.clock.moveTo((await world.delivery(event))['next_attempt_at']);
    await eventually(async () => expect((await world.endpoint(endpoint))['disabled_at']).toBeInstanceOf(Date));
  });

  test('when every attempt has failed for 5 days, and not a day earlier', async () => {
    const receiver = await startReceiver(world, (response) => response.writeHead(500).end());
    const endpoint = await world.addEndpoint(receiver.url);
    const { metrics } = world.startDispatcher();
    // Without an attempt on every day, the endpoint would count as idle.
    for (let days = 0, made = 0; days < 5; days++) {
      await world.addEvent([endpoint]);
      await eventually(async () => expect(await attemptsMade(metrics)).toBeGreaterThan(made));
      await world.untilNothingIsUnderWay();
      expect(await world.endpoint(endpoint)).toMatchObject({ disabled_at: null });
      made = await attemptsMade(metrics);
      world.clock.advance(24 * HOUR_MS);
    }
    await eventually(async () =>
      expect((await world.endpoint(endpoint))['disabled_at']).toEqual(new Date(world.clock.now())),
    );
    expect(await world.endpoint(endpoint)).toMatchObject({ disabled_reason: 'every attempt has failed for 5 days' });
  });

  test('and the operator and the other endpoints of the project are told, once, without path and query of its URL', async () => {
    const broken = await startReceiver(world, (response) => response.writeHead(410).end());
    const other = await startReceiver(world);
    const [endpoint, teller] = [
      await world.addEndpoint(`${broken.url}hook?token=hidden`),
      await world.addEndpoint(other.url),
    ];
    const events = [await world.addEvent([endpoint]), await world.addEvent([endpoint])];
    const { lines } = world.startDispatcher();
    await eventually(() => expect(other.received).toHaveLength(1));
    const [received] = other.received;
    const endpointId = encodeId('whe', endpoint.id);
    expect(received && judge(world, teller.secret, received)).toMatchObject({
      type: 'endpoint.disabled',
      sequence: 1,
      data: {
        ...{ endpointId, description: '', reason: 'the endpoint returned 410 Gone', origin: broken.url.slice(0, -1) },
        ...{ disabledAt: new Date(world.clock.now()).toISOString(), undelivered: events.length },
      },
    });
    expect(await world.sql('select kind, subject, detail from alarms where resolved_at is null')).toEqual([
      {
        kind: 'webhook-disabled',
        subject: endpointId,
        detail: expect.stringContaining(`webhook enable ${endpointId}`),
      },
    ]);
    expect(
      JSON.stringify([lines, received?.body.toString(), await world.sql('select detail from alarms')]),
    ).not.toContain('hidden');
    expect(await world.sql("select from events where type = 'endpoint.disabled'")).toHaveLength(1);
  });

  test('not by failures that one success interrupts', async () => {
    let status = 500;
    const receiver = await startReceiver(world, (response) => response.writeHead(status).end());
    const endpoint = await world.addEndpoint(receiver.url);
    world.startDispatcher();
    for (status of [500, 200, 500, 500]) {
      const event = await world.addEvent([endpoint]);
      await eventually(async () => expect((await world.delivery(event))['last_status']).toBe(status));
      world.clock.advance(4 * 24 * HOUR_MS);
    }
    expect(await world.endpoint(endpoint)).toMatchObject({ disabled_at: null });
  });
});
