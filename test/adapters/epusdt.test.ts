import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { runSql } from '../contract/sql.ts';
import { createTestProject, eventually, payExactly, startTestService, type TestService } from '../support/service.ts';
import { addTestAdapter, orderAtEpusdt, SECRET, type ShopAdapter, send, shopFor, signAsShop } from './fixture.ts';

let service: TestService;
let adapter: ShopAdapter;
beforeAll(async () => {
  service = await startTestService();
  adapter = await addTestAdapter(service, 'epusdt');
});
afterAll(() => service.stop());

const OLD = '/api/v1/order/create-transaction';
const NEW = '/payments/gmpay/v1/order/create-transaction';

const create = (order: object | string, { path = OLD, at = adapter } = {}) =>
  send(at.url + path, { body: typeof order === 'string' ? order : JSON.stringify(order) });

/** Moves the clock to each next attempt until the shop has been notified this often. */
async function untilTold({ told }: { told: unknown[] }, times: number) {
  await eventually(
    async () => {
      const [due] = await runSql(
        service,
        `select next_attempt_at as at from deliveries where status = 'pending' and attempt_count > 0
         and exists (select from delivery_attempts a where a.event_id = deliveries.event_id and a.endpoint_id = deliveries.endpoint_id
           and a.attempt = attempt_count) order by 1 limit 1`,
      );
      const at = due?.['at'];
      if (at instanceof Date && at.getTime() > service.clock.now())
        service.clock.advance(at.getTime() - service.clock.now());
      return told.length;
    },
    (count) => count >= times,
  );
}

