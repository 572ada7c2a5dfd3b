import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { LEASE_MS } from '../../src/core/store/outbox/deliveries.ts';
import { startDatabaseLink } from '../support/database-link.ts';
import {
  attemptsMade,
  createWorldForEachTest,
  eventually,
  forkDispatcher,
  judge,
  type Received,
  startReceiver,
  world,
} from './fixture.ts';

const HOUR_MS = 3_600_000;
createWorldForEachTest();

type Event = { wireId: string; body: string; invoice: string; sequence: number };

/** Writes events of several invoices in order. */
async function addEvents(endpoint: { id: string }, { invoices, each }: { invoices: number; each: number }) {
  const events: Event[] = [];
  const ids: string[] = [];
  while (ids.length < invoices) ids.push(await world.addInvoice());
  for (let sequence = 1; sequence <= each; sequence++) {
    for (const invoice of ids) {
      events.push({ ...(await world.addEvent([endpoint], { id: invoice, sequence })), invoice, sequence });
    }
  }
  return events;
}

const areDelivered = async () => (await world.sql("select from deliveries where status <> 'delivered'")).length === 0;

/** The verifier uses the current time, so it refuses webhooks that arrived long ago. */
const MAX_JUDGED = 1;

/** Expects that every attempt had the event's bytes and can be verified, and that each invoice's accepted events arrived in order. */
function expectInOrder(endpoint: { secret: string }, events: Event[], all: Received[], taken: Received[]) {
  for (const received of all) {
    const event = events.find(({ wireId }) => wireId === received.id) ?? expect.fail(`${received.id} is not ours`);
    expect(received.body.toString()).toBe(event.body);
  }
  for (const received of taken.slice(-MAX_JUDGED)) expect(() => judge(world, endpoint.secret, received)).not.toThrow();
  expect(new Set(taken.map(({ id }) => id)).size).toBe(events.length);
  const of = (invoice: string) => events.filter((event) => event.invoice === invoice).map(({ wireId }) => wireId);
  const first = [...new Set(taken.map(({ id }) => id))];
  for (const invoice of new Set(events.map((event) => event.invoice))) {
    expect(first.filter((id) => of(invoice).includes(id))).toEqual(of(invoice));
  }
}

/** A broken receiver's behaviour instead of answering. */
const FAULTS: Record<string, (response: ServerResponse) => void> = {
  'answers 500': (response) => response.writeHead(500).end('it broke'),
  'hangs before the answer': () => undefined,
  'drips its headers': (response) => {
    const { socket } = response;
    socket?.write('HTTP/1.1 200 OK\r\n');
    const drip = setInterval(() => socket?.write('x-drip: 1\r\n'), 10);
    socket?.on('close', () => clearInterval(drip));
  },
  'drips the body of its 503': (response) => {
    response.writeHead(503);
    const drip = setInterval(() => response.write('.'), 10);
    response.on('close', () => clearInterval(drip));
  },
  'resets the connection': (response) => response.socket?.resetAndDestroy(),
  'closes the connection': (response) => response.socket?.end(),
  'answers with a redirect': (response) => response.writeHead(308, { location: 'http://127.0.0.1:1/' }).end(),
  'answers 500 with a body without end': (response) => {
    response.writeHead(500);
    const pump = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    };
    response.on('drain', pump);
    pump();
  },
  'is no HTTP': (response) => response.socket?.end('SSH-2.0-OpenSSH_9.9\r\n'),
};

