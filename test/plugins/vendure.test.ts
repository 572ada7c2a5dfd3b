import { randomUUID } from 'node:crypto';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, inject, onTestFinished, test } from 'vitest';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { withClient } from '../support/postgres-template.ts';
import { call, eventually, type Json } from '../support/service.ts';
import { installPlugin } from './install-plugin.ts';
import { type QuittanceWorld, startQuittanceWorld } from './quittance-world.ts';
import { type Shop, type ShopOrder, testShop, UNKNOWN_EVENT } from './shop-cases.ts';
import { type ShopProcess, startShop } from './shop-process.ts';

type Ask = (query: string, variables?: object) => Promise<Json>;

const cleanups: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

const installed = await installPlugin('vendure');
if (installed.kind === 'missing') {
  test.skip(`Vendure: ${installed.reason}`, () => undefined);
} else {
  cleanups.push(installed.remove);
  const quittance = await startQuittanceWorld('/quittance/webhook');
  cleanups.push(quittance.stop);
  const database = await createDatabase();
  const shop = await startVendure(installed.folder, database, quittance);
  test('paid by card: the invoice of the order is withdrawn', async () => {
    const order = await shop.order(20);
    expect(await shop.statesOf(order)).toEqual(['AwaitingTransfer']);
    await shop.payByCard(order);
    expect(await shop.read(order)).toMatchObject({ isPaid: true });
    expect(await shop.statesOf(order)).toEqual(['Cancelled']);
    expect(await quittance.read(order.invoiceId)).toHaveProperty('withdrawnAt');
  });
  test('an order whose total changed withdraws its page, and asks for the new total', async () => {
    const order = await shop.order(1);
    await shop.setCoupon(order, true);
    const lower = await shop.click(order);
    expect(await quittance.read(order.invoiceId)).toHaveProperty('withdrawnAt');
    expect(await quittance.read(lower.invoiceId)).toMatchObject({ payment: { requestedAmount: '20.000000' } });
    expect((await shop.click(order)).invoiceId).toBe(lower.invoiceId);
    await shop.setCoupon(order, false);
    const higher = await shop.click(order);
    expect(await quittance.read(lower.invoiceId)).toHaveProperty('withdrawnAt');
    await quittance.pay(higher.checkoutUrl, 'exact');
    const seen = await eventually(
      () => shop.read(order),
      ({ isPaid }) => isPaid,
    );
    expect(seen).toMatchObject({ settled: 1, notes: [] });
  });

  test('a page that is paid after the total changed adds a note about the difference', async () => {
    const [less, more] = [await shop.order(1), await shop.order(1)];
    await shop.setCoupon(more, true);
    const { checkoutUrl } = await shop.click(more);
    await shop.setCoupon(more, false);
    await shop.setCoupon(less, true);
    await quittance.pay(less.checkoutUrl, 'exact');
    await quittance.pay(checkoutUrl, 'exact');
    const read = (order: ShopOrder) =>
      eventually(
        () => shop.read(order),
        ({ notes }) => notes.length > 0,
      );
    const excess = expect.stringMatching(/^PAID TOO MUCH: .* 5\.00 USD more than the total/);
    expect(await read(less)).toMatchObject({ isPaid: true, notes: [excess] });
    const lack = expect.stringMatching(/^PAID TOO LITTLE: .* 5\.00 USD less than the total/);
    expect(await read(more)).toMatchObject({ isPaid: false, settled: 1, notes: [lack] });
    const rest = await shop.click(more);
    expect(await quittance.read(rest.invoiceId)).toMatchObject({ payment: { requestedAmount: '5.000000' } });
  });

  test('a customer who has paid gets the same page again, also if the order changes', async () => {
    onTestFinished(await quittance.stopWebhooks());
    const [coupon, edited] = [await shop.order(1), await shop.order(1)];
    for (const order of [coupon, edited]) {
      await quittance.pay(order.checkoutUrl, 'exact');
      await eventually(
        () => quittance.read(order.invoiceId),
        ({ status }) => status !== 'PENDING',
      );
      if (order === edited) await shop.transition(order, 'AddingItems');
      await shop.setCoupon(order, true);
      if (order === edited) await shop.transition(order, 'ArrangingPayment');
      expect((await shop.click(order)).invoiceId).toBe(order.invoiceId);
      const paid = await eventually(
        () => quittance.read(order.invoiceId),
        (invoice) => invoice.status === 'PAID',
      );
      expect(paid).not.toHaveProperty('withdrawnAt');
      expect((await shop.click(order)).invoiceId).toBe(order.invoiceId);
      await shop.sweep();
      const excess = expect.stringMatching(/^PAID TOO MUCH: .* 5\.00 USD more than the total/);
      expect(await shop.read(order)).toMatchObject({ isPaid: true, settled: 1, notes: [excess] });
    }
  });

  test('an order whose settlement Quittance interrupts gets no note, and the next sweep settles it', async () => {
    onTestFinished(await quittance.stopWebhooks());
    const order = await shop.order(1);
    await quittance.pay(order.checkoutUrl, 'exact');
    await eventually(
      () => quittance.read(order.invoiceId),
      ({ status }) => status === 'PAID',
    );
    // The sweep reads the invoice, and settling the payment reads it again.
    const answerAgain = quittance.fail(`/v1/invoices/${order.invoiceId}`, 503, 'UNAVAILABLE', 1);
    onTestFinished(answerAgain);
    await shop.sweep();
    expect(await shop.read(order)).toMatchObject({ isPaid: false, notes: [] });
    answerAgain();
    await shop.sweep();
    expect(await shop.read(order)).toMatchObject({ isPaid: true, settled: 1, notes: [] });
  });

  test('an order that changed while Quittance does not answer gets no page with the old amount', async () => {
    const order = await shop.order(1);
    const answerAgain = quittance.fail('/v1/', 503, 'UNAVAILABLE');
    onTestFinished(answerAgain);
    expect((await shop.click(order)).checkoutUrl).toBe(order.checkoutUrl);
    await shop.transition(order, 'AddingItems');
    expect(await shop.statesOf(order)).toEqual(['AwaitingTransfer']);
    await shop.setCoupon(order, true);
    await shop.transition(order, 'ArrangingPayment');
    await expect(shop.click(order)).rejects.toThrow('Quittance did not withdraw its earlier invoice');
    answerAgain();
    const { invoiceId } = await shop.click(order);
    expect(await quittance.read(invoiceId)).toMatchObject({ payment: { requestedAmount: '20.000000' } });
    expect(await quittance.read(order.invoiceId)).toHaveProperty('withdrawnAt');
  });

  test('an invoice that Quittance lost in a restore is replaced by the next click, and can be cancelled', async () => {
    const [clicked, changed] = [await shop.order(1), await shop.order(1)];
    for (const { invoiceId } of [clicked, changed]) {
      onTestFinished(quittance.fail(`/v1/invoices/${invoiceId}`, 404, 'INVOICE_NOT_FOUND'));
    }
    const again = await shop.click(clicked);
    expect(again.checkoutUrl).not.toBe(clicked.checkoutUrl);
    expect(await shop.statesOf(clicked)).toEqual(['Cancelled']);
    await shop.transition(changed, 'AddingItems');
    expect(await shop.statesOf(changed)).toEqual(['Cancelled']);
  });

  test('an invoice that Quittance does not show adds a note, and the sweep settles the later orders', async () => {
    const [hidden, later] = [await shop.order(1), await shop.order(1)];
    onTestFinished(quittance.fail(`/v1/invoices/${hidden.invoiceId}`, 503, 'INTEGRITY'));
    // Webhooks about both fail, so only the sweep can settle the later order.
    const answerAgain = quittance.fail(`/v1/invoices/${later.invoiceId}`, 503, 'UNAVAILABLE');
    onTestFinished(answerAgain);
    for (const { checkoutUrl } of [hidden, later]) await quittance.pay(checkoutUrl, 'exact');
    await eventually(
      () => quittance.read(later.invoiceId),
      ({ status }) => status === 'PAID',
    );
    answerAgain();
    await shop.sweep();
    expect(await shop.read(later)).toMatchObject({ isPaid: true });
    const doubt = [expect.stringContaining('DO NOT DELIVER: Quittance does not show the invoice')];
    expect(await shop.read(hidden)).toMatchObject({ isPaid: false, notes: doubt });
  });
  testShop(() => ({ shop, quittance }));
}