test('an order becomes an invoice at the rate of the operator, and its callback comes until the shop says ok', async () => {
  const shop = await shopFor(500, 'fail', '<html>ok</html>', ' OK\r\n');
  const order = orderAtEpusdt(shop, { amount: 100.5, redirect_url: 'https://shop.example/thanks?order=1' });
  const { status, body } = await create(order);
  expect(status).toBe(200);
  expect(body).toMatchObject({ status_code: 200, message: 'success', request_id: expect.stringMatching(/^req_/) });
  const { data } = body;
  // 100.50 / 7.2 = 13.958…, rounded up to a cent; the payable amount's tail is added below that.
  expect(data).toMatchObject({ order_id: order.order_id, amount: 100.5, token: service.project.addresses[0] });
  expect(Math.floor(data.actual_amount * 100)).toBe(1396);
  expect(data.expiration_time).toBeGreaterThan(Date.now() / 1000);
  expect(data.payment_url).toMatch(`${service.url}/c/`);
  const page = await (await fetch(data.payment_url)).text();
  expect(page).toContain('href="https://shop.example/thanks?order=1"');

  expect((await send(`${adapter.url}/pay/check-status/${data.trade_id}`)).body.data).toEqual({
    ...{ trade_id: data.trade_id, status: 1 },
  });
  await payExactly(service, data.trade_id);
  service.devnet.mine();
  service.devnet.mineUntilSolid();
  await untilTold(shop, 4);
  expect(shop.told.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST', 'POST']);
  expect(new Set(shop.told.map(({ text }) => text)).size).toBe(1);
  const { signature, ...told } = shop.told[0]?.body ?? {};
  expect(told).toMatchObject({ trade_id: data.trade_id, order_id: order.order_id, amount: 100.5, token: data.token });
  expect(told).toMatchObject({ actual_amount: data.actual_amount, status: 2 });
  expect(told.block_transaction_id).toMatch(/^[0-9a-f]{64}$/);
  expect(signature).toBe(signAsShop(told, SECRET));
  expect((await send(`${adapter.url}/pay/check-status/${data.trade_id}`)).body.data.status).toBe(2);
  const outcomes = () =>
    runSql(service, `select status, attempt_count from deliveries where endpoint_id = $1`, [adapter.id]);
  expect(await eventually(outcomes, (rows) => rows[0]?.['status'] === 'delivered')).toEqual([
    { status: 'delivered', attempt_count: 4 },
  ]);
  const errors = await runSql(service, 'select error from delivery_attempts where endpoint_id = $1 order by attempt', [
    adapter.id,
  ]);
  expect(errors.map(({ error }) => String(error).split(':')[0])).toEqual([
    ...['http_500', 'not_acknowledged', 'not_acknowledged', 'null'],
  ]);
});

test('the successor is answered, and told, in its own form', async () => {
  const shop = await shopFor('success');
  const order = orderAtEpusdt(shop, { pid: 1000, currency: 'cny', token: 'usdt', network: 'tron', amount: '7.20' });
  const { status, body } = await create(order, { path: NEW });
  expect([status, body.status_code]).toEqual([200, 200]);
  expect(body.data).toMatchObject({ currency: 'CNY', token: 'USDT', status: 1, amount: 7.2 });
  expect(body.data.receive_address).toBe(service.project.addresses[0]);
  // Sent as a form, it's the same order.
  const form = new URLSearchParams(
    Object.entries(order).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  const type = 'application/x-www-form-urlencoded';
  expect((await send(adapter.url + NEW, { body: form, type })).body.data).toEqual(body.data);
  await payExactly(service, body.data.trade_id);
  service.devnet.mine();
  service.devnet.mineUntilSolid();
  await eventually(
    () => shop.told.length,
    (count) => count === 1,
  );
  const { signature, ...told } = shop.told[0]?.body ?? {};
  expect(told).toMatchObject({ pid: '1000', token: 'USDT', receive_address: body.data.receive_address, status: 2 });
  expect(signature).toBe(signAsShop(told, SECRET));
});

test('the same order is answered with the same invoice, also at another rate; a different one of the same id is refused', async () => {
  const shop = { url: 'http://127.0.0.1:1' };
  const order = orderAtEpusdt(shop, { amount: 50 });
  const first = await create(order);
  const again = await Promise.all(Array.from({ length: 8 }, () => create(order)));
  for (const { body } of again) expect(body.data).toEqual(first.body.data);
  await runSql(service, `update webhook_endpoints set rate_micro = 9000000, mac = null where id = $1`, [adapter.id]);
  try {
    expect((await create(order)).body.data).toEqual(first.body.data);
  } finally {
    await runSql(service, `update webhook_endpoints set rate_micro = 7200000 where id = $1`, [adapter.id]);
  }
  const same = { order_id: order.order_id };
  for (const other of [
    { ...same, amount: 51 },
    { ...same, amount: 50, notify_url: 'http://127.0.0.1:2/' },
  ]) {
    const refused = await create(orderAtEpusdt(shop, other));
    expect(refused).toMatchObject({ status: 200, body: { status_code: 10002, data: null } });
  }
});

test('an event of another order of the project is told to no shop of an adapter', async () => {
  const counted = () => runSql(service, 'select count(*)::int from deliveries where endpoint_id = $1', [adapter.id]);
  const before = await counted();
  const headers = {
    'x-api-key': service.project.apiKey,
    'idempotency-key': 'native',
    'content-type': 'application/json',
  };
  const body = JSON.stringify({ amount: '25.00', asset: 'USDT', network: 'TRON', externalId: 'native' });
  const { invoiceId } = (await (
    await fetch(`${service.url}/v1/invoices`, { method: 'POST', headers, body })
  ).json()) as {
    invoiceId: string;
  };
  await payExactly(service, invoiceId);
  service.devnet.mine();
  service.devnet.mineUntilSolid();
  await eventually(
    () => runSql(service, `select from events where type = 'invoice.paid' and body like $1`, [`%${invoiceId}%`]),
    (rows) => rows.length === 1,
  );
  expect(await counted()).toEqual(before);
  expect((await send(`${adapter.url}/pay/check-status/${invoiceId}`)).body.status_code).toBe(10008);
});

const SHOP = { url: 'http://127.0.0.1:1' };
const REFUSED: [string, number, () => object | string][] = [
  ['a wrong signature', 401, () => orderAtEpusdt(SHOP, { signature: '0'.repeat(32) })],
  ['no signature', 401, () => ({ ...orderAtEpusdt(SHOP), signature: undefined })],
  ['a signature by another secret', 401, () => orderAtEpusdt(SHOP, {}, `${SECRET}x`)],
  ['a field that was changed', 401, () => ({ ...orderAtEpusdt(SHOP), amount: 1 })],
  ['no JSON', 10009, () => 'amount=1'],
  ['an array', 10009, () => '[1]'],
  ['an object in it', 10009, () => '{"order_id":{"a":1}}'],
  ['a truth value', 10009, () => '{"order_id":true}'],
  ['a field that comes twice', 10009, () => '{"amount":1,"amount":2}'],
  ['the same name in two spellings', 10009, () => '{"amount":1,"amo\\u0075nt":2}'],
  ['something behind the object', 10009, () => '{"amount":1}{}'],
  ['half of a pair', 10009, () => '{"order_id":"\\ud800"}'],
  [
    'an amount with an exponent',
    10009,
    () => JSON.stringify(orderAtEpusdt(SHOP)).replace('"amount":100', '"amount":1e2'),
  ],
  ['too many fields', 10009, () => Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`f${i}`, 'x']))],
  ['no amount', 10004, () => orderAtEpusdt(SHOP, { amount: '' })],
  ['nothing to pay', 10004, () => orderAtEpusdt(SHOP, { amount: 0 })],
  ['a negative amount', 10004, () => orderAtEpusdt(SHOP, { amount: -5 })],
  ['more than any order', 10004, () => orderAtEpusdt(SHOP, { amount: '999999999999' })],
  ['more digits than PHP writes', 10004, () => orderAtEpusdt(SHOP, { amount: '1234567890.123456' })],
  ['other digits', 10004, () => orderAtEpusdt(SHOP, { amount: '１００' })],
  ['no order id', 10009, () => orderAtEpusdt(SHOP, { order_id: '' })],
  ['a long order id', 10009, () => orderAtEpusdt(SHOP, { order_id: 'x'.repeat(201) })],
  ['another coin', 10016, () => orderAtEpusdt(SHOP, { trade_type: 'tron.trx' })],
  ['another token', 10016, () => orderAtEpusdt(SHOP, { token: 'usdc' })],
  ['another network', 10016, () => orderAtEpusdt(SHOP, { network: 'ethereum' })],
  ['another currency', 10006, () => orderAtEpusdt(SHOP, { currency: 'USD' })],
  ['a rate of the shop', 10009, () => orderAtEpusdt(SHOP, { rate: '~0.5' })],
  ['an address of the shop', 10009, () => orderAtEpusdt(SHOP, { address: 'T1' })],
  ['a private address to tell', 10041, () => orderAtEpusdt(SHOP, { notify_url: 'http://10.0.0.1/' })],
  ['the metadata service', 10041, () => orderAtEpusdt(SHOP, { notify_url: 'http://169.254.169.254/latest' })],
  ['an odd spelling of a private address', 10041, () => orderAtEpusdt(SHOP, { notify_url: 'http://0xa9fea9fe/' })],
  ['credentials', 10041, () => orderAtEpusdt(SHOP, { notify_url: 'https://a:b@shop.example/' })],
  ['another scheme', 10041, () => orderAtEpusdt(SHOP, { notify_url: 'file:///etc/passwd' })],
  ['nowhere to tell', 10041, () => orderAtEpusdt(SHOP, { notify_url: '' })],
  ['a script as the way back', 10044, () => orderAtEpusdt(SHOP, { redirect_url: 'javascript:alert(1)' })],
];

