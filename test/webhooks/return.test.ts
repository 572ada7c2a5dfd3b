import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { failurePauseMs, schedulePosition } from '../../src/core/domain/retry.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { bringDeliveriesForward, leaseDueDeliveries } from '../../src/core/store/outbox/deliveries.ts';
import { insertEvents } from '../../src/core/store/outbox/events.ts';
import { longTest } from '../support/some-cases.ts';
import { createWorldForEachTest, eventually, forkDispatcher, type Row, startReceiver, world } from './fixture.ts';

createWorldForEachTest();

const times = (count: number) => Array.from({ length: count });
const now = () => unixMs(world.clock.now());
/** According to the database; the metrics are updated a moment later. */
const attemptsMade = async () => (await world.sql('select from delivery_attempts')).length;
const pending = async () => (await world.sql("select from deliveries where status = 'pending'")).length;
const positionOf = (row: Row) => schedulePosition(Number(row['attempt_count']), Number(row['max_attempts']));

/** Writes an event for every endpoint, like a change of the invoice does. */
async function tell(invoiceId: string | null, sequence = 1): Promise<{ id: string; wireId: string }> {
  const id = uuidV7(world.clock.now(), randomBytes(10));
  const event = { id, projectId: world.projectId, type: 'ping', transferId: null, body: '{}' } as const;
  await world
    .openDatabase()
    .transaction((tx) => insertEvents(tx, 'devnet', [{ ...event, invoiceId, sequence }], now()));
  return { id, wireId: encodeId('evt', id) };
}

/** Starts a receiver that can be down, and records the events that it accepted by id. */
async function startShop() {
  const shop = { isAway: false, taken: [] as string[], asked: [] as string[], underWay: 0, mostUnderWay: 0 };
  const receiver = await startReceiver(world, (response, { id }) => {
    shop.asked.push(id);
    if (shop.isAway) {
      // Like a proxy whose server is restarting.
      response.writeHead(503).end();
      return;
    }
    shop.underWay += 1;
    shop.mostUnderWay = Math.max(shop.mostUnderWay, shop.underWay);
    shop.taken.push(id);
    setImmediate(() => {
      shop.underWay -= 1;
      response.writeHead(204).end();
    });
  });
  return { shop, endpoint: await world.addEndpoint(receiver.url) };
}

async function pauseOf(endpoint: { id: string }): Promise<number> {
  await world.untilNothingIsUnderWay();
  const { failing_since: since } = await world.endpoint(endpoint);
  return since instanceof Date ? failurePauseMs(unixMs(since.getTime()), now()) : expect.fail('it does not fail');
}

/** Lets the endpoint's pause end again and again for at most this long, with a probe each time. */
async function stayAway(endpoint: { id: string }, ms: number): Promise<number[]> {
  const end = world.clock.now() + ms;
  const pauses: number[] = [];
  for (;;) {
    const pauseMs = await pauseOf(endpoint);
    if (world.clock.now() + pauseMs > end) return pauses;
    pauses.push(pauseMs);
    const before = await attemptsMade();
    world.clock.advance(pauseMs);
    await eventually(async () => expect(await attemptsMade()).toBe(before + 1));
  }
}

/** Pretends that these deliveries were attempted once, and wait half an hour for the next attempt. */
async function waitForRetry(which: string): Promise<void> {
  await world.sql(
    `update deliveries set attempt_count = 1, last_status = 502, last_error = 'http_502: no', next_attempt_at = $1 where ${which}`,
    [new Date(world.clock.now() + 1_800_000)],
  );
  await world.sql(
    `insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at) select event_id, endpoint_id, 1, $1 from deliveries where ${which}`,
    [new Date(world.clock.now())],
  );
}