async function createDatabase(): Promise<PostgresConnection> {
  const { host, port, user, password } = inject('postgres');
  const name = `vendure_${randomUUID().replaceAll('-', '')}`;
  await withClient(inject('postgres'), (client) => client.query(`create database ${name}`));
  cleanups.push(() =>
    withClient(inject('postgres'), (client) => client.query(`drop database if exists ${name} with (force)`)),
  );
  return { host, port: Number(port), user, password, database: name };
}

type Vendure = Shop & {
  /** Pays an order by card while its invoice waits. */
  payByCard(order: ShopOrder): Promise<void>;
  /** Clicks again, and returns the page that the shop shows. Throws what the shop says if it shows none. */
  click(order: ShopOrder): Promise<{ invoiceId: string; checkoutUrl: string }>;
  /** Applies a coupon of 5.00, or removes it. */
  setCoupon(order: ShopOrder, isSet: boolean): Promise<void>;
  transition(order: ShopOrder, state: string): Promise<void>;
  /** The states of an order's payments with Quittance. */
  statesOf(order: ShopOrder): Promise<string[]>;
};

async function startVendure(folder: string, database: PostgresConnection, quittance: QuittanceWorld): Promise<Vendure> {
  const { apiUrl: url, apiKey, secret, projectId, shopPort: port } = quittance;
  await cp(join(import.meta.dirname, 'vendure-shop.cjs'), join(folder, 'vendure-shop.cjs'));
  const settings = {
    port,
    database: { ...database, username: database.user },
    quittance: { url, apiKey, webhookSecrets: [secret], projectId },
  };
  await writeFile(join(folder, 'settings.json'), JSON.stringify(settings), { mode: 0o600 });
  const env = { PATH: process.env['PATH'], TMPDIR: process.env['TMPDIR'] };
  const program: ShopProcess = await startShop(folder, ['vendure-shop.cjs', 'settings.json'], env, 'ready\n');
  cleanups.push(program.stop);
  const base = `http://127.0.0.1:${port}`;
  const admin = connect(`${base}/admin-api`);
  await admin(`mutation { login(username: "admin", password: "admin-of-test") { __typename } }`);
  const variantId = await createProduct(admin);
  const customers = new Map<string, Ask>();
  const customerOf = (id: string): Ask => {
    const customer = customers.get(id);
    if (customer === undefined) throw new Error(`order ${id} has no customer`);
    return customer;
  };
  return {
    hookUrl: `${base}/quittance/webhook`,
    order: async (quantity, clicks = 1) => {
      const customer = connect(`${base}/shop-api`);
      const placed = await order(customer, { variantId, quantity, clicks });
      customers.set(placed.id, customer);
      return placed;
    },
    payByCard: async ({ id }) => {
      await customerOf(id)(`mutation { addPaymentToOrder(input: { method: "card", metadata: {} }) { __typename } }`);
    },
    click: async ({ id }) => {
      const { addPaymentToOrder } = await customerOf(id)(CLICK);
      const open = addPaymentToOrder.payments?.find(({ state }: Json) => state === 'AwaitingTransfer');
      if (open === undefined) throw new Error(JSON.stringify(addPaymentToOrder));
      return { invoiceId: open.transactionId, checkoutUrl: open.metadata.public.checkoutUrl };
    },
    setCoupon: async ({ id }, isSet) => {
      const name = isSet ? 'applyCouponCode' : 'removeCouponCode';
      await customerOf(id)(`mutation { ${name}(couponCode: "FIVE") { __typename } }`);
    },
    transition: async ({ id }, state) => {
      await customerOf(id)(`mutation { transitionOrderToState(state: "${state}") { __typename } }`);
    },
    statesOf: async ({ id, invoiceId }) => {
      const { payments } = await findOrder(admin, id);
      return payments.filter((each: Json) => each.transactionId === invoiceId).map(({ state }: Json) => state);
    },
    orderInEuros: (quantity) => order(connect(`${base}/shop-api?currencyCode=EUR`), { variantId, quantity, clicks: 1 }),
    cancel: async ({ id }) => {
      await admin(`mutation ($id: ID!) { cancelOrder(input: { orderId: $id }) { __typename } }`, {
        id: (await findOrder(admin, id)).id,
      });
    },
    read: async ({ id }) => {
      const { state, payments, history } = await findOrder(admin, id);
      return {
        isPaid: state === 'PaymentSettled',
        settled: payments.filter((each: Json) => each.state === 'Settled').length,
        notes: history.items.flatMap(({ data }: Json) => (data.note === undefined ? [] : [data.note])),
      };
    },
    isNotedBySweep: false,
    sweep: () => sweep(admin),
    losePosition: async () => {
      const set = `update settings_store_entry set value = $1 where key = 'quittance.lastEvent'`;
      const { rowCount } = await withClient(database, (client) => client.query(set, [JSON.stringify(UNKNOWN_EVENT)]));
      expect(rowCount).toBe(1);
    },
    untilForgeryIsRefused: async (status) => expect(status).toBe(400),
    refund: async (paid) => refund(admin, paid),
  };
}

