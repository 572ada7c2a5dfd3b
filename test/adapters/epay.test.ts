import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { runSql } from '../contract/sql.ts';
import { eventually, payExactly, startTestService, type TestService } from '../support/service.ts';
import { addTestAdapter, orderAtEpay, SECRET, type ShopAdapter, send, signAsShop, startShop } from './fixture.ts';

let service: TestService;
let adapter: ShopAdapter;
beforeAll(async () => {
  service = await startTestService();
  adapter = await addTestAdapter(service, 'epay');
});
afterAll(() => service.stop());

const FORM = 'application/x-www-form-urlencoded';
const SHOP = { url: 'http://127.0.0.1:1' };
const query = (fields: Record<string, string>) => new URLSearchParams(fields).toString();
const orderOf = (fields: Record<string, string>) =>
  send(`${adapter.url}/api.php?${query({ act: 'order', ...fields })}`);

test('a browser is sent to our page, and the shop is told by a signed GET until it says success', async () => {
  const shop = await startShop('fail', 'success');
  onTestFinished(() => shop.stop());
  const order = orderAtEpay(shop, { param: 'a b&c', return_url: 'https://shop.example/back?order={invoiceId}' });
  const { status, location } = await send(`${adapter.url}/submit.php?${query(order)}`);
  expect(status).toBe(302);
  expect(location).toMatch(`${service.url}/c/`);
  // The payer's URL isn't signed, so no text of the shop is filled in.
  expect(await (await fetch(location ?? '')).text()).toContain(
    'href="https://shop.example/back?order=%7BinvoiceId%7D"',
  );
  const posted = await send(`${adapter.url}/submit.php`, { body: query(order), type: FORM });
  const asked = await send(`${adapter.url}/mapi.php`, { body: query(order), type: FORM });
  expect(posted.location).toBe(location);
  expect(asked.body).toEqual({ code: 1, msg: 'success', trade_no: expect.stringMatching(/^inv_/), payurl: location });
  const { trade_no } = asked.body;

  const waiting = await orderOf({ pid: '1000', key: SECRET, out_trade_no: order['out_trade_no'] ?? '' });
  expect(waiting.body).toMatchObject({
    ...{ code: 1, trade_no, out_trade_no: order['out_trade_no'], pid: '1000', type: 'usdt', money: '72.00', status: 0 },
    ...{ name: 'VIP 月卡', param: 'a b&c', api_trade_no: null, endtime: null },
  });
  await payExactly(service, trade_no);
  service.devnet.mine();
  service.devnet.mineUntilSolid();
  await eventually(
    () => {
      if (shop.told.length > 0) service.clock.advance(10_000);
      return shop.told.length;
    },
    (count) => count >= 2,
  );
  for (const { method, text, query } of shop.told) {
    expect([method, text]).toEqual(['GET', '']);
    const { gate, ...fields } = Object.fromEntries(query);
    expect(gate).toBe('1');
    expect(fields).toEqual({
      ...{ pid: '1000', trade_no, out_trade_no: order['out_trade_no'], type: 'usdt', name: 'VIP 月卡', money: '72.00' },
      ...{ trade_status: 'TRADE_SUCCESS', param: 'a b&c', sign: signAsShop(fields, SECRET), sign_type: 'MD5' },
    });
  }
  const paid = await orderOf({ pid: '1000', key: SECRET, trade_no });
  expect(paid.body).toMatchObject({ code: 1, status: 1, api_trade_no: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(paid.body.endtime).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
});

const signed = (fields: Record<string, string> = {}, secret = SECRET) => query(orderAtEpay(SHOP, fields, secret));
const REFUSED: [string, () => string][] = [
  ['a wrong signature', () => signed({ sign: 'f'.repeat(32) })],
  ['a signature by another secret', () => signed({}, `${SECRET}x`)],
  ['another number of the shop', () => signed({ pid: '1001' })],
  ['money that was changed', () => signed().replace('72.00', '0.72')],
  ['a field more', () => `${signed()}&currency=USD`],
];

test.each(REFUSED)('%s is the answer of an adapter that is not there', async (_name, make) => {
  const gone = `${service.url}/adapters/whe_01m7xzqp8rffr96znjtmbas0az`;
  for (const path of ['submit.php', 'mapi.php']) {
    const [reply, none] = [await send(`${adapter.url}/${path}?${make()}`), await send(`${gone}/${path}?${make()}`)];
    expect(reply).toEqual(none);
    expect(reply.status).toBe(404);
    expect(reply.location).toBeUndefined();
  }
});

test.each([
  ['a field that comes twice', () => `${signed()}&money=1`],
  ['a way of paying that is none of USDT', () => signed({ type: 'alipay' })],
  ['a private address to tell', () => signed({ notify_url: 'http://192.168.1.1/' })],
  ['a way back that runs a script', () => signed({ return_url: 'javascript:alert(1)' })],
  ['no money', () => signed({ money: '' })],
  ['money in scientific notation', () => signed({ money: '7e1' })],
  ['another currency', () => signed({ currency: 'USD' })],
])('%s is refused in their form', async (_name, make) => {
  const asked = await send(`${adapter.url}/mapi.php`, { body: make(), type: FORM });
  expect(asked).toMatchObject({ status: 200, body: { code: -1, msg: expect.any(String) } });
  const browser = await send(`${adapter.url}/submit.php?${make()}`);
  expect(browser).toMatchObject({ status: 400, location: undefined, text: `${asked.body.msg}\n` });
  // Splitting a form between query and body is refused too, even if the body repeats the field.
  expect((await send(`${adapter.url}/mapi.php?money=72.00`, { body: make(), type: FORM })).body.code).toBe(-1);
});

test('an order is shown to who has the secret, and nothing else is', async () => {
  const { trade_no } = (await send(`${adapter.url}/mapi.php?${signed()}`)).body;
  for (const fields of [
    { pid: '1000', key: `${SECRET}x`, trade_no },
    { pid: '1000', trade_no },
    { pid: '1001', key: SECRET, trade_no },
  ]) {
    expect(await orderOf(fields)).toMatchObject({ status: 404, body: { code: -1 } });
  }
  const right = { pid: '1000', key: SECRET };
  for (const fields of [{ trade_no: 'inv_x' }, { out_trade_no: 'none' }, {}, { act: 'query' }]) {
    expect(await orderOf({ ...right, ...fields } as Record<string, string>)).toMatchObject({
      status: 200,
      body: { code: -1 },
    });
  }
});

test('with seals required, an order that somebody changed in the database is told to nobody, nor its page shown', async () => {
  const strict = await startTestService({ config: { rowMacs: 'require' } });
  onTestFinished(() => strict.stop());
  const shop = await startShop('success');
  onTestFinished(() => shop.stop());
  const { id, url } = await addTestAdapter(strict, 'epay');
  const order = async () => (await send(`${url}/mapi.php`, { body: query(orderAtEpay(shop)), type: FORM })).body;
  const [changed, sound] = [await order(), await order()];
  const pay = (tradeNo: string) => payExactly(strict, tradeNo);
  await Promise.all([pay(changed.trade_no), pay(sound.trade_no)]);
  const uuid = decodeId('inv', changed.trade_no);
  await runSql(strict, 'alter table adapter_orders disable trigger user');
  await runSql(strict, `update adapter_orders set notify_url = notify_url || '&thief=1' where invoice_id = $1`, [uuid]);
  strict.devnet.mine();
  strict.devnet.mineUntilSolid();
  await eventually(
    () => shop.told.map(({ query }) => query.get('trade_no')),
    (told) => told.length === 1,
  );
  const waiting = () =>
    runSql(
      strict,
      `select status, attempt_count, next_attempt_at > now() as is_later from deliveries where endpoint_id = $1 and invoice_id = $2`,
      [id, uuid],
    );
  // A lease counts the attempt, and ends later too; what is held gets its attempt back.
  const isHeld = ([row]: Record<string, unknown>[]) => row?.['is_later'] === true && row['attempt_count'] === 0;
  expect(await eventually(waiting, isHeld)).toMatchObject([{ status: 'pending' }]);
  expect(shop.told.map(({ query }) => query.get('trade_no'))).toEqual([sound.trade_no]);
  expect((await send(changed.payurl)).status).toBe(503);
  expect((await send(sound.payurl)).status).toBe(200);
});
