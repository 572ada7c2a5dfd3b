import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FORMS } from '../../src/faces/adapters/fields.ts';
import { runSql } from '../contract/sql.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { type Asked, addTestAdapter, SECRET, type ShopAdapter, send, signAsShop } from './fixture.ts';
import { PLUGIN_ORDERS, RIVAL_FIELDS } from './rival-fields.ts';

let service: TestService;
let adapters: Record<'epusdt' | 'bepusdt' | 'epay', ShopAdapter>;
beforeAll(async () => {
  service = await startTestService({ addressCount: 3 });
  const [epusdt, bepusdt, epay] = [
    await addTestAdapter(service, 'epusdt'),
    await addTestAdapter(service, 'bepusdt'),
    await addTestAdapter(service, 'epay'),
  ];
  adapters = { epusdt, bepusdt, epay };
});
afterAll(() => service.stop());

type Order = Record<string, string | number | boolean>;
type Form = Exclude<keyof typeof FORMS, 'epayQuery' | 'bepusdtCancel'>;

const NOTIFY = { notify_url: 'https://shop.example/notify' };
const JSON_ORDER: Order = { amount: 72, ...NOTIFY, redirect_url: 'https://shop.example/back' };
const DOORS: Record<Form, { kind: keyof typeof adapters; path: string; order: Order }> = {
  epusdt: { kind: 'epusdt', path: '/api/v1/order/create-transaction', order: JSON_ORDER },
  bepusdtTransaction: { kind: 'bepusdt', path: '/api/v1/order/create-transaction', order: JSON_ORDER },
  bepusdtOrder: { kind: 'bepusdt', path: '/api/v1/order/create-order', order: JSON_ORDER },
  gmpay: {
    ...{ kind: 'epusdt', path: '/payments/gmpay/v1/order/create-transaction' },
    order: { ...JSON_ORDER, pid: '1000', currency: 'cny', token: 'usdt', network: 'tron' },
  },
  epay: {
    kind: 'epay',
    path: '/mapi.php',
    order: { pid: '1000', type: 'usdt', name: 'book', money: '72.00', ...NOTIFY },
  },
};

let count = 0;
/** Sends an order with a new id, signed with all added fields. */
function ask(kind: keyof typeof adapters, path: string, added: Order): Promise<Asked> {
  count += 1;
  const isEpay = kind === 'epay';
  const order: Order = { [isEpay ? 'out_trade_no' : 'order_id']: `F-${count}`, ...added };
  const url = adapters[kind].url + path;
  const signature = signAsShop(order, SECRET);
  if (!isEpay) return send(url, { body: JSON.stringify({ ...order, signature }) });
  const texts = Object.entries({ ...order, sign: signature }).map(([name, value]): [string, string] => [
    name,
    `${value}`,
  ]);
  return send(`${url}?${new URLSearchParams(texts)}`);
}

const askForm = (form: Form, added: Order) =>
  ask(DOORS[form].kind, DOORS[form].path, { ...DOORS[form].order, ...added });

const isMade = ({ body, location }: Asked) => location !== undefined || body?.status_code === 200 || body?.code === 1;
const reasonOf = ({ body, text }: Asked): string => body?.message ?? body?.msg ?? text;
const countInvoices = () => runSql(service, 'select count(*)::int as n from invoices');