/** Starts a new session, kept by the token in the shop's answer. */
function connect(url: string): Ask {
  let token = '';
  return async (query, variables = {}) => {
    const authorization = token === '' ? {} : { authorization: `Bearer ${token}` };
    const answer = await call(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...authorization },
      body: JSON.stringify({ query, variables }),
    });
    token = String(answer.headers['vendure-auth-token'] ?? token);
    if (answer.body.errors !== undefined) throw new Error(JSON.stringify(answer.body.errors));
    return answer.body.data;
  };
}

async function createProduct(admin: Ask): Promise<string> {
  const translations = [{ languageCode: 'en', name: 'Lamp', slug: 'lamp', description: '' }];
  const { createProduct: product } = await admin(
    `mutation ($input: CreateProductInput!) { createProduct(input: $input) { id } }`,
    { input: { translations } },
  );
  const names = [{ languageCode: 'en', name: 'Lamp' }];
  const variant = { productId: product.id, translations: names, sku: 'L', price: 2500, stockOnHand: 1000 };
  const { createProductVariants } = await admin(
    `mutation ($input: [CreateProductVariantInput!]!) { createProductVariants(input: $input) { id } }`,
    { input: [variant] },
  );
  const { id } = createProductVariants[0];
  const { activeChannel } = await admin(`{ activeChannel { id } }`);
  await admin(`mutation ($input: UpdateChannelInput!) { updateChannel(input: $input) { __typename } }`, {
    input: { id: activeChannel.id, availableCurrencyCodes: ['USD', 'EUR'] },
  });
  await admin(`mutation ($input: [UpdateProductVariantInput!]!) { updateProductVariants(input: $input) { id } }`, {
    input: [{ id, prices: [{ currencyCode: 'EUR', price: 2500 }] }],
  });
  const fixed = { code: 'order_fixed_discount', arguments: [{ name: 'discount', value: '500' }] };
  await admin(`mutation ($input: CreatePromotionInput!) { createPromotion(input: $input) { __typename } }`, {
    input: {
      ...{ enabled: true, couponCode: 'FIVE', conditions: [], actions: [fixed] },
      translations: [{ languageCode: 'en', name: 'Five off' }],
    },
  });
  return id;
}

