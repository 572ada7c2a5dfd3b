import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, inject, onTestFinished, test } from 'vitest';
import { withClient } from '../support/postgres-template.ts';
import { call, eventually, type Json } from '../support/service.ts';
import { installPlugin } from './install-plugin.ts';
import { type QuittanceWorld, startQuittanceWorld } from './quittance-world.ts';
import { type Shop, type ShopOrder, testShop, UNKNOWN_EVENT } from './shop-cases.ts';
import { startShop } from './shop-process.ts';
import { openTcpDoor } from './tcp-door.ts';

type Ask = (path: string, body?: object) => Promise<Json>;

const HOOK = '/hooks/payment/quittance_quittance';
const PROVIDER = 'pp_quittance_quittance';
const LOGIN = { email: 'admin@example.com', password: 'admin-of-test' };

const cleanups: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

const installed = await installPlugin('medusa');
if (installed.kind === 'missing') {
  test.skip(`Medusa: ${installed.reason}`, () => undefined);
} else {
  cleanups.push(installed.remove);
  const quittance = await startQuittanceWorld(HOOK);
  cleanups.push(quittance.stop);
  const databaseUrl = await createDatabase();
  const shop = await startMedusa(installed.folder, databaseUrl, quittance);
  const provider = loadProvider(installed.folder, quittance);
  test('hostile: a session with the data of another one, whose invoice is paid, is not paid by it', async () => {
    const cheap = await shop.order(1);
    await quittance.pay(cheap.checkoutUrl, 'exact');
    await eventually(
      () => shop.read(cheap),
      ({ isPaid }) => isPaid,
    );
    const data = { ...cheap, session_id: cheap.externalId.split(':')[0] };
    const authorize = (key: unknown) => provider.authorizePayment({ data, context: { idempotency_key: key } });
    expect(await authorize(data.session_id)).toMatchObject({ status: 'captured' });
    await expect(authorize('payses_another')).rejects.toThrow('not from this payment session');
    await expect(authorize(undefined)).rejects.toThrow('not from this payment session');
  });

  test("hostile: a session that names another one's invoice withdraws nothing", async () => {
    const order = await shop.order(1);
    const data = { ...order, session_id: 'payses_another' };
    await expect(provider.cancelPayment({ data })).rejects.toThrow(
      'is not the invoice of the payment session payses_another',
    );
    await provider.deletePayment({ data: { invoiceId: order.invoiceId } });
    await quittance.pay(order.checkoutUrl, 'exact');
    await eventually(
      () => shop.read(order),
      ({ isPaid }) => isPaid,
    );
  });
  test('rounding: a total with more decimals than its currency is asked for in cents, and settled', async () => {
    const order = await shop.order(1, 1, shop.goods.fractionalId);
    expect(await quittance.read(order.invoiceId)).toMatchObject({ payment: { requestedAmount: '21.760000' } });
    await quittance.pay(order.checkoutUrl, 'exact');
    await eventually(
      () => shop.read(order),
      ({ isPaid }) => isPaid,
    );
    const tether = { amount: '0.1234567', currency_code: 'usdt' };
    const start = { data: { session_id: 'payses_tether' }, context: { idempotency_key: 'payses_tether' } };
    expect(await provider.initiatePayment({ ...tether, ...start })).toMatchObject({ data: { amount: '0.123457' } });
  });

  test('a session that gets an earlier amount again gets an invoice that can be paid', async () => {
    const price = { amount: 25, currency_code: 'usd' };
    const start = { data: { session_id: 'payses_again' }, context: { idempotency_key: 'payses_again' } };
    const { data: first } = await provider.initiatePayment({ ...price, ...start });
    const { data: kept } = await provider.updatePayment({ ...price, data: first });
    expect(kept).toEqual(first);
    const { data: more } = await provider.updatePayment({ ...price, amount: 30, data: first });
    const { data: again } = await provider.updatePayment({ ...price, data: more });
    expect(new Set([first, more, again].map(({ invoiceId }) => invoiceId)).size).toBe(3);
    expect(await quittance.read(more.invoiceId)).toHaveProperty('withdrawnAt');
    expect(await quittance.read(again.invoiceId)).not.toHaveProperty('withdrawnAt');
    expect(await provider.getPaymentStatus({ data: again })).toMatchObject({ status: 'pending' });
  });

  test('a payment whose cart cannot be completed adds a note for the merchant, and a later sweep makes the order', async () => {
    const order = await shop.order(1);
    await shop.offer('pp_system_default');
    onTestFinished(() => shop.offer(PROVIDER, 'pp_system_default'));
    await quittance.pay(order.checkoutUrl, 'exact');
    await eventually(
      () => shop.isCaptured(order),
      (isCaptured) => isCaptured,
    );
    const text = 'PAID, BUT THERE IS NO ORDER';
    const seen = await eventually(
      async () => {
        await shop.sweep();
        return shop.read(order);
      },
      ({ notes }) => notes.length > 0,
    );
    expect(seen).toMatchObject({ isPaid: false, notes: [expect.stringContaining(text)] });
    await shop.losePosition();
    await shop.sweep();
    expect((await shop.read(order)).notes).toHaveLength(1);
    await shop.offer(PROVIDER, 'pp_system_default');
    await shop.losePosition();
    await shop.sweep();
    expect(await shop.read(order)).toMatchObject({ isPaid: true, settled: 1 });
  });
  test('a session whose invoice Quittance lost in a restore can change its amount, and be deleted', async () => {
    const start = { data: { session_id: 'payses_lost' }, context: { idempotency_key: 'payses_lost' } };
    const { data } = await provider.initiatePayment({ amount: 25, currency_code: 'usd', ...start });
    onTestFinished(quittance.fail(`/v1/invoices/${data.invoiceId}`, 404, 'INVOICE_NOT_FOUND'));
    expect(await provider.deletePayment({ data })).toEqual({ data });
    const { data: more } = await provider.updatePayment({ amount: 30, currency_code: 'usd', data });
    expect(await quittance.read(more.invoiceId)).toMatchObject({ payment: { requestedAmount: '30.000000' } });
  });

  test('an invoice that the session replaced is paid after the order: the merchant learns of the money', async () => {
    const order = await shop.order(1);
    const latest = await shop.replaceInvoice(order);
    await quittance.pay(latest.checkoutUrl, 'exact');
    await eventually(
      () => shop.read(latest),
      ({ isPaid }) => isPaid,
    );
    await quittance.pay(order.checkoutUrl, 'exact');
    const notes = await eventually(
      async () => {
        await shop.sweep();
        return (await shop.read(latest)).notes;
      },
      ({ length }) => length > 0,
    );
    expect(notes).toEqual([expect.stringMatching(`^PAID AND NOT SETTLED: .* for ${order.invoiceId}`)]);
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
    const doubt = [expect.stringContaining(`DO NOT DELIVER: Quittance does not show the invoice ${hidden.invoiceId}`)];
    expect(await shop.read(hidden)).toMatchObject({ isPaid: false, notes: doubt });
  });

  test('an order whose settlement Quittance interrupts gets no note, and the next sweep settles it', async () => {
    onTestFinished(await quittance.stopWebhooks());
    const order = await shop.order(1);
    await quittance.pay(order.checkoutUrl, 'exact');
    await eventually(
      () => quittance.read(order.invoiceId),
      ({ status }) => status === 'PAID',
    );
    // The sweep reads the invoice once for each event, and Medusa reads it again.
    const events = (await quittance.events()).filter(({ data }) => data.invoiceId === order.invoiceId);
    const answerAgain = quittance.fail(`/v1/invoices/${order.invoiceId}`, 503, 'UNAVAILABLE', events.length);
    onTestFinished(answerAgain);
    await expect(shop.sweep()).rejects.toThrow();
    expect(await shop.read(order)).toMatchObject({ isPaid: false, notes: [] });
    answerAgain();
    await shop.sweep();
    expect(await shop.read(order)).toMatchObject({ isPaid: true, settled: 1, notes: [] });
  });

  test('an event that the shop fails to handle adds a note for the merchant, and does not stop the sweep', async () => {
    onTestFinished(await quittance.stopWebhooks());
    await shop.sweep();
    const order = await shop.order(1);
    await quittance.pay(order.checkoutUrl, 'exact');
    await eventually(
      () => quittance.read(order.invoiceId),
      ({ status }) => status === 'PAID',
    );
    const database = new URL(databaseUrl).pathname.slice(1);
    const rename = (from: string, to: string) =>
      withClient({ ...inject('postgres'), database }, (client) => client.query(`alter table ${from} rename to ${to}`));
    await rename('order_payment_collection', 'out_of_reach');
    try {
      await shop.sweep();
    } finally {
      await rename('out_of_reach', 'order_payment_collection');
    }
    const notes = [expect.stringMatching(`^CHECK BY HAND: .* invoice.paid for ${order.invoiceId}`)];
    expect(await shop.read(order)).toMatchObject({ isPaid: false, notes });
  });

  test("another shop's invoice that Quittance does not show adds no note", async () => {
    const { body: invoice } = await call(`${quittance.url}/v1/invoices`, {
      method: 'POST',
      headers: { 'x-api-key': quittance.apiKey, 'content-type': 'application/json', 'idempotency-key': 'another-shop' },
      body: JSON.stringify({ amount: '25', asset: 'USDT', network: 'TRON', externalId: 'another-shop' }),
    });
    onTestFinished(quittance.fail(`/v1/invoices/${invoice.invoiceId}`, 503, 'INTEGRITY'));
    await quittance.pay(invoice.checkoutUrl, 'exact');
    await eventually(
      () => quittance.read(invoice.invoiceId),
      ({ status }) => status === 'PAID',
    );
    await shop.sweep();
    expect((await shop.read({ ...invoice, id: '' })).notes).toEqual([]);
  });
  testShop(() => ({ shop, quittance }));
}