describe('every parameter that a rival publishes has a decision', () => {
  test.each(RIVAL_FIELDS)('$source', ({ form, names }) => {
    const undecided = names.split(' ').filter((name) => !Object.hasOwn(FORMS[form], name));
    expect(undecided).toEqual([]);
  });

  test('and stands in docs/guides/adapters.md', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/guides/adapters.md'), 'utf8');
    const names = new Set(Object.values(FORMS).flatMap((form) => Object.keys(form)));
    expect([...names].filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});

test.each(PLUGIN_ORDERS.flatMap((each) => each.kinds.map((kind) => ({ ...each, kind }))))(
  'the order of $plugin is taken by an adapter for $kind',
  async ({ kind, path, order }) => {
    const reply = await ask(kind, path, order);
    expect(isMade(reply), reasonOf(reply)).toBe(true);
  },
);

describe.each(Object.keys(DOORS) as Form[])('an order of %s', (form) => {
  test('is refused by the name of a field that its form does not have, and uses up nothing', async () => {
    const before = await countInvoices();
    const name = fc.oneof(
      fc.stringMatching(/^[a-z_]{1,12}$/),
      fc.constantFrom('Fiat', 'FIAT', 'rates', 'fee', 'precision', 'buyer', '__proto__', 'constructor'),
    );
    await fc.assert(
      fc.asyncProperty(name, fc.constantFrom('', '1', 'USD'), async (field, value) => {
        fc.pre(!Object.hasOwn(FORMS[form], field) && !['out_trade_no', 'order_id'].includes(field));
        const reply = await askForm(form, Object.fromEntries([[field, value]]));
        expect(isMade(reply)).toBe(false);
        expect(reasonOf(reply)).toContain(JSON.stringify(field));
      }),
      { numRuns: 25 },
    );
    expect(await countInvoices()).toEqual(before);
  });

  const decisions = Object.entries(FORMS[form]) as [string, string | object][];
  const refused = decisions.filter(([, decision]) => typeof decision === 'object' && 'refused' in decision);
  const ignored = decisions.filter(([, decision]) => typeof decision === 'object' && 'ignored' in decision);

  test.each(refused)('names %s, which is the operator’s, when it refuses it, and takes it empty', async (field) => {
    const reply = await askForm(form, { [field]: '0.5' });
    expect(isMade(reply)).toBe(false);
    expect(reasonOf(reply)).toMatch(new RegExp(`${field} is "0.5".*remove it`));
    expect(isMade(await askForm(form, { [field]: '' }))).toBe(true);
  });

  test.each(ignored)('is the same with %s as without', async (field) => {
    const reply = await askForm(form, { [field]: field === 'reselect' ? true : '1' });
    expect(isMade(reply), reasonOf(reply)).toBe(true);
  });

  for (const field of ['currency', 'fiat'].filter((name) => Object.hasOwn(FORMS[form], name))) {
    test(`in another currency is refused with ${field}, both values and what to do; in the adapter’s it is taken`, async () => {
      const before = await countInvoices();
      for (const code of ['USD', 'usd', 'EUR', 'GBP', 'JPY', 'XYZ', '¥']) {
        const reply = await askForm(form, { [field]: code });
        expect(isMade(reply)).toBe(false);
        expect(reasonOf(reply)).toMatch(new RegExp(`${field} is "${code}".* CNY only: send ${field} "CNY"`));
      }
      expect(await countInvoices()).toEqual(before);
      for (const code of ['CNY', 'cny']) expect(isMade(await askForm(form, { [field]: code }))).toBe(true);
    });
  }
});

test('an order of 100 USD is not priced at a rate for CNY, by the form of EPay in a browser', async () => {
  const order = {
    pid: '1000',
    type: 'usdt',
    return_url: 'https://shop.example/r',
    name: 'book',
    money: '100',
    ...NOTIFY,
  };
  const reply = await ask('epay', '/submit.php', { ...order, fiat: 'USD' });
  expect(reply).toMatchObject({ status: 400, location: undefined, text: expect.stringContaining('fiat is "USD"') });
  expect((await ask('epay', '/submit.php', { ...order, fiat: 'CNY' })).status).toBe(302);
});

test('at BEpusdt an order without fiat is in CNY, so an adapter in another currency needs the field', async () => {
  await runSql(service, 'alter table webhook_endpoints disable trigger user');
  const set = (currency: string) =>
    runSql(service, 'update webhook_endpoints set currency = $2, mac = null where id = $1', [
      adapters.bepusdt.id,
      currency,
    ]);
  await set('USD');
  try {
    const silent = await askForm('bepusdtTransaction', {});
    expect([isMade(silent), reasonOf(silent)]).toEqual([
      false,
      expect.stringMatching(/fiat is "CNY".* USD only: send fiat "USD"/),
    ]);
    expect((await askForm('bepusdtTransaction', { fiat: 'USD' })).body.data.fiat).toBe('USD');
  } finally {
    await set('CNY');
    await runSql(service, 'alter table webhook_endpoints enable trigger user');
  }
});

test.each([
  ['USDT', true],
  ['usdt,usdc', true],
  ['-ETH,-BNB', true],
  ['', true],
  ['USDC', false],
  ['-USDT', false],
  ['USDT,-USDT', false],
])('currencies %j is taken: %j', async (currencies, isTaken) => {
  const reply = await askForm('bepusdtOrder', { currencies });
  expect(isMade(reply)).toBe(isTaken);
  if (!isTaken) expect(reasonOf(reply)).toContain(`currencies is ${JSON.stringify(currencies)}`);
});

test.each([
  ['', true],
  ['Gmpay', true],
  ['EPAY', true],
  ['okpay', false],
])('payment_type %j is taken: %j', async (payment_type, isTaken) => {
  const reply = await askForm('gmpay', { payment_type });
  expect(isMade(reply)).toBe(isTaken);
  if (!isTaken) expect(reasonOf(reply)).toContain('payment_type is "okpay"');
});

test('what an order in JSON says in the query of its URL is refused', async () => {
  const reply = await ask('epusdt', '/api/v1/order/create-transaction?fiat=USD', JSON_ORDER);
  expect([isMade(reply), reasonOf(reply)]).toEqual([false, expect.stringContaining('the URL has a query')]);
});
