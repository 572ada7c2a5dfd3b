import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { findOpenAlarms } from '../../src/core/store/chain/alarms.ts';
import { startReceiverWatch } from '../../src/core/webhooks/watch-endpoints.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { replayDeliveries } from '../../src/faces/operator/subjects/delivery-replay.ts';
import { disableEndpoint, enableEndpoint } from '../../src/faces/operator/subjects/webhook-sending.ts';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { eventually, payExactly, startTestService, type TestService } from '../support/service.ts';
import { longTest, someCases } from '../support/some-cases.ts';
import { addTestAdapter, orderAtEpay, orderAtEpusdt, type ShopAdapter, send, shopFor } from './fixture.ts';

const HOUR_MS = 3_600_000;
const ACTOR = commandActor('test');
let service: TestService;
let adapter: ShopAdapter;
beforeEach(async () => {
  service = await startTestService();
  adapter = await addTestAdapter(service, 'epusdt');
});
afterEach(() => service.stop());

const now = () => unixMs(service.clock.now());

/** Creates an order with this callback URL, and returns its invoice. */
async function order(shop: { url: string }, fields: Record<string, unknown> = {}): Promise<string> {
  const body = JSON.stringify(orderAtEpusdt(shop, fields));
  const reply = await send(`${adapter.url}/api/v1/order/create-transaction`, { body });
  expect(reply.body.status_code, reply.text).toBe(200);
  return reply.body.data.trade_id;
}

async function pay(...invoices: string[]) {
  for (const id of invoices) await payExactly(service, id);
  service.devnet.mine();
  service.devnet.mineUntilSolid();
}

/** Returns the adapter's callbacks, oldest first. */
const callbacks = () =>
  runSql(
    service,
    `select d.event_id, d.status, d.attempt_count, d.last_status, d.last_error, d.next_attempt_at, o.notify_url,
       (select count(*)::int from delivery_attempts a where a.event_id = d.event_id and a.endpoint_id = d.endpoint_id) as made,
       d.attempt_count > 0 and not exists (select from delivery_attempts a
         where a.event_id = d.event_id and a.endpoint_id = d.endpoint_id and a.attempt = d.attempt_count) as is_under_way
     from deliveries d join adapter_orders o on o.invoice_id = d.invoice_id where d.endpoint_id = $1 order by d.created_at, d.event_id`,
    [adapter.id],
  );
const endpoint = async () =>
  (
    await runSql(
      service,
      'select disabled_at, failing_since, consecutive_failures, open_until from webhook_endpoints where id = $1',
      [adapter.id],
    )
  )[0];
const HEALTHY = { disabled_at: null, failing_since: null, consecutive_failures: 0, open_until: null };

/** Whenever nothing is in progress, moves the clock to the next due callback, until each has had this many attempts. */
async function liveOn(isOver: () => Promise<boolean> | boolean) {
  await eventually(
    async () => {
      const rows = await callbacks();
      const waiting = rows.filter(({ status }) => status === 'pending');
      const isQuiet = waiting.every(({ is_under_way: busy }) => busy === false);
      const due = Math.min(...waiting.map(({ next_attempt_at: at }) => (at as Date).getTime()));
      if (isQuiet && waiting.length > 0 && due > now()) {
        service.clock.advance(due - now());
        await runSql(service, 'notify quittance_deliveries');
      }
      return isOver();
    },
    (over) => over,
  );
}

/** Advances the clock by this time, then stops it until something has happened. */
async function during(ms: number, happens: () => Promise<unknown>) {
  const goOn = service.clock.freeze();
  service.clock.advance(ms);
  await runSql(service, 'notify quittance_deliveries');
  await happens();
  goOn();
}

/** Advances the clock in steps, with the dispatcher looking at most of them. */
async function elapse(ms: number, stepMs: number) {
  for (let passed = 0; passed < ms; passed += stepMs) {
    service.clock.advance(stepMs);
    await runSql(service, 'notify quittance_deliveries');
    await eventually(callbacks, (rows) => rows.every(({ is_under_way: busy }) => busy === false));
    await delay(10);
  }
}