type Provider = {
  initiatePayment(input: { amount: unknown; currency_code: string; data: object; context: object }): Promise<Json>;
  updatePayment(input: { amount: unknown; currency_code: string; data: object }): Promise<Json>;
  getPaymentStatus(input: { data: object }): Promise<Json>;
  authorizePayment(input: { data: object; context: object }): Promise<Json>;
  cancelPayment(input: { data: object }): Promise<Json>;
  deletePayment(input: { data: object }): Promise<Json>;
};

/** The installed plugin without Medusa, because the window in which a customer could use such data is one request long. */
function loadProvider(folder: string, { apiUrl: url, apiKey, secret }: QuittanceWorld): Provider {
  const { QuittanceProvider } = createRequire(join(folder, 'shop.js'))('quittance-medusa');
  return new QuittanceProvider({ logger: console }, { url, apiKey, webhookSecrets: [secret] });
}

async function createDatabase(): Promise<string> {
  const { host, port, user, password } = inject('postgres');
  const name = `medusa_${randomUUID().replaceAll('-', '')}`;
  await withClient(inject('postgres'), (client) => client.query(`create database ${name}`));
  cleanups.push(() =>
    withClient(inject('postgres'), (client) => client.query(`drop database if exists ${name} with (force)`)),
  );
  const door = await openTcpDoor(join(host, `.s.PGSQL.${port}`));
  cleanups.push(door.close);
  return `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${door.port}/${name}`;
}