describe('a receiver that was away', () => {
  test('for 6 s hears of an invoice within 2 s of its return, in order, from two dispatchers', async () => {
    const { shop, endpoint } = await startShop();
    const invoice = await world.addInvoice();
    shop.isAway = true;
    const confirming = await tell(invoice, 1);
    world.startDispatcher();
    world.startDispatcher();
    await eventually(async () => expect(await attemptsMade()).toBe(1));
    await stayAway(endpoint, 3000);
    const before = await attemptsMade();
    const paid = await tell(invoice, 2);
    await eventually(async () => expect(await attemptsMade()).toBe(before + 1));
    const pauses = await stayAway(endpoint, 3000);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1000);

    const pauseMs = await pauseOf(endpoint);
    shop.isAway = false;
    world.clock.advance(pauseMs);
    await eventually(async () => expect(await pending()).toBe(0));
    expect(shop.taken).toEqual([confirming.wireId, paid.wireId]);
    expect(positionOf(await world.delivery(confirming))).toBeLessThanOrEqual(2);
    expect(positionOf(await world.delivery(paid))).toBe(1);
  });

  longTest('for 20 minutes is asked ever less often, and hears of all within a twentieth of that', async () => {
    const { shop, endpoint } = await startShop();
    const [invoice, other] = [await world.addInvoice(), await world.addInvoice()];
    shop.isAway = true;
    const first = await tell(invoice, 1);
    const ofOther = await tell(other, 1);
    world.startDispatcher();
    await eventually(async () => expect(await attemptsMade()).toBe(2));
    const pauses = await stayAway(endpoint, 20 * 60_000);
    expect(pauses.length).toBeLessThan(130);
    const second = await tell(invoice, 2);

    const pauseMs = await pauseOf(endpoint);
    shop.isAway = false;
    expect(pauseMs).toBeLessThanOrEqual(60_000);
    world.clock.advance(pauseMs);
    await eventually(async () => expect(await pending()).toBe(0));
    const ofInvoice = shop.taken.filter((id) => id !== ofOther.wireId);
    expect(ofInvoice).toEqual([first, second].map(({ wireId }) => wireId));
  });

  test('with many invoices is asked once a pause, and then gets everything at once and no more than 16 at a time', async () => {
    const { shop, endpoint } = await startShop();
    shop.isAway = true;
    await world.addBacklog([endpoint], 60, 2);
    await waitForRetry('sequence = 1');
    const at = [new Date(world.clock.now())];
    await world.sql('update webhook_endpoints set failing_since = $1, consecutive_failures = 9, open_until = $1', at);
    world.startDispatcher();
    // Deliveries behind the waiting ones were postponed with them, so nothing is due.
    await eventually(async () =>
      expect(await world.sql('select from deliveries where next_attempt_at <= $1', at)).toEqual([]),
    );
    const pauses = await stayAway(endpoint, 6000);
    expect(shop.asked).toHaveLength(pauses.length);
    // None was attempted twice while others weren't attempted.
    expect(new Set(shop.asked).size).toBe(shop.asked.length);

    const pauseMs = await pauseOf(endpoint);
    shop.isAway = false;
    world.clock.advance(pauseMs);
    await eventually(async () => expect(await pending()).toBe(0));
    expect(new Set(shop.taken).size).toBe(120);
    expect(shop.taken).toHaveLength(120);
    expect(shop.mostUnderWay).toBeLessThanOrEqual(16);
    const outOfOrder = await world.sql(
      'select from deliveries d join deliveries e using (invoice_id) where d.sequence = 1 and e.sequence = 2 and d.finished_at > e.finished_at',
    );
    expect(outOfOrder).toEqual([]);
  });
});

longTest(
  'a process that is killed while a receiver is away is replaced by one that learns which endpoints fail',
  async () => {
    const { shop } = await startShop();
    shop.isAway = true;
    const event = await tell(await world.addInvoice());
    const child = forkDispatcher(world);
    const ended = once(child, 'exit');
    try {
      await eventually(async () => expect(await attemptsMade()).toBeGreaterThanOrEqual(3));
      await world.untilNothingIsUnderWay();
    } finally {
      child.kill('SIGKILL');
      await ended;
    }
    world.clock.moveTo(new Date());
    shop.isAway = false;
    world.startDispatcher();
    const returnedMs = world.clock.now();
    await eventually(async () => {
      // Its retry, after 5 s, is never due.
      if (world.clock.now() < returnedMs + 2000) world.clock.advance(10);
      expect(await world.delivery(event)).toMatchObject({ status: 'delivered' });
    });
  },
);

longTest('two processes that both ask a receiver that is away deliver in order, each event once', async () => {
  const { shop } = await startShop();
  const invoice = await world.addInvoice();
  shop.isAway = true;
  const processes = [forkDispatcher(world), forkDispatcher(world)];
  try {
    const events = [await tell(invoice, 1)];
    await eventually(() => expect(shop.asked.length).toBeGreaterThanOrEqual(4));
    world.clock.moveTo(new Date());
    events.push(await tell(invoice, 2));
    await eventually(() => expect(shop.asked.length).toBeGreaterThanOrEqual(8));
    shop.isAway = false;
    await eventually(async () => expect(await pending()).toBe(0));
    expect(shop.taken).toEqual(events.map(({ wireId }) => wireId));
  } finally {
    const ended = processes.map((child) => once(child, 'exit'));
    for (const child of processes) child.kill();
    await Promise.all(ended);
  }
});

