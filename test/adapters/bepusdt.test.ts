import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { eventually, payExactly, startTestService, type TestService } from '../support/service.ts';
import {
  addTestAdapter,
  orderAtEpusdt,
  SECRET,
  type ShopAdapter,
  send,
  shopFor,
  signAsShop,
  startShop,
} from './fixture.ts';

let service: TestService;
let adapter: ShopAdapter;
let other: Awaited<ReturnType<typeof startShop>>;
beforeAll(async () => {
  service = await startTestService();
  adapter = await addTestAdapter(service, 'bepusdt');
  other = await startShop('ok');
  SHOP.url = other.url;
});
afterAll(async () => {
  await service.stop();
  await other.stop();
});

const post = (path: string, fields: object) =>
  send(`${adapter.url}/api/v1/order/${path}`, { body: JSON.stringify(fields) });
const create = async (shop: { url: string }, fields: object = {}, path = 'create-transaction') =>
  (await post(path, orderAtEpusdt(shop, { redirect_url: 'https://shop.example/back', ...fields }))).body;
const check = async (tradeId: string) => (await send(`${adapter.url}/pay/check-status/${tradeId}`)).body;
const cancel = async (trade_id: string, secret = SECRET) =>
  post('cancel-transaction', { trade_id, signature: signAsShop({ trade_id }, secret) });
/** A shop whose callbacks no test checks. */
const SHOP = { url: '' };

/** Makes blocks up to the end of an order, because orders expire by the chain's clock. */
async function expire(tradeId: string): Promise<void> {
  const [row] = await runSql(service, 'select expires_at from invoices where id = $1', [decodeId('inv', tradeId)]);
  const ends = Number(row?.['expires_at']);
  service.clock.advance(Math.max(0, ends - service.clock.now()) + 3000);
  service.devnet.mine(1, { timestampMs: Math.ceil(ends / 3000) * 3000 + 3000 });
  service.devnet.mineUntilSolid();
}

test('an order is answered in the shape of BEpusdt: amounts as texts, and the seconds that are left', async () => {
  const body = await create(SHOP, { amount: 100.5, fiat: 'CNY', trade_type: 'usdt.trc20', name: 'VIP', timeout: 1200 });
  expect(body).toMatchObject({ status_code: 200, message: 'success' });
  const { data } = body;
  expect(data).toEqual({
    ...{
      fiat: 'CNY',
      trade_type: 'usdt.trc20',
      trade_id: expect.stringMatching(/^inv_/),
      order_id: expect.any(String),
    },
    ...{ status: 1, amount: '100.5', actual_amount: expect.stringMatching(/^13\.96\d*$/) },
    ...{ token: service.project.addresses[0], payment_url: expect.stringContaining('/c/') },
    expiration_time: expect.any(Number),
  });
  expect(data.expiration_time).toBeGreaterThan(1100);
  expect(data.expiration_time).toBeLessThanOrEqual(1200);
});

test.each([
  [0, 1800],
  [60, 1800],
  [299, 1800],
  [300, 300],
  [1800, 1800],
  [1801, 1800],
  [999_999_999, 1800],
])('a timeout of %i s makes an order that waits for %i s', async (timeout, seconds) => {
  const { data } = await create(SHOP, { timeout });
  expect(data.expiration_time).toBeGreaterThan(seconds - 30);
  expect(data.expiration_time).toBeLessThanOrEqual(seconds);
});

test.each(['-1', '1e3', '10m', '1.5'])('a timeout of %s is refused by its name', async (timeout) => {
  expect(await create(SHOP, { timeout })).toMatchObject({
    ...{ status_code: 400, data: null, message: expect.stringContaining(`timeout is "${timeout}"`) },
  });
});

test('an order for the cashier has no coin to choose, and the same order is the same trade by both routes', async () => {
  const order = { order_id: 'both', amount: 72, reselect: true };
  const { data } = await create(SHOP, order, 'create-order');
  expect(data).toEqual({
    ...{ fiat: 'CNY', trade_id: expect.any(String), order_id: 'both', status: 1, amount: '72', reselect: false },
    ...{ expiration_time: expect.any(Number), payment_url: expect.stringContaining('/c/') },
  });
  const again = await create(SHOP, { order_id: 'both', amount: 72 });
  expect(again.data.trade_id).toBe(data.trade_id);
});

