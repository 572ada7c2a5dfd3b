import fc from 'fast-check';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startedField } from '../../src/core/webhooks/adapter-dialect.ts';
import { checkFields, FORMS } from '../../src/faces/adapters/fields.ts';
import { runSql } from '../contract/sql.ts';
import { eventually, payExactly, startTestService, type TestService } from '../support/service.ts';
import { addTestAdapter, orderAtEpay, orderAtEpusdt, type ShopAdapter, send, startShop } from './fixture.ts';

type Fields = Map<string, string>;

/** Returns EPay's signed text without the secret, implemented independently from its documents. */
function canonical(fields: Fields): string {
  return [...fields]
    .filter(([name, value]) => value !== '' && !/^sign(_type|ature)?$/.test(name))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

/** Returns all ways to read a text as fields: each `&` either begins another field or belongs to the value before it. */
function readings(text: string): Fields[] {
  const pieces = text.split('&');
  const found: Fields[] = [];
  for (let choice = 0; choice < 2 ** (pieces.length - 1); choice += 1) {
    const parts: string[] = [];
    for (const [index, piece] of pieces.entries()) {
      if (index > 0 && (choice & (1 << (index - 1))) === 0) parts[parts.length - 1] += `&${piece}`;
      else parts.push(piece);
    }
    if (!parts.every((part) => part.includes('='))) continue;
    const pairs = parts.map((part): [string, string] => [
      part.slice(0, part.indexOf('=')),
      part.slice(part.indexOf('=') + 1),
    ]);
    const fields = new Map(pairs);
    if (fields.size === pairs.length && canonical(fields) === text) found.push(fields);
  }
  return found;
}

const isTaken = (fields: Fields, form: keyof typeof FORMS = 'epay') => {
  try {
    checkFields(form, fields, { currency: 'CNY' });
    return true;
  } catch {
    return false;
  }
};

const NAMES = Object.keys(FORMS.epay);
const value = fc.constantFrom('x', '', '1000', 'https://evil.example/?a=b', 'BIG', '0.01', 'usdt', '=', 'a=b');
/** A payer's input: pieces that look like fields, known and unknown ones. */
const hostile = fc
  .array(fc.tuple(fc.constantFrom(...NAMES, 'ozz', 'zz', 'a', '', 'Z'), fc.constantFrom('=', '=', '=', ''), value), {
    maxLength: 4,
  })
  .map((parts) => `x${parts.map(([name, sign, text]) => `&${name}${sign}${text}`).join('')}`);
const controlled = fc.constantFrom('name', 'param', 'sitename', 'clientip', 'return_url');

const SHOP = { pid: '1000', type: 'usdt', notify_url: 'https://shop.example/n', out_trade_no: 'SMALL', money: '0.72' };

test('a payer who chooses a text of an order cannot read its signature into another order, amount, shop or URL', () => {
  let taken = 0;
  fc.assert(
    fc.property(controlled, hostile, (field, text) => {
      const signed = canonical(new Map(Object.entries({ ...SHOP, [field]: text })));
      const others = readings(signed).filter((fields) => isTaken(fields));
      expect(others.length).toBeLessThanOrEqual(1);
      taken += others.length;
      for (const fields of others) expect(Object.fromEntries(fields)).toMatchObject(SHOP);
    }),
    { numRuns: 1500 },
  );
  expect(taken).toBeGreaterThan(200);
});

test.each(Object.keys(FORMS) as (keyof typeof FORMS)[])(
  'the signed text of a %s that is taken splits into the fields that were signed',
  (form) => {
    const names = Object.keys(FORMS[form]).filter((name) => !/^sign/.test(name));
    const text = fc.oneof(
      fc.string({ maxLength: 12 }),
      fc.array(fc.constantFrom('&', '=', 'x', ...names), { maxLength: 6 }).map((parts) => parts.join('')),
    );
    let made = 0;
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), text), (order) => {
        const fields = new Map(Object.entries(order).filter(([, said]) => said !== ''));
        if (!isTaken(fields, form)) return;
        made += 1;
        const starts = new RegExp(`&(?=(?:${names.join('|')})=)`);
        const parsed = canonical(fields)
          .split(starts)
          .filter((part) => part !== '')
          .map((part): [string, string] => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)]);
        expect(new Map(parsed)).toEqual(new Map([...fields].sort()));
      }),
      { numRuns: 2000 },
    );
    expect(made).toBeGreaterThan(100);
  },
);

test('of texts that begin no field of any name, splitting at each name gives back what was signed', () => {
  const text = fc
    .array(fc.constantFrom('&', '=', 'a', 'money', 'R&D', ' '), { maxLength: 8 })
    .map((parts) => parts.join(''));
  let made = 0;
  fc.assert(
    fc.property(text, text, (name, param) => {
      if (startedField(name) !== null || startedField(param) !== null) return;
      made += 1;
      const fields = new Map([
        ['money', '1'],
        ['name', `x${name}`],
        ['param', `x${param}`],
        ['pid', '1000'],
      ]);
      const parsed = canonical(fields)
        .split(/&(?=[^&=]*=)/)
        .map((part) => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)] as const);
      expect(new Map(parsed)).toEqual(fields);
    }),
    { numRuns: 3000 },
  );
  expect(made).toBeGreaterThan(500);
});

let service: TestService;
let epay: ShopAdapter;
let epusdt: ShopAdapter;
let bepusdt: ShopAdapter;
beforeAll(async () => {
  service = await startTestService();
  epay = await addTestAdapter(service, 'epay');
  epusdt = await addTestAdapter(service, 'epusdt');
  bepusdt = await addTestAdapter(service, 'bepusdt');
});
afterAll(() => service.stop());