const PAYMENTS = `... on Order { code payments { state transactionId metadata errorMessage } } ... on ErrorResult { message } ... on PaymentFailedError { paymentErrorMessage }`;
const CLICK = `mutation { addPaymentToOrder(input: { method: "quittance", metadata: {} }) { ${PAYMENTS} } }`;

async function order(
  shop: Ask,
  { variantId, quantity, clicks }: { variantId: string; quantity: number; clicks: number },
): Promise<ShopOrder> {
  const asked = `mutation ($id: ID!, $quantity: Int!) { addItemToOrder(productVariantId: $id, quantity: $quantity) { __typename } }`;
  await shop(asked, { id: variantId, quantity });
  const customer = `{ firstName: "A", lastName: "B", emailAddress: "${randomUUID()}@example.com" }`;
  await shop(`mutation { setCustomerForOrder(input: ${customer}) { __typename } }`);
  await shop(`mutation { setOrderShippingAddress(input: { streetLine1: "1", countryCode: "AT" }) { __typename } }`);
  const { eligibleShippingMethods } = await shop(`{ eligibleShippingMethods { id } }`);
  const method = { id: [eligibleShippingMethods[0].id] };
  await shop(`mutation ($id: [ID!]!) { setOrderShippingMethod(shippingMethodId: $id) { __typename } }`, method);
  await shop(`mutation { transitionOrderToState(state: "ArrangingPayment") { __typename } }`);
  const click = () => shop(CLICK);
  await Promise.all(Array.from({ length: clicks }, click));
  const { activeOrder } = await shop(`{ activeOrder { ${PAYMENTS.split(' ... on ErrorResult')[0]} } }`);
  const open = activeOrder.payments.filter(({ state }: Json) => state === 'AwaitingTransfer');
  if (open.length !== 1) throw new Error(`not one open payment: ${JSON.stringify(activeOrder)}`);
  const [{ transactionId: invoiceId, metadata }] = open;
  // The other clicks led to the same page.
  const pages = activeOrder.payments.map(({ metadata: told }: Json) => told.public.checkoutUrl);
  if (new Set(pages).size !== 1) throw new Error(`several pages: ${pages}`);
  return { id: activeOrder.code, invoiceId, externalId: activeOrder.code, checkoutUrl: metadata.public.checkoutUrl };
}