describe('what one order’s URL answers concerns that order alone', () => {
  test.each(
    someCases(
      [
        ['410 Gone', 410],
        ['a page that is not there', 404],
        ['an error', 500],
        ['another word', '{"code":0}'],
        ['an address where nobody listens', null],
      ],
      3,
    ),
  )('%s: the other shop is told within 10 s, again and again, and nothing is disabled', async (_, answer) => {
    const broken = answer === null ? { url: 'http://127.0.0.1:1' } : await shopFor(answer);
    const fine = await shopFor('ok');
    const first = await order(broken);
    await pay(first);
    await eventually(callbacks, ([row]) => Number(row?.['made']) > 0);
    await liveOn(async () => Number((await callbacks())[0]?.['made']) >= 6);
    for (let told = 1; told <= 2; told++) {
      await pay(await order(fine));
      await eventually(callbacks, ({ length }) => length === 1 + told);
      await during(10_000, () =>
        eventually(
          () => fine.told.length,
          (count) => count === told,
        ),
      );
    }
    const rows = await eventually(callbacks, (all) => all.filter(({ status }) => status === 'delivered').length === 2);
    expect(rows.find(({ notify_url: url }) => String(url).startsWith(broken.url))).toMatchObject({
      ...{ status: 'pending', last_status: typeof answer === 'number' ? answer : answer === null ? null : 200 },
      last_error: expect.any(String),
    });
    expect(await endpoint()).toEqual(HEALTHY);
    expect(await runSql(service, `select from events where type = 'endpoint.disabled'`)).toEqual([]);
  });

  test('URLs that hang hold up neither another URL of the adapter nor an order of another adapter', async () => {
    let hanging = 0;
    const server = createServer(() => {
      hanging += 1;
    });
    server.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    const fine = await shopFor('ok');
    const slow: string[] = [];
    for (let n = 0; n < 30; n++) slow.push(await order({ url: n % 3 === 0 ? `${url}/${n}` : url }));
    await pay(...slow);
    await eventually(
      () => hanging,
      (count) => count >= 20,
    );
    const epay = await addTestAdapter(service, 'epay');
    const fields = orderAtEpay(fine);
    const other = await send(`${epay.url}/mapi.php`, { body: new URLSearchParams(fields).toString(), type: FORM });
    await pay(await order(fine), other.body.trade_no);
    await eventually(
      () => fine.told.length,
      (count) => count === 2,
    );
  });
});

const FORM = 'application/x-www-form-urlencoded';

describe('a shop that answers, and not with its word,', () => {
  test.each(someCases(['{"code":0}', '', '<html>ok</html>'], 3))(
    'such as %j, is asked 12 times in at least 75 hours, also while it takes the callbacks of other orders',
    async (answer) => {
      const shop = await shopFor();
      shop.answer = ({ body }) => (body.order_id === 'refused' ? answer : 'ok');
      const asked = () => shop.told.filter(({ body }) => body.order_id === 'refused').length;
      const begun = now();
      await pay(await order(shop, { order_id: 'refused' }));
      await eventually(callbacks, ([row]) => Number(row?.['made']) > 0);
      await elapse(60_000, 2000);
      await pay(await order(shop));
      await eventually(callbacks, ([, other]) => other?.['status'] === 'delivered');
      await elapse(60_000, 2000);
      expect(asked()).toBeLessThanOrEqual(4);
      await liveOn(async () => (await callbacks())[0]?.['status'] === 'dead');
      expect(asked()).toBe(12);
      expect(now() - begun).toBeGreaterThanOrEqual(75 * HOUR_MS);
    },
  );
});