type Medusa = Omit<Shop, 'order'> & {
  goods: Goods;
  order(quantity: number, clicks?: number, variantId?: string): Promise<ShopOrder>;
  /** Changes the session's amount and changes it back, so that the session has another invoice. */
  replaceInvoice(order: ShopOrder): Promise<ShopOrder>;
  /** Sets the payment providers of the region. */
  offer(...providers: string[]): Promise<void>;
  /** Whether Medusa has recorded the payment, with or without an order. */
  isCaptured(order: ShopOrder): Promise<boolean>;
};

async function startMedusa(folder: string, databaseUrl: string, quittance: QuittanceWorld): Promise<Medusa> {
  const { apiUrl: url, apiKey, secret, projectId, shopPort } = quittance;
  await mkdir(join(folder, 'src/api/test-sweep'), { recursive: true });
  const from = join(import.meta.dirname, 'medusa-shop');
  await cp(join(from, 'medusa-config.js'), join(folder, 'medusa-config.js'));
  await cp(join(from, 'route.js'), join(folder, 'src/api/test-sweep/route.js'));
  const options = { url, apiKey, webhookSecrets: [secret], projectId };
  const settings = { databaseUrl, quittance: options };
  await writeFile(join(folder, 'settings.json'), JSON.stringify(settings), { mode: 0o600 });
  const { PATH, TMPDIR } = process.env;
  const env = { PATH, TMPDIR, HOME: folder, NODE_ENV: 'production', MEDUSA_DISABLE_TELEMETRY: 'true' };
  const medusa = join(folder, 'node_modules/@medusajs/cli/cli.js');
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, [medusa, ...args], { cwd: folder, env, maxBuffer: 16 * 1024 * 1024 });
  await run('db:migrate', '--execute-safe-links');
  await run('user', '-e', LOGIN.email, '-p', LOGIN.password);
  const args = [medusa, 'start', '-H', '127.0.0.1', '-p', String(shopPort)];
  const program = await startShop(folder, args, env, 'Server is ready');
  cleanups.push(program.stop);
  const base = `http://127.0.0.1:${shopPort}`;
  const { token } = await connect(base, {})('/auth/user/emailpass', LOGIN);
  const admin = connect(base, { authorization: `Bearer ${token}` });
  const goods = await stockShop(admin);
  const store = connect(base, { 'x-publishable-api-key': goods.publishableKey });
  return {
    hookUrl: base + HOOK,
    goods,
    order: (quantity, clicks = 1, variantId = goods.variantId) =>
      order(store, { ...goods, variantId }, quantity, clicks),
    orderInEuros: (quantity) => order(store, { ...goods, regionId: goods.euroRegionId }, quantity, 1),
    cancel: async (placed) => {
      // Another session replaces it, as when the customer changes the payment method.
      await store(`/store/payment-collections/${placed.id}/payment-sessions`, { provider_id: 'pp_system_default' });
    },
    read: (placed) => read(admin, placed),
    isNotedBySweep: true,
    sweep: () => admin('/test-sweep', {}),
    losePosition: async () => {
      const { stores } = await admin('/admin/stores');
      const metadata = { ...stores[0].metadata, quittance_last_event: UNKNOWN_EVENT };
      expect(stores[0].metadata).toHaveProperty('quittance_last_event');
      await admin(`/admin/stores/${stores[0].id}`, { metadata });
    },
    replaceInvoice: async (placed) => {
      const [id] = placed.externalId.split(':');
      let data: Json = placed;
      for (const amount of [30, 25]) {
        const session = { id, amount, currency_code: 'usd', data };
        ({ data } = await admin('/test-sweep', { session }));
      }
      return { ...data, id: placed.id };
    },
    offer: async (...providers) => {
      await admin(`/admin/regions/${goods.regionId}`, { payment_providers: providers });
    },
    isCaptured: async ({ invoiceId }) => {
      const { payments } = await admin('/admin/payments?limit=100&fields=data,captured_at');
      return payments.some(({ data, captured_at }: Json) => data?.invoiceId === invoiceId && captured_at !== null);
    },
    untilForgeryIsRefused: async () => {
      await eventually(
        () => program.output(),
        (output) => output.includes('rejected a webhook: SIGNATURE_MISMATCH'),
      );
    },
    refund: async (placed) => {
      const { payments } = await find(admin, placed);
      return admin(`/admin/payments/${payments[0].id}/refund`, {}).then(
        () => 'settled',
        (error: Error) => error.message,
      );
    },
  };
}

