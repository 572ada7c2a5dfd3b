import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { ATTEMPT_TIMEOUT_MS } from '../../src/core/webhooks/send.ts';
import { eventually, type Json } from '../support/service.ts';
import { runSql } from './sql.ts';
import type { Hit } from './webhook-receiver.ts';
import {
  command,
  confirmingInvoices,
  deliver,
  deliveriesOf,
  deliveryOf,
  endpointOf,
  feedOf,
  finish,
  hitsAt,
  judgeAll,
  keepUp,
  oneEvent,
  openShop,
  type Shop,
  startWorld,
  stopWorld,
  typesAt,
  untilAttempts,
  untilHits,
  type World,
} from './webhook-shop.ts';

const SECOND = 1000;
const HOUR = 3600 * SECOND;

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
beforeEach(() => keepUp(world.service));
// Deliveries left by a test succeed during a later one, and don't disturb it.
afterEach(() => world.receiver.answerWell());
afterAll(() => stopWorld(world));

const endpointState = async (shop: Shop, name: string): Promise<Json> =>
  (await command(world.service, ['webhook', 'list', '--project', shop.project.projectId])).data.find(
    ({ endpointId }: Json) => endpointId === endpointOf(shop, name).whe,
  );

describe('an answer', () => {
  const DELIVERED = ['200', '201', '202', '204', '206', '299', 'hints', 'huge'];
  const REDIRECTS = [300, 301, 302, 303, 304, 305, 306, 307, 308].map(String);
  const FAILED = [
    ...REDIRECTS,
    '400',
    '401',
    '403',
    '404',
    '429',
    '500',
    '502',
    '503',
    'hang',
    'drip',
    'reset',
    'garbage',
  ];
  let shop: Shop;
  let eventId: string;
  let outcome: Record<string, { hits: Hit[]; delivery: Json }>;

  test('of any kind is judged, and what failed is attempted again 5 to 6 s later', async () => {
    onTestFinished(world.service.clock.freeze());
    shop = await openShop(world, [...DELIVERED, ...FAILED]);
    const stolen = `http://127.0.0.1:${world.receiver.port}/stolen`;
    for (const [name, { path }] of shop.endpoints) {
      const drips: NodeJS.Timeout[] = [];
      world.receiver.answer(path, (response, nth) => {
        if (name === 'huge') response.writeHead(200).end(Buffer.alloc(4 << 20, 'x'));
        else if (name === 'hints') {
          response.writeProcessing();
          response.writeHead(200).end();
        } else if (DELIVERED.includes(name)) response.writeHead(Number(name)).end();
        else if (nth > 1) response.writeHead(204).end();
        else if (name === 'reset') response.socket?.resetAndDestroy();
        else if (name === 'garbage') response.socket?.end('SSH-2.0-OpenSSH_9.6\r\n');
        else if (name === 'drip') {
          response.socket?.write('HTTP/1.1 200 OK\r\nX-Drip: ');
          drips.push(setInterval(() => response.socket?.write('x'), 100));
          response.socket?.once('close', () => drips.forEach(clearInterval));
        } else if (name !== 'hang') response.writeHead(Number(name), { location: stolen }).end();
      });
    }
    const { clock } = deliver(world, { attemptTimeoutMs: 6_000 });
    ({ eventId } = await oneEvent(shop));
    const shown = (isDone: (delivery: Json) => boolean) =>
      eventually(
        async () => deliveriesOf(world, eventId),
        (deliveries) => deliveries.length === shop.endpoints.size && deliveries.every(isDone),
      );
    for (const { status, attempts, nextAttemptAt } of await shown(({ attempts }) => attempts.length > 0)) {
      if (status !== 'pending') continue;
      const waitMs = Date.parse(nextAttemptAt) - Date.parse(attempts[0].attemptedAt);
      expect(waitMs).toBeGreaterThanOrEqual(5 * SECOND);
      expect(waitMs).toBeLessThanOrEqual(6 * SECOND);
    }
    clock.advance(9 * SECOND);
    const deliveries = await shown(({ status }) => status !== 'pending');
    outcome = {};
    for (const [name, { whe }] of shop.endpoints) {
      outcome[name] = {
        hits: hitsAt(shop, name),
        delivery: deliveries.find(({ endpointId }) => endpointId === whe),
      };
    }
  });

  test.each(DELIVERED)('%s delivers: the event is not sent again', (name) => {
    expect(outcome[name]).toMatchObject({ hits: { length: 1 }, delivery: { status: 'delivered' } });
  });

  test.each(FAILED)('%s does not deliver: the event is sent again', (name) => {
    expect(outcome[name]).toMatchObject({ hits: { length: 2 }, delivery: { status: 'delivered' } });
    expect(outcome[name]?.delivery.attempts).toMatchObject([{ error: expect.any(String) }, { error: null }]);
  });

  test('that redirects is not followed', () => {
    expect(world.receiver.at('/stolen')).toEqual([]);
  });

  test('may take 15 seconds', () => {
    expect(ATTEMPT_TIMEOUT_MS).toBe(15 * SECOND);
  });

  test('does not change what is sent: every attempt and the feed have the same id and bytes, and each its own time', async () => {
    const { text } = await feedOf(shop);
    const hits = Object.values(outcome).flatMap((one) => one.hits);
    for (const { raw, headers } of hits) {
      expect(headers['webhook-id']).toBe(eventId);
      expect(raw.equals(hits[0]?.raw as Buffer)).toBe(true);
    }
    expect(text).toContain(`{"data":[${hits[0]?.raw.toString('utf8')}]`);
    for (const name of FAILED) {
      const [first, second] = (outcome[name]?.hits ?? []).map(({ headers }) => Number(headers['webhook-timestamp']));
      const attempts = outcome[name]?.delivery.attempts;
      expect(Math.abs(Date.parse(attempts[0].attemptedAt) / SECOND - (first ?? 0))).toBeLessThan(2);
      expect(Math.abs(Date.parse(attempts[1].attemptedAt) / SECOND - (second ?? 0))).toBeLessThan(2);
    }
  });
});