test.each(REFUSED)('%s is refused in their form and uses up nothing', async (_name, code, make) => {
  const before = await runSql(service, 'select count(*)::int as n from invoices');
  const { status, body } = await create(make());
  expect(body).toMatchObject({ status_code: code, data: null, message: expect.any(String) });
  expect(status).toBe(code === 401 ? 404 : 200);
  expect(JSON.stringify(body)).not.toContain(SECRET);
  expect(await runSql(service, 'select count(*)::int as n from invoices')).toEqual(before);
});

test('with no exception for this machine, an order is told on public addresses over TLS only', async () => {
  const strict = await startTestService({ config: { webhooks: { localTargets: false, retentionDays: 90 } } });
  onTestFinished(() => strict.stop());
  const at = await addTestAdapter(strict, 'epusdt');
  for (const notify of [
    'http://127.0.0.1/',
    'https://localhost/',
    'https://[::1]/',
    'http://shop.example/',
    'https://2130706433/',
  ]) {
    const { body } = await create(orderAtEpusdt(SHOP, { notify_url: notify }), { at });
    expect(body.status_code, notify).toBe(10041);
  }
});

test('no adapter, one of another kind or project, one that is switched off, and a wrong signature are one answer', async () => {
  const other = await createTestProject(service.db);
  const off = await addTestAdapter(service, 'epusdt', other);
  const { data } = (await create(orderAtEpusdt(SHOP), { at: off })).body;
  const epay = await addTestAdapter(service, 'epay', other);
  await revokeApiKey(service.db, off.id, unixMs(Date.now()));
  const answers = [
    await create(orderAtEpusdt(SHOP), { at: off }),
    await create(orderAtEpusdt(SHOP), { at: epay }),
    await create(orderAtEpusdt(SHOP), {
      at: { ...off, url: `${service.url}/adapters/whe_01m7xzqp8rffr96znjtmbas0az` },
    }),
    await create(orderAtEpusdt(SHOP), { at: { ...off, url: `${service.url}/adapters/x%00` } }),
    await create(orderAtEpusdt(SHOP, {}, 'another secret')),
    await send(`${off.url}/pay/check-status/${data.trade_id}`),
  ];
  for (const { status, body } of answers) {
    expect(status).toBe(404);
    expect({ ...body, request_id: '' }).toEqual({ ...answers[0]?.body, request_id: '' });
  }
  expect(answers[0]?.body.status_code).toBe(401);
  // Its successor also requires the shop's number.
  expect((await create(orderAtEpusdt(SHOP, { pid: 1001 }), { path: NEW })).status).toBe(404);
  expect((await create(orderAtEpusdt(SHOP), { path: NEW })).status).toBe(404);
});
