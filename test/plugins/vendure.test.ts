import { randomUUID } from 'node:crypto';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, inject, test } from 'vitest';
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
  /** The states of an order's payments with Quittance. */
  statesOf(order: ShopOrder): Promise<string[]>;
};

async function startVendure(folder: string, database: PostgresConnection, quittance: QuittanceWorld): Promise<Vendure> {
  const { url, apiKey, secret, projectId, shopPort: port } = quittance;
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
  return {
    hookUrl: `${base}/quittance/webhook`,
    order: async (quantity, clicks = 1) => {
      const customer = connect(`${base}/shop-api`);
      const placed = await order(customer, { variantId, quantity, clicks });
      customers.set(placed.id, customer);
      return placed;
    },
    payByCard: async ({ id }) => {
      await customers.get(id)?.(
        `mutation { addPaymentToOrder(input: { method: "card", metadata: {} }) { __typename } }`,
      );
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
  return id;
}

const PAYMENTS = `... on Order { code payments { state transactionId metadata errorMessage } } ... on ErrorResult { message }`;

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
  const click = () =>
    shop(`mutation { addPaymentToOrder(input: { method: "quittance", metadata: {} }) { ${PAYMENTS} } }`);
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

/** Runs the task like a merchant, and waits until it has run. */
async function sweep(admin: Ask): Promise<void> {
  const look = async () => {
    const { scheduledTasks } = await admin(`{ scheduledTasks { id lastExecutedAt isRunning lastResult } }`);
    return scheduledTasks.find(({ id }: Json) => id === 'quittance-sweep');
  };
  const before = await look();
  await admin(`mutation { runScheduledTask(id: "quittance-sweep") { success } }`);
  await eventually(look, (task) => task.lastExecutedAt !== before.lastExecutedAt && !task.isRunning);
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