describe('Retry-After', () => {
  test('makes the pause longer, in seconds or as a date, never shorter, and up to a day', async () => {
    onTestFinished(world.service.clock.freeze());
    // Name → status, header (a number is a date that many milliseconds from now), and the least and most seconds until the next attempt.
    const cases: Record<string, [status: number, header: string | number, from: number, to: number]> = {
      seconds: [503, '3600', 3600, 3600],
      busy: [429, '120', 120, 120],
      elsewhere: [302, '120', 5, 120],
      date: [503, 2 * HOUR, 2 * 3600 - 1, 2 * 3600],
      short: [503, '1', 5, 6],
      zero: [503, '0', 5, 6],
      past: [503, -HOUR, 5, 6],
      negative: [503, '-600', 5, 6],
      nonsense: [503, 'soon', 5, 6],
      endless: [503, '99999999999999999999', 5, 24 * 3600],
      tooLong: [503, '172800', 24 * 3600, 24 * 3600],
      never: [503, 30 * 24 * HOUR, 24 * 3600, 24 * 3600],
    };
    const shop = await openShop(world, Object.keys(cases));
    for (const [name, [status, header]] of Object.entries(cases)) {
      world.receiver.answer(endpointOf(shop, name).path, (response) => {
        const value = typeof header === 'number' ? new Date(clock.now() + header).toUTCString() : header;
        response.writeHead(status, { 'retry-after': value }).end();
      });
    }
    const { clock } = deliver(world);
    const { eventId } = await oneEvent(shop);
    for (const [name, [, , from, to]] of Object.entries(cases)) {
      const { attempts, nextAttemptAt } = await untilAttempts(shop, name, eventId, 1);
      const waitSeconds = (Date.parse(nextAttemptAt) - Date.parse(attempts[0].attemptedAt)) / SECOND;
      expect(waitSeconds, name).toBeGreaterThanOrEqual(from);
      expect(waitSeconds, name).toBeLessThanOrEqual(to);
    }
  });
});