async function findOrder(admin: Ask, code: string): Promise<Json> {
  const fields = `id state totalWithTax payments { id state amount transactionId } history(options: { take: 100 }) { items { type data } }`;
  const { orders } = await admin(
    `query ($code: String!) { orders(options: { filter: { code: { eq: $code } } }) { items { ${fields} } } }`,
    { code },
  );
  return orders.items[0];
}

/** Runs the task like a merchant, and waits until it has run or failed. A failure changes only the result. */
async function sweep(admin: Ask): Promise<void> {
  const look = async () => {
    const { scheduledTasks } = await admin(`{ scheduledTasks { id lastExecutedAt isRunning lastResult } }`);
    return scheduledTasks.find(({ id }: Json) => id === 'quittance-sweep');
  };
  const before = await look();
  await admin(`mutation { runScheduledTask(id: "quittance-sweep") { success } }`);
  const of = ({ lastExecutedAt, lastResult }: Json) => JSON.stringify([lastExecutedAt, lastResult]);
  await eventually(look, (task) => of(task) !== of(before) && !task.isRunning);
}

async function refund(admin: Ask, { id }: ShopOrder): Promise<string> {
  const found = await findOrder(admin, id);
  const paid = found.payments.find(({ state }: Json) => state === 'Settled');
  const input = { paymentId: paid.id, amount: paid.amount, reason: 'returned', lines: [], shipping: 0, adjustment: 0 };
  const { refundOrder } = await admin(
    `mutation ($input: RefundOrderInput!) { refundOrder(input: $input) { ... on Refund { state } ... on ErrorResult { message } } }`,
    { input },
  );
  return refundOrder.state ?? refundOrder.message;
}