test('a new event of an invoice makes the earlier ones that wait due, at an endpoint that takes others too', async () => {
  const { shop } = await startShop();
  const invoice = await world.addInvoice();
  const events = [await tell(invoice, 1), await tell(invoice, 2)];
  await waitForRetry('true');
  const other = await tell(await world.addInvoice());
  world.startDispatcher();
  await eventually(async () => expect(await world.delivery(other)).toMatchObject({ status: 'delivered' }));
  expect(await pending()).toBe(2);
  world.clock.advance(1);
  events.push(await tell(invoice, 3));
  await eventually(async () => expect(await pending()).toBe(0));
  expect(shop.taken).toEqual([other, ...events].map(({ wireId }) => wireId));
});

test('20 events that come to one invoice while its receiver is down use up no more of the schedule than none, and arrive in order', async () => {
  const { shop, endpoint } = await startShop();
  const invoice = await world.addInvoice();
  shop.isAway = true;
  const first = await tell(invoice, 1);
  const events = [first];
  world.startDispatcher();
  await eventually(async () => expect(await attemptsMade()).toBe(1));
  for (let sequence = 2; sequence <= 21; sequence++) {
    world.clock.advance(10);
    const before = await attemptsMade();
    events.push(await tell(invoice, sequence));
    world.clock.advance(await pauseOf(endpoint));
    await eventually(async () => expect(await attemptsMade()).toBeGreaterThan(before));
    await world.untilNothingIsUnderWay();
  }
  expect(await attemptsMade()).toBeLessThanOrEqual(41);
  // At once and after 5 s; 30 s after that, none was due yet.
  expect(positionOf(await world.delivery(first))).toBeLessThanOrEqual(2);
  expect(await world.endpoint(endpoint)).toMatchObject({ disabled_at: null });
  expect(
    await world.sql('select max(attempt_count), max(max_attempts) as most from deliveries where sequence > 1'),
  ).toEqual([{ max: 0, most: 12 }]);

  // Before the receiver recovers, because the first successful attempt ends the series of failures.
  const pauseMs = await pauseOf(endpoint);
  shop.isAway = false;
  world.clock.advance(pauseMs);
  await eventually(async () => expect(await pending()).toBe(0));
  expect(shop.taken).toEqual(events.map(({ wireId }) => wireId));
});

test('an attempt before its time that fails leaves the next one where it was', async () => {
  const { shop, endpoint } = await startShop();
  shop.isAway = true;
  const event = await tell(null);
  world.startDispatcher();
  await eventually(async () => expect(await attemptsMade()).toBe(1));
  await world.untilNothingIsUnderWay();
  const before = await world.delivery(event);
  expect(await stayAway(endpoint, 4000)).toHaveLength(5);
  await world.untilNothingIsUnderWay();
  const after = await world.delivery(event);
  expect(after).toMatchObject({ attempt_count: 6, max_attempts: 17, next_attempt_at: before['next_attempt_at'] });
  // An expedited delivery counts as no more than the endpoint's first failure, so a new event is tried at once.
  expect(await world.endpoint(endpoint)).toMatchObject({ consecutive_failures: 1 });
});

test.each([429, 503])(
  'a Retry-After with a %i is waited for, whatever happens at the endpoint meanwhile',
  async (status) => {
    const { url, received } = await startReceiver(world, (response, { id }) =>
      id === first.wireId ? response.writeHead(status, { 'retry-after': '600' }).end() : response.writeHead(204).end(),
    );
    await world.addEndpoint(url);
    const invoice = await world.addInvoice();
    const first = await tell(invoice, 1);
    world.startDispatcher();
    await eventually(async () => expect(await attemptsMade()).toBe(1));
    const due = (await world.delivery(first))['next_attempt_at'];
    const second = await tell(invoice, 2);
    for (const _ of times(3)) {
      world.clock.advance(10_000);
      const other = await tell(null);
      await eventually(async () => expect(await world.delivery(other)).toMatchObject({ status: 'delivered' }));
      await world.untilNothingIsUnderWay();
    }
    expect(await world.delivery(second)).toMatchObject({ status: 'pending', attempt_count: 0, next_attempt_at: due });
    expect(received.filter(({ id }) => id === first.wireId)).toHaveLength(1);
  },
);