describe('the schedule', () => {
  const PAUSES = [5, 30, 120, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 108_000];

  test('has 12 attempts over at least 75 hours, no pause shorter than planned; then the delivery is dead, in the feed, and can be replayed', async () => {
    onTestFinished(world.service.clock.freeze());
    const shop = await openShop(world, ['one', 'many']);
    const { path } = endpointOf(shop, 'one');
    for (const name of shop.endpoints.keys()) {
      world.receiver.answer(endpointOf(shop, name).path, (response, nth) =>
        response.writeHead(nth > 12 ? 204 : 500).end(),
      );
    }
    const { clock } = deliver(world);
    const { eventId } = await oneEvent(shop);
    const begin = clock.now();
    let totalMs = 0;
    for (const [index, pause] of PAUSES.entries()) {
      let next = 0;
      for (const name of shop.endpoints.keys()) {
        const { attempts, status, nextAttemptAt } = await untilAttempts(shop, name, eventId, index + 1);
        expect(status).toBe('pending');
        const waitMs = Date.parse(nextAttemptAt) - Date.parse(attempts[index].attemptedAt);
        expect(waitMs).toBeGreaterThanOrEqual(pause * SECOND);
        expect(waitMs).toBeLessThanOrEqual(pause * 1.2 * SECOND);
        next = Math.max(next, Date.parse(nextAttemptAt));
        if (name === 'one') totalMs += waitMs;
      }
      // A receiver that keeps failing is left alone for up to 5 minutes longer.
      clock.moveTo(next + 5 * 60 * SECOND);
    }
    expect(totalMs).toBeGreaterThanOrEqual(75 * HOUR);
    for (const name of shop.endpoints.keys()) {
      const delivery = await untilAttempts(shop, name, eventId, 12);
      expect(delivery).toMatchObject({ status: 'dead', attempts: { length: 12 }, nextAttemptAt: null });
      expect(hitsAt(shop, name)).toHaveLength(12);
    }
    const dead = await command(world.service, [
      'deliveries',
      'list',
      '--project',
      shop.project.projectId,
      '--status',
      'dead',
    ]);
    expect(dead.data.map((delivery: Json) => delivery.eventId)).toEqual([eventId, eventId]);
    expect((await feedOf(shop)).events.map(({ id }) => id)).toEqual([eventId]);

    await command(world.service, ['deliveries', 'replay', eventId, '--endpoint', endpointOf(shop, 'one').whe]);
    const range = ['--from', new Date(begin - HOUR).toISOString(), '--to', new Date(begin + HOUR).toISOString()];
    await command(world.service, ['deliveries', 'replay', '--endpoint', endpointOf(shop, 'many').whe, ...range]);
    clock.advance(5 * 60 * SECOND);
    for (const name of shop.endpoints.keys()) {
      const [first, ...others] = await untilHits(shop, name, 13);
      for (const { raw, headers } of others) {
        expect(headers['webhook-id']).toBe(eventId);
        expect(raw.equals((first as Hit).raw)).toBe(true);
      }
      expect(await untilAttempts(shop, name, eventId, 13)).toMatchObject({ status: 'delivered' });
    }
    expect(world.receiver.at(path)).toHaveLength(13);
  });
});

describe('an endpoint is disabled', () => {
  test('by 410 at once: nothing more goes there, the other endpoint is told, and the feed has everything', async () => {
    const shop = await openShop(world, ['gone', 'other']);
    world.receiver.answer(endpointOf(shop, 'gone').path, (response) => response.writeHead(410).end());
    const { clock } = deliver(world);
    const { eventId, invoiceId } = await oneEvent(shop);
    const [, reported] = (await untilHits(shop, 'other', 2)) as [Hit, Hit];
    expect(reported.body).toMatchObject({
      type: 'endpoint.disabled',
      data: { endpointId: endpointOf(shop, 'gone').whe, reason: expect.stringContaining('410') },
    });
    const state = await endpointState(shop, 'gone');
    expect(state).toMatchObject({ status: 'disabled', disabledReason: expect.stringContaining('410') });
    clock.advance(100 * HOUR);
    await finish(shop, [invoiceId]);
    await untilHits(shop, 'other', 3);
    expect(typesAt(shop, 'other')).toEqual(['invoice.confirming', 'endpoint.disabled', 'invoice.paid']);
    expect(hitsAt(shop, 'gone').map(({ body }) => body.id)).toEqual([eventId]);
    const { text, events } = await feedOf(shop);
    expect(events.map(({ type }) => type)).toEqual(['invoice.confirming', 'endpoint.disabled', 'invoice.paid']);
    for (const { raw } of hitsAt(shop, 'other')) expect(text).toContain(raw.toString('utf8'));
  });

  test('also if no other is left to be told: the feed tells it', async () => {
    const shop = await openShop(world, ['gone']);
    world.receiver.answer(endpointOf(shop, 'gone').path, (response) => response.writeHead(410).end());
    deliver(world);
    await oneEvent(shop);
    const { events } = await eventually(
      () => feedOf(shop),
      (feed) => feed.events.length === 2,
    );
    expect(events[1]).toMatchObject({ type: 'endpoint.disabled', sequence: 1 });
    expect(await deliveriesOf(world, events[1].id)).toEqual([]);
  });

  test('by five days without one success and not before; the operator and the other endpoint are told', async () => {
    // The clock of the deliveries moves by days here, but the database's clock, which limits how long an endpoint may be paused, doesn't.
    const bound = (how: string) =>
      runSql(world.service, `alter table webhook_endpoints ${how} trigger webhook_endpoints_bound_pauses`);
    await bound('disable');
    onTestFinished(() => bound('enable').then(() => undefined));
    const shop = await openShop(world, ['failing', 'other']);
    world.receiver.answer(endpointOf(shop, 'failing').path, (response) => response.writeHead(500).end());
    const { clock } = deliver(world);
    const { eventId } = await oneEvent(shop);
    const { attempts } = await untilAttempts(shop, 'failing', eventId, 1);
    const begin = Date.parse(attempts[0].attemptedAt);
    const failAt = async (hours: number) => {
      clock.moveTo(begin + hours * HOUR);
      await eventually(
        () => untilAttempts(shop, 'failing', eventId, 1),
        ({ attempts }) => Date.parse(attempts.at(-1).attemptedAt) >= begin + hours * HOUR,
      );
    };
    // A longer time without an attempt would not count as failing.
    for (const hours of [30, 60, 90, 119]) {
      await failAt(hours);
      expect(await endpointState(shop, 'failing')).toMatchObject({ disabledAt: null });
    }
    await failAt(120.02);
    const [, reported] = (await untilHits(shop, 'other', 2)) as [Hit, Hit];
    expect(reported.body).toMatchObject({
      type: 'endpoint.disabled',
      data: { endpointId: endpointOf(shop, 'failing').whe, reason: expect.any(String) },
    });
    expect(await endpointState(shop, 'failing')).toMatchObject({ status: 'disabled' });
    const { alarms } = await command(world.service, ['chain', 'status']);
    expect(JSON.stringify(alarms)).toContain('webhook-disabled');
  });
});