const query = (fields: Record<string, string>) => new URLSearchParams(fields).toString();

test('one signature of a shop makes neither the order that it signed nor the one that the payer reads into it', async () => {
  const name = 'x&notify_url=https://shop.example/n&out_trade_no=BIG&ozz=';
  const signed = orderAtEpay({ url: 'https://shop.example' }, { name, out_trade_no: 'SMALL', money: '0.72' });
  const { sign = '', ...shop } = signed;
  const text = canonical(new Map(Object.entries(shop)));
  const at = text.indexOf('ozz=') + 4;
  const sent = {
    money: '0.72',
    name: 'x',
    notify_url: 'https://shop.example/n',
    out_trade_no: 'BIG',
    ozz: text.slice(at),
    sign,
  };
  expect(canonical(new Map(Object.entries(sent)))).toBe(text);
  const withPid = (await send(`${epay.url}/submit.php?${query({ ...sent, pid: '1000' })}`)).status;
  // The field is part of another value, so the signature isn't even genuine.
  expect(withPid).toBe(404);
  const first = await send(`${epay.url}/submit.php?${query(signed)}`);
  expect(first).toMatchObject({
    status: 400,
    location: undefined,
    text: expect.stringContaining('name contains "&notify_url="'),
  });
  // With the number before the text that the payer chooses.
  const inner = orderAtEpay(
    { url: 'https://shop.example' },
    { name: 'x&notify_url=https://evil.example/&out_trade_no=BIG&pid=1000&zz=', out_trade_no: 'SMALL' },
  );
  const whole = canonical(new Map(Object.entries(inner)));
  const cut = whole.indexOf('zz=') + 3;
  const evil = {
    money: '72.00',
    name: 'x',
    notify_url: 'https://evil.example/',
    out_trade_no: 'BIG',
    pid: '1000',
    zz: whole.slice(cut),
    sign: inner['sign'] ?? '',
  };
  expect(canonical(new Map(Object.entries(evil)))).toBe(whole);
  const refused = await send(`${epay.url}/submit.php?${query(evil)}`);
  expect(refused).toMatchObject({ status: 400, location: undefined, text: expect.stringContaining('"zz"') });
  expect(await runSql(service, `select from invoices where external_id in ('BIG', 'SMALL')`)).toEqual([]);
});

test.each([
  ['param', 'a&out_trade_no=9'],
  ['name', 'a&zz=9'],
  ['out_trade_no', 'a&x=9'],
  ['param', '&='],
])('an order of EPay whose callback could not be signed is refused: %s is %j', async (field, text) => {
  const reply = await send(
    `${epay.url}/mapi.php?${query(orderAtEpay({ url: 'https://shop.example' }, { [field]: text }))}`,
  );
  expect(reply.body).toMatchObject({ code: -1, msg: expect.stringContaining(`${field} contains "&`) });
});

test.each(['epusdt', 'bepusdt'])('so is one of %s, for its id', async (kind) => {
  const at = kind === 'epusdt' ? epusdt : bepusdt;
  const body = JSON.stringify(orderAtEpusdt({ url: 'https://shop.example' }, { order_id: 'a&zz=1' }));
  const reply = await send(`${at.url}/api/v1/order/create-transaction`, { body });
  expect(reply.body.message).toContain('order_id contains "&zz="');
});

test.each(['R&D', 'Tom & Jerry', 'a=b', 'a b&c', '&', 'https://x/?a=1'])(
  'a text that begins no field is taken: %j',
  async (name) => {
    const reply = await send(
      `${epay.url}/mapi.php?${query(orderAtEpay({ url: 'https://shop.example' }, { name, param: name }))}`,
    );
    expect(reply.body).toMatchObject({ code: 1 });
  },
);

test.each(['https://shop.example/back?id=1&paymentsuccess=true', 'https://shop.example/back?pid=2&utm=x'])(
  'a URL with parameters that no order has is taken: %s',
  async (return_url) => {
    const reply = await send(
      `${epay.url}/mapi.php?${query(orderAtEpay({ url: 'https://shop.example' }, { return_url }))}`,
    );
    expect(reply.body).toMatchObject({ code: 1 });
  },
);

test('a URL that begins a field is refused with the way to write it', async () => {
  const return_url = 'https://shop.example/back?a=1&type=2';
  const reply = await send(
    `${epay.url}/mapi.php?${query(orderAtEpay({ url: 'https://shop.example' }, { return_url }))}`,
  );
  expect(reply.body.msg).toMatch(/return_url contains "&type=".*put type first/);
});

test('an order from before this rule is never signed: its callback fails, and says which field it is for', async () => {
  const shop = await startShop('success');
  onTestFinished(() => shop.stop());
  const { trade_no } = (await send(`${epay.url}/mapi.php?${query(orderAtEpay(shop))}`)).body;
  await runSql(service, 'alter table adapter_orders disable trigger user');
  await runSql(service, `update adapter_orders set param = 'a&out_trade_no=BIG', mac = null where notify_url like $1`, [
    `${shop.url}%`,
  ]);
  await payExactly(service, trade_no);
  service.devnet.mine();
  service.devnet.mineUntilSolid();
  const errors = () => runSql(service, 'select error from delivery_attempts where endpoint_id = $1', [epay.id]);
  const [row] = await eventually(errors, (rows) => rows.length > 0);
  expect(row?.['error']).toMatch(/^unsigned: param contains "&out_trade_no="/);
  expect(shop.told).toEqual([]);
});