test('once the pause that a receiver asked for is over, its event comes as soon as the receiver accepts another one', async () => {
  let isBusy = true;
  const { url, received } = await startReceiver(world, (response) =>
    isBusy ? response.writeHead(503, { 'retry-after': '5' }).end() : response.writeHead(204).end(),
  );
  await world.addEndpoint(url);
  const event = await tell(null);
  world.startDispatcher();
  for (const attempts of [1, 2]) {
    await eventually(async () => expect(await attemptsMade()).toBe(attempts));
    await world.untilNothingIsUnderWay();
    world.clock.advance(6100);
  }
  const { next_attempt_at: due } = await world.delivery(event);
  expect(Number(due)).toBeGreaterThan(world.clock.now() + 20_000);
  isBusy = false;
  await tell(null);
  await eventually(async () => expect(await world.delivery(event)).toMatchObject({ status: 'delivered' }));
  expect(world.clock.now()).toBeLessThan(Number(due));
  expect(received.map(({ id }) => id)).toContain(event.wireId);
});

test('an event that a receiver refuses while it takes others is tried once more at once, and then when its schedule says', async () => {
  const { url, received } = await startReceiver(world, (response, { id }) =>
    response.writeHead(id === refused.wireId ? 500 : 204).end(),
  );
  await world.addEndpoint(url);
  const refused = await tell(null);
  world.startDispatcher();
  await eventually(async () => expect(await attemptsMade()).toBe(1));
  await world.untilNothingIsUnderWay();
  // The attempt took real time, but the world's clock stood still: on a busy machine it would seem to end after the return.
  await world.sql('update delivery_attempts set latency_ms = 0');
  const due = (await world.delivery(refused))['next_attempt_at'];
  for (const [index, ms] of [100, 100, 100, 1100, 1100, 1100].entries()) {
    world.clock.advance(ms);
    const taken = await tell(null);
    await eventually(async () => expect(await world.delivery(taken)).toMatchObject({ status: 'delivered' }));
    // The first of them shows that the receiver has recovered, which expedites the refused one.
    await eventually(async () => expect(await attemptsMade()).toBe(index + 3));
    await world.untilNothingIsUnderWay();
  }
  expect(received.filter(({ id }) => id === refused.wireId)).toHaveLength(2);
  expect(await world.delivery(refused)).toMatchObject({ status: 'pending', next_attempt_at: due });
});

describe('of the deliveries that wait', () => {
  const ask = (endpoint: { id: string }, isBack: boolean) =>
    bringDeliveriesForward(world.openDatabase(), [{ target: endpoint.id, isBack, returnedAt: null }], now());

  test('none is hastened that has had 240 attempts, or is under way', async () => {
    const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
    const [event, often, leased] = [await tell(null), await tell(null), await tell(null)];
    await waitForRetry('true');
    await world.sql('update deliveries set max_attempts = 240 where event_id = $1', [often.id]);
    await world.sql('update deliveries set attempt_count = 2 where event_id = $1', [leased.id]);
    await world.sql('update webhook_endpoints set failing_since = now()');
    expect((await ask(endpoint, true)).map(({ eventId }) => eventId)).toEqual([event.id]);
    expect(await ask(endpoint, true)).toEqual([]);
    const { deliveries } = await leaseDueDeliveries(world.openDatabase(), {
      ...{ now: now(), limit: 100, defaultRoom: 100, room: new Map() },
    });
    expect(deliveries).toMatchObject([{ eventId: event.id, attempt: 2, maxAttempts: 13, isFailing: true }]);
  });

  test('one at most is hastened for each process that asks while an endpoint fails, and none where one is due or it is left alone', async () => {
    const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
    for (const _ of times(9)) await tell(null);
    await waitForRetry('true');
    expect(await ask(endpoint, false)).toEqual([]);
    const until = [new Date(now() + 1)];
    await world.sql(
      'update webhook_endpoints set failing_since = now(), consecutive_failures = 9, open_until = $1',
      until,
    );
    expect(await ask(endpoint, false)).toEqual([]);
    world.clock.advance(1);
    const all = (await Promise.all(times(4).map(() => ask(endpoint, false)))).flat();
    expect(all.length).toBeGreaterThanOrEqual(1);
    expect(all.length).toBeLessThanOrEqual(4);
    expect(await ask(endpoint, false)).toEqual([]);
  });
});