describe('a receiver that', () => {
  test.each(Object.entries(FAULTS))('%s at first gets everything in order when it works', async (_, fault) => {
    let faults = 7;
    const taken: Received[] = [];
    const receiver = await startReceiver(world, (response, received) => {
      if (faults-- > 0) return fault(response);
      taken.push(received);
      return response.writeHead(204).end();
    });
    const endpoint = await world.addEndpoint(receiver.url);
    const events = await addEvents(endpoint, { invoices: 3, each: 3 });
    world.startDispatcher({ attemptTimeoutMs: 150 });
    await world.liveOnUntil(areDelivered);
    expectInOrder(endpoint, events, receiver.received, taken);
  });

  test('drips or never ends the body of its 200 has taken the event', async () => {
    let number = 0;
    const receiver = await startReceiver(world, (response) => {
      response.writeHead(200);
      const write = () => response.write('x'.repeat(number++ % 2 === 0 ? 1 : 65_536));
      const drip = setInterval(write, 10);
      response.on('close', () => clearInterval(drip));
    });
    const endpoint = await world.addEndpoint(receiver.url);
    const events = await addEvents(endpoint, { invoices: 4, each: 1 });
    world.startDispatcher();
    await eventually(async () => expect(await areDelivered()).toBe(true));
    expectInOrder(endpoint, events, receiver.received, receiver.received);
    expect(receiver.received).toHaveLength(4);
    expect(await world.sql('select max(char_length(answer)) <= 8192 as is_short from delivery_attempts')).toEqual([
      { is_short: true },
    ]);
  });

  test('fails now and then gets everything in order from two dispatchers', async () => {
    let number = 0;
    const taken: Received[] = [];
    const receiver = await startReceiver(world, (response, received) => {
      if (number++ % 3 === 1) return response.writeHead(502).end();
      taken.push(received);
      return response.writeHead(200).end();
    });
    const endpoint = await world.addEndpoint(receiver.url);
    const events = await addEvents(endpoint, { invoices: 8, each: 3 });
    world.startDispatcher();
    world.startDispatcher();
    await world.liveOnUntil(areDelivered);
    expectInOrder(endpoint, events, receiver.received, taken);
    expect(taken).toHaveLength(events.length);
  });

  test('is down for three days gets everything when it is back, in order but for what waits for a retry of its own', async () => {
    let isDown = true;
    const taken: Received[] = [];
    const receiver = await startReceiver(world, (response, received) => {
      if (isDown) return response.writeHead(503).end();
      taken.push(received);
      return response.writeHead(204).end();
    });
    const endpoint = await world.addEndpoint(receiver.url);
    const events = await addEvents(endpoint, { invoices: 30, each: 2 });
    const { metrics, stop } = world.startDispatcher();
    for (let hours = 0; hours < 72; hours += 12) {
      const before = await attemptsMade(metrics);
      await world.liveOnUntil(async () => (await attemptsMade(metrics)) > before);
      await world.untilNothingIsUnderWay();
      if (hours === 60) await stop(); // Sends nothing more while the results are checked.
      world.clock.advance(12 * HOUR_MS);
    }
    events.push(...(await addEvents(endpoint, { invoices: 2, each: 2 })));
    const attempted = await world.sql(
      'select distinct invoice_id from deliveries where attempt_count > 0 and next_attempt_at > $1',
      [new Date(world.clock.now())],
    );
    expect(attempted.length).toBeLessThan(20);
    isDown = false;
    world.startDispatcher();
    await world.liveOnUntil(areDelivered);
    expect(new Set(taken.map(({ id }) => id)).size).toBe(events.length);
    expect(taken).toHaveLength(events.length);
    const waited = new Set(attempted.map((row) => row['invoice_id']));
    const ordered = events.filter(({ invoice }) => !waited.has(invoice));
    const ids = new Set(ordered.map(({ wireId }) => wireId));
    const takenInOrder = taken.filter(({ id }) => ids.has(id));
    expectInOrder(endpoint, ordered, takenInOrder, takenInOrder);
  });
});

test('a dispatcher that is killed between the send and its record is replaced: the duplicate has the same id and bytes', async () => {
  let kill = () => {};
  const receiver = await startReceiver(world, (response) => {
    if (receiver.received.length === 1) kill();
    else response.writeHead(204).end();
  });
  const endpoint = await world.addEndpoint(receiver.url);
  const event = await world.addEvent([endpoint]);
  const child = forkDispatcher(world);
  const ended = once(child, 'exit');
  kill = () => child.kill('SIGKILL');
  try {
    await ended;
  } finally {
    kill();
  }
  expect(await world.delivery(event)).toMatchObject({ status: 'pending', attempt_count: 1 });
  world.clock.moveTo(new Date(Date.now() + LEASE_MS));
  world.startDispatcher();
  await eventually(async () =>
    expect(await world.delivery(event)).toMatchObject({ status: 'delivered', attempt_count: 2 }),
  );
  const [first, second] = receiver.received as [Received, Received];
  expect(second.id).toBe(first.id);
  expect(second.body.equals(first.body)).toBe(true);
  for (const received of [first, second]) expect(() => judge(world, endpoint.secret, received)).not.toThrow();
});

test('a database that is gone for a minute, from the send on, loses nothing and makes nothing come twice', async () => {
  const link = await startDatabaseLink(world.connection);
  world.onEnd(() => void link.stop());
  const receiver = await startReceiver(world, (response) => {
    if (receiver.received.length === 1) link.setMode('refuse');
    response.writeHead(204).end();
  });
  const endpoint = await world.addEndpoint(receiver.url);
  const events = await addEvents(endpoint, { invoices: 3, each: 2 });
  const { lines } = world.startDispatcher({ db: world.openDatabase(link.connection) });
  await eventually(() => expect(lines.join('')).toContain('could not be recorded'));
  world.clock.advance(60_000);
  link.setMode('open');
  await world.liveOnUntil(areDelivered);
  expectInOrder(endpoint, events, receiver.received, receiver.received);
  expect(receiver.received).toHaveLength(events.length);
});