test('the status is flat; the way back and the transaction are there when it is paid, and the shop is notified', async () => {
  const shop = await shopFor('ok');
  const { data } = await create(shop, { amount: 50 });
  const { trade_id } = data;
  expect(await check(trade_id)).toEqual({ trade_id, trade_hash: '', status: 1, return_url: '' });
  await payExactly(service, trade_id);
  service.devnet.mine();
  await eventually(
    () => check(trade_id),
    ({ status }) => status === 5,
  );
  service.devnet.mineUntilSolid();
  await eventually(
    () => shop.told.length,
    (count) => count === 1,
  );
  const paid = await check(trade_id);
  const hash = expect.stringMatching(/^[0-9a-f]{64}$/);
  expect(paid).toEqual({ trade_id, trade_hash: hash, status: 2, return_url: 'https://shop.example/back' });
  const { signature, ...told } = shop.told[0]?.body ?? {};
  expect(told).toEqual({
    ...{ trade_id, order_id: data.order_id, amount: 50, actual_amount: data.actual_amount, token: data.token },
    ...{ block_transaction_id: paid.trade_hash, status: 2 },
  });
  expect(signature).toBe(signAsShop(told, SECRET));
  const after = await cancel(trade_id);
  expect(after).toMatchObject({ status: 200, body: { status_code: 400, message: expect.stringContaining('paid') } });
});

test('an order whose time is up is notified with status 3, for which any 2xx does; a late payment follows with status 2', async () => {
  const shop = await shopFor('<html>thanks</html>', 'ok');
  const { data } = await create(shop, { amount: 51 });
  await expire(data.trade_id);
  await eventually(
    () => shop.told.length,
    (count) => count === 1,
  );
  const { signature, ...told } = shop.told[0]?.body ?? {};
  expect(told).toMatchObject({ trade_id: data.trade_id, order_id: data.order_id, status: 3, block_transaction_id: '' });
  expect(signature).toBe(signAsShop(told, SECRET));
  expect((await check(data.trade_id)).status).toBe(3);
  const states = () =>
    runSql(service, 'select status, attempt_count from deliveries where invoice_id = $1 and endpoint_id = $2', [
      ...[decodeId('inv', data.trade_id), adapter.id],
    ]);
  const delivered = { status: 'delivered', attempt_count: 1 };
  expect(await eventually(states, ([row]) => row?.['status'] === 'delivered')).toEqual([delivered]);
  await payExactly(service, data.trade_id);
  service.devnet.mine();
  service.devnet.mineUntilSolid();
  await eventually(
    () => shop.told.length,
    (count) => count === 2,
  );
  expect(shop.told[1]?.body).toMatchObject({ trade_id: data.trade_id, status: 2 });
});

test('a shop that refused status 3 for an hour is not told of it after status 2', async () => {
  const shop = await shopFor();
  let isBroken = true;
  shop.answer = ({ body }) => (isBroken && body?.status === 3 ? 500 : 'ok');
  const { data } = await create(shop, { amount: 57 });
  await expire(data.trade_id);
  const told = () => shop.told.map(({ body }) => body?.status);
  await eventually(told, ([first]) => first === 3);
  await payExactly(service, data.trade_id);
  service.devnet.mine();
  service.devnet.mineUntilSolid();
  const after = async (ms: number) => {
    service.clock.advance(ms);
    await runSql(service, 'notify quittance_deliveries');
  };
  const rows = () =>
    runSql(
      service,
      `select d.status, d.attempt_count > count(a.attempt) as is_under_way
       from deliveries d left join delivery_attempts a using (event_id, endpoint_id)
       where d.invoice_id = $1 and d.endpoint_id = $2 group by d.event_id, d.endpoint_id order by d.sequence`,
      [decodeId('inv', data.trade_id), adapter.id],
    );
  await eventually(rows, ({ length }) => length === 2);
  // By then, the payment no longer waits for the callback before it.
  await after(61 * 60_000);
  // Quittance may also send status 3 once more.
  await eventually(rows, ([expired, paid]) => paid?.['status'] === 'delivered' && expired?.['is_under_way'] === false);
  const before = told();
  isBroken = false;
  await after(12 * 3_600_000);
  await eventually(rows, (deliveries) => deliveries.every(({ status }) => status === 'delivered'));
  expect(told()).toEqual(before);
  // Both may have been attempted at once.
  await runSql(
    service,
    `update delivery_attempts set attempted_at = attempted_at + interval '1 day' where status is null`,
  );
  const env = { DATABASE_URL: service.connectionString };
  const listed = await runCli(['webhook', 'list', '--project', service.project.projectId], { env });
  expect(listed.stdout).toContain(', not sent');
});