test.each(
  someCases(
    [
      ['nobody answered', 0],
      ['a proxy answered', 503],
    ],
    2,
  ),
)('a shop that was away for 20 minutes (%s) is told of all that waits soon after it is back', async (_, status) => {
  const shop = await shopFor();
  let isAway = true;
  shop.answer = () => (isAway ? status : 'ok');
  await pay(await order(shop), await order(shop));
  await eventually(callbacks, (rows) => rows.length === 2 && rows.every(({ made }) => Number(made) >= 1));
  await elapse(20 * 60_000, 60_000);
  isAway = false;
  // A twentieth of them.
  await during(70_000, () => eventually(callbacks, (rows) => rows.every(({ status: each }) => each === 'delivered')));
  expect(await endpoint()).toEqual(HEALTHY);
});

describe('while its callbacks are off', () => {
  const off = () =>
    disableEndpoint.run({ db: service.db, now }, ACTOR, { endpointId: encodeId('whe', adapter.id), reason: 'a test' });
  const on = () => enableEndpoint.run({ db: service.db, now }, ACTOR, { endpointId: encodeId('whe', adapter.id) });

  test('an adapter takes no order, answers those that it has, and tells what was paid meanwhile once they are on', async () => {
    const shop = await shopFor('ok');
    const known = orderAtEpusdt(shop);
    const path = `${adapter.url}/api/v1/order/create-transaction`;
    const made = await send(path, { body: JSON.stringify(known) });
    await off();
    const refused = await send(path, { body: JSON.stringify(orderAtEpusdt(shop)) });
    expect(refused.body).toMatchObject({ status_code: 400, data: null, message: /callbacks are disabled/ });
    expect(refused.body.message).toContain('webhook enable');
    expect((await send(path, { body: JSON.stringify(known) })).body.data).toEqual(made.body.data);
    expect(await runSql(service, 'select from invoices')).toHaveLength(1);
    await pay(made.body.data.trade_id);
    await eventually(callbacks, (rows) => rows.length === 1);
    expect(shop.told).toHaveLength(0);
    expect(await on()).toMatchObject({ status: 'active', missed: 0 });
    await eventually(
      () => shop.told.length,
      (count) => count === 1,
    );
    expect((await send(path, { body: JSON.stringify(orderAtEpusdt(shop)) })).body.status_code).toBe(200);
  });

  longTest('enabling after an answer of 410 tells the others, and is not undone by it', async () => {
    const [gone, fine] = [await shopFor(410), await shopFor('ok')];
    await pay(await order(gone));
    await eventually(callbacks, ([row]) => Number(row?.['made']) === 1);
    const waiting = await order(fine);
    await off();
    await pay(waiting);
    await eventually(callbacks, (rows) => rows.length === 2);
    await on();
    await eventually(callbacks, ([a, b]) => Number(a?.['made']) >= 2 && b?.['status'] === 'delivered');
    expect(await endpoint()).toEqual(HEALTHY);
  });
});

test('a paid order that its shop does not take for 15 minutes is an alarm of its adapter, which names it and its answer', async () => {
  const [broken, fine] = [await shopFor(410, 410, 410, 410, 410, 'ok'), await shopFor('ok')];
  await pay(await order(broken), await order(fine));
  await eventually(callbacks, (rows) => rows.length === 2 && rows.every(({ made }) => Number(made) > 0));
  const log = createLogger({ level: 'silent' });
  const watch = startReceiverWatch({ db: service.db, now, log, checkMs: 10 });
  onTestFinished(() => watch.stop());
  const alarm = async () => (await findOpenAlarms(service.db, 'devnet')).find(({ kind }) => kind === 'webhook-failing');
  service.clock.advance(16 * 60_000);
  const { subject, detail } = (await eventually(alarm, (found) => found !== undefined)) ?? {};
  const [row] = (await callbacks()).filter(({ status }) => status === 'pending');
  expect(subject).toBe(encodeId('whe', adapter.id));
  expect(detail).toMatch(/^One paid order .*http_410/);
  expect(detail).toContain(encodeId('evt', String(row?.['event_id'])));
  await liveOn(async () => (await callbacks()).every(({ status }) => status === 'delivered'));
  await eventually(alarm, (found) => found === undefined);
});