function connect(base: string, more: Record<string, string>): Ask {
  return async (path, body) => {
    const answer = await call(base + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', ...more },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
}

type Goods = {
  publishableKey: string;
  regionId: string;
  euroRegionId: string;
  channelId: string;
  variantId: string;
  fractionalId: string;
};

async function stockShop(admin: Ask): Promise<Goods> {
  const providers = [PROVIDER, 'pp_system_default'];
  const { region } = await admin('/admin/regions', {
    ...{ name: 'Europe', currency_code: 'usd', countries: ['at'], payment_providers: providers },
  });
  const { region: euroRegion } = await admin('/admin/regions', {
    ...{ name: 'Germany', currency_code: 'eur', countries: ['de'], payment_providers: providers },
  });
  const { sales_channel: channel } = await admin('/admin/sales-channels', { name: 'Web' });
  const { api_key: key } = await admin('/admin/api-keys', { title: 'web', type: 'publishable' });
  await admin(`/admin/api-keys/${key.id}/sales-channels`, { add: [channel.id] });
  const prices = ['usd', 'eur'].map((currency_code) => ({ currency_code, amount: 25 }));
  const variants = [{ title: 'Lamp', prices, options: { Size: 'M' }, manage_inventory: false }];
  // The price of 19.99 with a tax of 8.875 %, which Medusa doesn't round.
  const fractional = { title: 'Taxed', prices: [{ currency_code: 'usd', amount: 21.7641125 }], options: { Size: 'L' } };
  const { product } = await admin('/admin/products', {
    ...{ title: 'Lamp', status: 'published', options: [{ title: 'Size', values: ['M', 'L'] }] },
    ...{ variants: [...variants, { ...fractional, manage_inventory: false }], sales_channels: [{ id: channel.id }] },
  });
  const variantOf = (title: string) => product.variants.find((each: Json) => each.title === title).id;
  return {
    ...{ publishableKey: key.token, regionId: region.id, euroRegionId: euroRegion.id },
    ...{ channelId: channel.id, variantId: variantOf('Lamp'), fractionalId: variantOf('Taxed') },
  };
}

async function order(store: Ask, goods: Goods, quantity: number, clicks: number): Promise<ShopOrder> {
  const { regionId: region_id, channelId: sales_channel_id, variantId: variant_id } = goods;
  const { cart } = await store('/store/carts', { region_id, sales_channel_id, email: `${randomUUID()}@example.com` });
  await store(`/store/carts/${cart.id}/line-items`, { variant_id, quantity });
  const { payment_collection: collection } = await store('/store/payment-collections', { cart_id: cart.id });
  const path = `/store/payment-collections/${collection.id}/payment-sessions`;
  const click = () => store(path, { provider_id: PROVIDER });
  await Promise.allSettled(Array.from({ length: clicks }, click));
  const { payment_collection: started } = await click();
  expect(started.payment_sessions).toHaveLength(1);
  const [{ data }] = started.payment_sessions;
  return { id: collection.id, ...data };
}

async function find(admin: Ask, { invoiceId }: ShopOrder): Promise<{ metadata: Json; payments: Json[] }> {
  const fields = 'id,metadata,*payment_collections,*payment_collections.payments';
  const { orders } = await admin(`/admin/orders?limit=100&fields=${encodeURIComponent(fields)}`);
  for (const { metadata, payment_collections } of orders) {
    const payments = payment_collections.flatMap((each: Json) => each.payments ?? []);
    if (payments.some(({ data }: Json) => data?.invoiceId === invoiceId)) return { metadata, payments };
  }
  return { metadata: null, payments: [] };
}

async function read(admin: Ask, placed: ShopOrder) {
  const { metadata, payments } = await find(admin, placed);
  const settled = payments.filter(({ captured_at }) => captured_at !== null).length;
  const { stores } = await admin('/admin/stores');
  const ofOrder = metadata?.quittance ?? [];
  const ofStore = (stores[0].metadata?.quittance ?? []).filter(({ key, text }: Json) =>
    `${key} ${text}`.includes(placed.invoiceId),
  );
  return { isPaid: settled > 0, settled, notes: [...ofOrder, ...ofStore].map(({ text }: Json) => text) };
}