describe('order', () => {
  test('within the first hour an event waits for an earlier one of its invoice at the same endpoint; then it does not', async () => {
    const shop = await openShop(world, ['failing', 'other']);
    const [x = '', y = ''] = await confirmingInvoices(shop, 2);
    await finish(shop, [x, y]);
    const stuck = (await feedOf(shop)).events.find(({ data }) => data.invoiceId === x).id;
    world.receiver.answer(endpointOf(shop, 'failing').path, (response, _nth, body) =>
      response.writeHead(body.id === stuck ? 500 : 204).end(),
    );
    const of = (name: string, invoiceId: string) =>
      hitsAt(shop, name).filter(({ body }) => body.data.invoiceId === invoiceId);
    const { clock } = deliver(world);
    const begin = clock.now();
    // Other invoices, and other endpoints, never wait.
    await eventually(
      () => [of('failing', y).length, of('other', x).length, of('other', y).length],
      (counts) => counts.every((count) => count === 2),
    );
    for (const hits of [of('failing', y), of('other', x), of('other', y)]) {
      expect(hits.map(({ body }) => body.sequence)).toEqual([1, 2]);
    }
    // At most 51 minutes have passed until the sixth attempt. One more may come early, when the endpoint receives another event.
    let made = 0;
    const untilNext = async () => {
      const { attempts, nextAttemptAt } = await eventually(
        () => deliveryOf(shop, 'failing', stuck),
        (delivery) => delivery.attempts.length > made && Date.parse(delivery.nextAttemptAt) > clock.now(),
      );
      made = attempts.length;
      expect(new Set(of('failing', x).map(({ body }) => body.sequence))).toEqual(new Set([1]));
      return Date.parse(nextAttemptAt);
    };
    for (let attempt = 1; attempt < 6; attempt++) clock.moveTo((await untilNext()) + 10);
    await untilNext();
    expect(made).toBeGreaterThanOrEqual(6);
    expect(made).toBeLessThanOrEqual(7);
    clock.moveTo(begin + HOUR + 60 * SECOND);
    await eventually(
      () => of('failing', x),
      (hits) => hits.some(({ body }) => body.sequence === 2),
    );
    expect(await deliveryOf(shop, 'failing', stuck)).toMatchObject({ status: 'pending' });
  });

  test('an endpoint that hangs delays no other one, and loses nothing', async () => {
    const shop = await openShop(world, ['hanging', 'other']);
    let isHanging = true;
    const waiting: (() => void)[] = [];
    world.receiver.answer(endpointOf(shop, 'hanging').path, (response) => {
      const end = () => response.writeHead(204).end();
      if (isHanging) waiting.push(end);
      else end();
    });
    deliver(world);
    await finish(shop, await confirmingInvoices(shop, 6));
    await untilHits(shop, 'other', 12);
    const { events } = await feedOf(shop);
    expect(events).toHaveLength(12);
    const answered = 'select from delivery_attempts where endpoint_id = $1';
    expect(await runSql(world.service, answered, [decodeId('whe', endpointOf(shop, 'hanging').whe)])).toEqual([]);
    isHanging = false;
    for (const end of waiting) end();
    const hits = await untilHits(shop, 'hanging', 12);
    expect(new Set(hits.map(({ body }) => body.id))).toEqual(new Set(events.map(({ id }) => id)));
  });
});

test('every delivery of this file verifies with the published package standardwebhooks, retries and replays too', async () => {
  const shop = await openShop(world, ['hook']);
  deliver(world);
  await oneEvent(shop);
  await untilHits(shop, 'hook', 1);
  judgeAll(world);
});