/** Starts the watch, and returns the details of the open alarms about callbacks by their subjects. */
function watchCallbacks() {
  const log = createLogger({ level: 'silent' });
  const watch = startReceiverWatch({ db: service.db, now, log, checkMs: 10 });
  onTestFinished(() => watch.stop());
  return async () => {
    const open = (await findOpenAlarms(service.db, 'devnet')).filter(({ kind }) => kind === 'webhook-failing');
    return Object.fromEntries(open.map(({ subject, detail }) => [subject, detail]));
  };
}

test('a paid order that its shop was never told of is an alarm of its own after the last attempt, until it is sent again', async () => {
  const shop = await shopFor(500);
  await pay(await order(shop));
  await liveOn(async () => (await callbacks())[0]?.['status'] === 'dead');
  const open = watchCallbacks();
  const givenUp = `${encodeId('whe', adapter.id)} given up`;
  const detail = (await eventually(open, (found) => givenUp in found))[givenUp];
  expect(detail).toMatch(/^One paid order .*given up: .*http_500/);
  const [, command = ''] = detail?.split('run: quittance ') ?? [];
  const replayed = await runCli([...command.split(' '), '--dry-run', '--json'], {
    env: { DATABASE_URL: service.connectionString },
  });
  expect(replayed.json).toMatchObject({ found: { total: 1, dead: 1 } });
  shop.answer = () => 'ok';
  const eventIds = (await callbacks()).map(({ event_id: id }) => String(id));
  await replayDeliveries(service.db, { endpointId: adapter.id, eventIds, now: now() });
  await runSql(service, 'notify quittance_deliveries');
  await eventually(callbacks, ([row]) => row?.['status'] === 'delivered');
  await eventually(open, (found) => Object.keys(found).length === 0);
});

longTest(
  'a callback that can never succeed does not hide the next outage of its adapter, and is no alarm after seven days',
  async () => {
    const gone = await shopFor(500);
    await pay(await order(gone));
    await liveOn(async () => (await callbacks())[0]?.['status'] === 'dead');
    const open = watchCallbacks();
    const subject = encodeId('whe', adapter.id);
    await eventually(open, (found) => `${subject} given up` in found);
    await pay(await order(await shopFor(503)));
    await eventually(callbacks, ([, next]) => Number(next?.['made']) > 0);
    service.clock.advance(16 * 60_000);
    const both = await eventually(open, (found) => subject in found);
    expect(both).toHaveProperty([`${subject} given up`]);
    expect(both[subject]).toMatch(/^One paid order .*http_503/);
    service.clock.advance(7 * 24 * HOUR_MS);
    await eventually(open, (found) => !(`${subject} given up` in found));
  },
);

test('the callback of an expired order is no alarm', async () => {
  await pay(await order(await shopFor(500)));
  await eventually(callbacks, ([row]) => Number(row?.['made']) > 0);
  // A delivery to the other endpoint would make it healthy again.
  await eventually(
    () => runSql(service, `select from deliveries where endpoint_id <> $1 and status <> 'delivered'`, [adapter.id]),
    ({ length }) => length === 0,
  );
  // Only BEpusdt has such a callback.
  await runSql(service, 'alter table events disable trigger user');
  await runSql(service, `update events set type = 'invoice.expired' where type = 'invoice.paid'`);
  const open = watchCallbacks();
  service.clock.advance(16 * 60_000);
  await runSql(service, `update webhook_endpoints set failing_since = $1 where adapter is null`, [
    new Date(now() - HOUR_MS),
  ]);
  expect(Object.keys(await eventually(open, (found) => Object.keys(found).length > 0))).not.toContain(
    encodeId('whe', adapter.id),
  );
});