test('an order of epusdt whose time is up is notified to nobody: its plugins take every callback for a payment', async () => {
  const shop = await shopFor('ok');
  const epusdt = await addTestAdapter(service, 'epusdt');
  const order = orderAtEpusdt(shop, { amount: 52 });
  const { data } = (await send(`${epusdt.url}/api/v1/order/create-transaction`, { body: JSON.stringify(order) })).body;
  await expire(data.trade_id);
  const status = async () => (await send(`${epusdt.url}/pay/check-status/${data.trade_id}`)).body.data.status;
  await eventually(status, (said) => said === 3);
  expect(await runSql(service, 'select from deliveries where endpoint_id = $1', [epusdt.id])).toEqual([]);
});

describe('a cancelled order', () => {
  test('has a page without address and amount, is 4, may be cancelled again, and still pays', async () => {
    const shop = await shopFor('ok');
    const { data } = await create(shop, { amount: 53 });
    const { trade_id } = data;
    expect(await (await fetch(data.payment_url)).text()).toContain(data.token);
    for (let time = 0; time < 2; time += 1) {
      expect((await cancel(trade_id)).body).toMatchObject({ status_code: 200, message: 'success', data: { trade_id } });
    }
    expect(await (await fetch(data.payment_url)).text()).not.toContain(data.token);
    expect(await check(trade_id)).toMatchObject({ status: 4, return_url: '' });
    await payExactly(service, trade_id);
    service.devnet.mine();
    service.devnet.mineUntilSolid();
    await eventually(
      () => shop.told.length,
      (count) => count === 1,
    );
    expect(shop.told[0]?.body).toMatchObject({ trade_id, status: 2 });
    expect((await check(trade_id)).status).toBe(2);
    // The shop didn't see the answer to its first request.
    expect((await cancel(trade_id)).body).toMatchObject({ status_code: 400, message: expect.stringContaining('paid') });
  });

  test('is not one whose payment is being confirmed, of another adapter, unknown, or cancelled with a wrong signature', async () => {
    const { data } = await create(SHOP, { amount: 54 });
    await payExactly(service, data.trade_id);
    service.devnet.mine();
    await eventually(
      () => check(data.trade_id),
      ({ status }) => status === 5,
    );
    expect((await cancel(data.trade_id)).body).toMatchObject({
      status_code: 400,
      message: expect.stringContaining('confirmed'),
    });
    service.devnet.mineUntilSolid();
    const epusdt = await addTestAdapter(service, 'epay');
    const waiting = (await create(SHOP, { amount: 55 })).data.trade_id;
    for (const unknown of ['inv_x', '', `${waiting}x`]) {
      expect((await cancel(unknown)).body).toMatchObject({ status_code: 400, message: 'order does not exist' });
    }
    expect((await cancel(waiting, `${SECRET}x`)).status).toBe(404);
    const elsewhere = { trade_id: waiting, signature: signAsShop({ trade_id: waiting }, SECRET) };
    const reply = await send(`${epusdt.url}/api/v1/order/cancel-transaction`, { body: JSON.stringify(elsewhere) });
    expect(reply.status).toBe(404);
    expect((await check(waiting)).status).toBe(1);
  });

  test('is cancelled by no signature that was made for something else', async () => {
    const shop = await shopFor('ok');
    const { data } = await create(shop, { amount: 56 });
    await expire(data.trade_id);
    await eventually(
      () => shop.told.length,
      (count) => count === 1,
    );
    // Callbacks are signed with the same secret as requests.
    const replayed = await post('cancel-transaction', shop.told[0]?.body);
    expect(replayed.body).toMatchObject({ status_code: 400, message: expect.stringMatching(/"\w+" is not a field/) });
    expect((await check(data.trade_id)).status).toBe(3);
  });
});

test('a payment of the successor is told in the form of EPay where its order asks for that', async () => {
  const shop = await shopFor('success');
  const epusdt = await addTestAdapter(service, 'epusdt');
  const order = orderAtEpusdt(shop, { pid: 1000, currency: 'cny', amount: 72, payment_type: 'Epay', name: 'VIP' });
  const { data } = (
    await send(`${epusdt.url}/payments/gmpay/v1/order/create-transaction`, { body: JSON.stringify(order) })
  ).body;
  expect(data).toMatchObject({ token: 'USDT', status: 1 });
  await payExactly(service, data.trade_id);
  service.devnet.mine();
  service.devnet.mineUntilSolid();
  await eventually(
    () => shop.told.length,
    (count) => count === 1,
  );
  const fields = Object.fromEntries(shop.told[0]?.query ?? []);
  expect(shop.told[0]?.method).toBe('GET');
  expect(fields).toEqual({
    ...{ pid: '1000', trade_no: data.trade_id, out_trade_no: order.order_id, type: 'usdt', name: 'VIP', money: '72' },
    ...{ trade_status: 'TRADE_SUCCESS', sign: signAsShop(fields, SECRET), sign_type: 'MD5' },
  });
});
