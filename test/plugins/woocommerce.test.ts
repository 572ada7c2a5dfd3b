import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { deliver, forge } from '../examples/forged-webhooks.ts';
import { launchChromium } from '../support/chromium.ts';
import { eventually, type Json } from '../support/service.ts';
import { type PluginSandbox, startPluginSandbox } from './plugin-sandbox.ts';
import { startProxy } from './quittance-world.ts';
import { hasPhp, type Shop, startShop, whyNoShop } from './shop/wordpress.ts';
import { UNKNOWN_EVENT } from './shop-cases.ts';

const reason = (await hasPhp('curl', 'mysqli')) ? whyNoShop() : 'php with curl and mysqli is not installed';

describe.skipIf(reason !== null)(`the gateway in a WooCommerce${reason === null ? '' : `: skipped, ${reason}`}`, () => {
  let folder: string;
  let sandbox: PluginSandbox;
  let shop: Shop;
  let secret: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'wc-'));
    // When started by root, PostgreSQL runs as another user.
    await chmod(folder, 0o711);
    sandbox = await startPluginSandbox(join(folder, 'quittance'));
    shop = await startShop(folder, settings());
    secret = await sandbox.listenAt(`${shop.url}/?wc-api=quittance`);
    await shop.ask('set', 0, `option:webhook_secret=${secret}`);
    console.log(`WooCommerce and WordPress: ${shop.versions}`);
  });
  afterAll(async () => {
    await shop?.stop();
    await sandbox?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const settings = () => ({
    hpos: process.env['QUITTANCE_TEST_HPOS'] === '1',
    gateway: {
      enabled: 'yes',
      title: 'USDT &amp; more',
      description: 'See the amount &amp; the address.',
      url: sandbox.file.baseUrl,
      api_key: sandbox.file.apiKey,
      webhook_secret: '',
      usd_is_usdt: 'yes',
    },
  });

  /** Creates an order whose customer was sent to the payment page. */
  async function order(total: string) {
    const { id } = await shop.ask('create', 0, total);
    const paying = await shop.ask('pay', id);
    expect(paying.result).toBe('success');
    const { attempts } = await shop.ask('order', id);
    return { id, ...attempts[0], checkoutUrl: paying.redirect };
  }
  const look = (id: number) => shop.ask('order', id);
  const until = (id: number, isSo: (seen: Json) => boolean) => eventually(() => look(id), isSo);
  const hasNote = (text: string) => (seen: Json) => seen.notes.some((note: string) => note.includes(text));
  const noted = (seen: Json, text: string) => seen.notes.filter((note: string) => note.includes(text)).length;

  /** Fills in the block checkout like a customer. */
  async function checkOut(product: number, pageId: number): Promise<Page> {
    const browser = await launchChromium();
    onTestFinished(() => browser.close());
    const page = await browser.newPage();
    await page.goto(`${shop.url}/?add-to-cart=${product}`);
    await page.goto(`${shop.url}/?page_id=${pageId}`);
    const address = {
      first_name: 'Anna',
      last_name: 'Berg',
      address_1: '1 Main Street',
      city: 'Oakland',
      postcode: '94601',
    };
    await page.locator('#email').fill('anna@example.com');
    for (const [name, text] of Object.entries(address)) await page.locator(`#billing-${name}`).fill(text);
    await page.getByText('USDT & more').waitFor();
    return page;
  }

  test('paid: the order is completed once, with its transaction', async () => {
    const { id, externalId } = await order('25.00');
    const { sent } = await sandbox.pay(externalId, 'exact');
    const seen = await until(id, hasNote('is paid with 25.'));
    expect(seen).toMatchObject({ transactionId: sent[0].txId, completions: 1, isScheduled: true });
    expect(['processing', 'completed']).toContain(seen.status);
    // The same event again changes nothing.
    await replay('invoice.paid', externalId);
    expect(await look(id)).toEqual(seen);
    expect(seen.hpos).toBe(settings().hpos);
  });

  test('late: the order is completed; one that the shop cancelled meanwhile is held for a person', async () => {
    const [open, cancelled] = [await order('26.00'), await order('27.00')];
    await sandbox.pay(open.externalId, 'late');
    const seen = await until(open.id, hasNote(', late.'));
    expect(seen.completions).toBe(1);
    await shop.ask('set', cancelled.id, 'status:cancelled');
    expect(await sandbox.get(`/v1/invoices/${cancelled.invoiceId}?expand=payment`)).toHaveProperty('withdrawnAt');
    await sandbox.pay(cancelled.externalId, 'late');
    const held = await until(cancelled.id, hasNote('the order was already cancelled'));
    expect(held).toMatchObject({ status: 'on-hold', completions: 0 });
  });

  test('twice: the order is completed once, and a note tells of the second payment', async () => {
    const { id, externalId } = await order('28.00');
    await sandbox.pay(externalId, 'twice');
    const seen = await until(id, hasNote('which was already paid'));
    await until(id, ({ completions }) => completions === 1);
    expect(noted(seen, 'which was already paid')).toBe(1);
  });

  test('short: the order stays open, and a note tells what came', async () => {
    const { id, externalId } = await order('29.00');
    await sandbox.pay(externalId, 'short');
    const seen = await until(id, hasNote('It does not pay the invoice'));
    expect(seen).toMatchObject({ status: 'pending', completions: 0 });
  });

  test('expired: the order stays open; who tries again gets a new invoice, and may pay either', async () => {
    const { id, externalId, checkoutUrl } = await order('30.00');
    await sandbox.advance(86_400);
    await until(id, hasNote('has expired'));
    const again = await shop.ask('pay', id);
    expect(again.redirect).not.toBe(checkoutUrl);
    const { attempts, status } = await look(id);
    expect({ status, attempts: attempts.length }).toEqual({ status: 'pending', attempts: 2 });
    await sandbox.pay(externalId, 'exact');
    await until(id, ({ completions }) => completions === 1);
    await sandbox.pay(attempts[1].externalId, 'exact');
    const seen = await until(id, hasNote('was already paid or refunded'));
    expect(seen.completions).toBe(1);
  });

  test('orphaned: the order is held with a note, and completed by a payment that stays', async () => {
    const { id, externalId } = await order('31.00');
    await sandbox.pay(externalId, 'orphaned');
    const seen = await until(id, hasNote('was orphaned, so the invoice waits'));
    expect(seen).toMatchObject({ status: 'on-hold', completions: 0 });
    await sandbox.pay(externalId, 'exact');
    await until(id, ({ completions }) => completions === 1);
  });

  test('webhook lost: the sweep finds what no webhook told', async () => {
    await shop.ask('set', 0, `option:webhook_secret=whsec_${Buffer.alloc(32, 9).toString('base64')}`);
    const { id, externalId } = await order('32.00');
    await sandbox.pay(externalId, 'exact');
    await sandbox.until(externalId, 'PAID');
    expect((await look(id)).completions).toBe(0);
    await Promise.all([shop.ask('sweep'), shop.ask('sweep'), shop.ask('sweep')]);
    await until(id, ({ completions }) => completions === 1);
    await shop.ask('set', 0, `option:webhook_secret=${secret}`);
  });

  test('position lost: the sweep starts again from the first event', async () => {
    await shop.ask('set', 0, `option:webhook_secret=whsec_${Buffer.alloc(32, 9).toString('base64')}`);
    onTestFinished(() => shop.ask('set', 0, `option:webhook_secret=${secret}`).then(() => undefined));
    const { id, externalId } = await order('32.50');
    await sandbox.pay(externalId, 'exact');
    await sandbox.until(externalId, 'PAID');
    await shop.ask('set', 0, `position:${UNKNOWN_EVENT}`);
    await shop.ask('sweep');
    await until(id, ({ completions }) => completions === 1);
    await shop.ask('sweep');
    expect((await look(id)).completions).toBe(1);
  });

  test('webhook forged: 401, and nothing changes; a genuine one that lies completes nothing either', async () => {
    const { id, externalId, invoiceId } = await order('33.00');
    const paid = (await sandbox.get('/v1/events?limit=100&types=invoice.paid')).data[0];
    const event = { ...paid, id: 'evt_lie', data: { ...paid.data, externalId, invoiceId, status: 'PAID' } };
    const before = await look(id);
    for (const [name, { headers, body }] of Object.entries(forge(event, secret))) {
      if (Object.values(headers).some(Array.isArray)) continue;
      expect({ name, status: await send(headers, body) }).toEqual({ name, status: 401 });
    }
    const signed = deliver(event, secret);
    expect(await send(signed.headers, signed.body)).toBe(204);
    const mixed = deliver({ ...event, data: { ...event.data, invoiceId: paid.data.invoiceId } }, secret);
    expect(await send(mixed.headers, mixed.body)).toBe(204);
    expect(await look(id)).toEqual(before);
  });

  test('double click: six at once get one invoice; another total gets another, and the first is withdrawn', async () => {
    const { id } = await shop.ask('create', 0, '34.00');
    const answers = await Promise.all(Array.from({ length: 6 }, () => shop.ask('pay', id)));
    expect(new Set(answers.map(({ redirect }) => redirect)).size).toBe(1);
    await shop.ask('set', id, 'total:35.00');
    const changed = await shop.ask('pay', id);
    expect(changed.redirect).not.toBe(answers[0].redirect);
    const { attempts } = await look(id);
    expect(attempts.map(({ amount }: Json) => amount)).toEqual(['34', '35']);
    expect(await sandbox.get(`/v1/invoices/${attempts[0].invoiceId}?expand=payment`)).toHaveProperty('withdrawnAt');
    // Paying the first invoice anyway doesn't pay this order.
    await sandbox.pay(attempts[0].externalId, 'exact');
    const seen = await until(id, hasNote('the order total has changed'));
    expect(seen).toMatchObject({ status: 'on-hold', completions: 0 });
  });

  test('an order that was cancelled and opened again gets a page that asks for the payment', async () => {
    const { id, checkoutUrl } = await order('35.50');
    await shop.ask('set', id, 'status:cancelled');
    await shop.ask('set', id, 'status:pending');
    const again = await shop.ask('pay', id);
    expect(again.redirect).not.toBe(checkoutUrl);
    const { attempts } = await look(id);
    expect(await sandbox.get(`/v1/invoices/${attempts[1].invoiceId}?expand=payment`)).not.toHaveProperty('withdrawnAt');
  });

  test('cancelled while the server does not answer: the page is withdrawn once it answers', async () => {
    const [cancelled, opened] = [await order('35.60'), await order('35.70')];
    await shop.ask('set', 0, 'option:url=http://127.0.0.1:9');
    onTestFinished(() => shop.ask('set', 0, `option:url=${sandbox.file.baseUrl}`).then(() => undefined));
    for (const { id } of [cancelled, opened]) await shop.ask('set', id, 'status:cancelled');
    for (const { id } of [cancelled, opened]) expect(await shop.ask('retry', id)).toEqual([[id, 1]]);
    await shop.ask('set', 0, `option:url=${sandbox.file.baseUrl}`);
    await shop.ask('set', opened.id, 'status:pending');
    await shop.ask('pay', opened.id);
    for (const { id } of [cancelled, opened]) {
      expect(await shop.ask('retry', id)).toEqual([[id, 2]]);
      expect(await shop.ask('retry', id)).toEqual([]);
    }
    const read = (invoiceId: string) => sandbox.get(`/v1/invoices/${invoiceId}?expand=payment`);
    expect(await read(cancelled.invoiceId)).toHaveProperty('withdrawnAt');
    const { attempts } = await look(opened.id);
    expect(attempts).toHaveLength(2);
    expect(await read(attempts[1].invoiceId)).not.toHaveProperty('withdrawnAt');
  });

  test('paid by another method: a job withdraws the page, and the payment does not wait for it', async () => {
    for (const [total, way] of [
      ['35.80', 'by card'],
      ['35.90', 'by hand'],
      ['35.92', 'by hand, with the same method'],
    ] as const) {
      const { id, invoiceId } = await order(total);
      await shop.ask('card', id, way);
      const read = () => sandbox.get(`/v1/invoices/${invoiceId}?expand=payment`);
      expect({ way, ...(await read()) }).not.toHaveProperty('withdrawnAt');
      // A job for both hooks.
      expect(await shop.ask('retry', id)).toEqual([[id, 0]]);
      expect({ way, ...(await read()) }).toHaveProperty('withdrawnAt');
    }
  });

  test('a customer who may have paid is not told that nothing was charged', async () => {
    const { id } = await order('35.95');
    await shop.ask('set', 0, 'option:url=http://127.0.0.1:9');
    onTestFinished(() => shop.ask('set', 0, `option:url=${sandbox.file.baseUrl}`).then(() => undefined));
    const told = expect.stringContaining('If you have already sent USDT, wait: the shop will notice it.');
    expect(await shop.ask('pay', id)).toEqual({ result: 'failure', told });
  });

  test('an invoice that the server does not show adds a note, and the sweep completes the later orders', async () => {
    const proxy = await startProxy(sandbox.file.baseUrl);
    await shop.ask('set', 0, `option:webhook_secret=whsec_${Buffer.alloc(32, 9).toString('base64')}`);
    await shop.ask('set', 0, `option:url=${proxy.url}`);
    onTestFinished(async () => {
      await shop.ask('set', 0, `option:webhook_secret=${secret}`);
      await shop.ask('set', 0, `option:url=${sandbox.file.baseUrl}`);
      proxy.stop();
    });
    const [hidden, later] = [await order('36.10'), await order('36.20')];
    proxy.fail(`/v1/invoices/${hidden.invoiceId}`, 503, 'INTEGRITY');
    for (const { externalId } of [hidden, later]) {
      await sandbox.pay(externalId, 'exact');
      await sandbox.until(externalId, 'PAID');
    }
    await shop.ask('sweep');
    expect((await look(later.id)).completions).toBe(1);
    const seen = await look(hidden.id);
    expect(seen.completions).toBe(0);
    expect(noted(seen, 'Do not deliver. Check the order again')).toBe(1);
  });

  test('refund: what the operator sent back stands in a note, and the order stays as it is', async () => {
    const { id, externalId } = await order('36.00');
    const { sent } = await sandbox.pay(externalId, 'twice');
    const [stray] = await sandbox.strays(sent.map(({ txId }: Json) => txId));
    const { status } = await until(id, ({ completions }) => completions === 1);
    const txId = await sandbox.refund(stray);
    const seen = await until(id, hasNote(`sent back to the sender in transaction ${txId}`));
    expect(seen.status).toBe(status);
  });

  test('the checkout of blocks offers the method, and leads to the page of an invoice', async () => {
    const { product, page: pageId } = await shop.ask('blocks', 0, '38.00');
    const page = await checkOut(product, pageId);
    await page.getByText('See the amount & the address.').waitFor();
    const button = page.getByRole('button', { name: 'Place Order' });
    // WooCommerce silently ignores clicks while it recalculates the order for the address.
    await eventually(
      () => button.click({ timeout: 1000 }).catch(() => undefined),
      () => page.url().startsWith(`${sandbox.file.baseUrl}/c/`),
    );
    await page.getByText('38.').first().waitFor();
  });

  test('the checkout of blocks says that nothing was charged where the server does not answer', async () => {
    const { product, page: pageId } = await shop.ask('blocks', 0, '39.00');
    await shop.ask('set', 0, 'option:url=http://127.0.0.1:9');
    const page = await checkOut(product, pageId);
    const button = page.getByRole('button', { name: 'Place Order' });
    const said = page.getByText('You were not charged').first();
    await eventually(
      async () => [await button.click({ timeout: 1000 }).catch(() => undefined), await said.isVisible()],
      ([, isSaid]) => isSaid === true,
    );
    await shop.ask('set', 0, `option:url=${sandbox.file.baseUrl}`);
  });

  test('price: an order in euros names the fix while there is no rate, and then is completed at the rate of its creation', async () => {
    await shop.ask('set', 0, 'option:currency=EUR');
    onTestFinished(() => shop.ask('set', 0, 'option:currency=USD').then(() => undefined));
    const { id } = await shop.ask('create', 0, '25.00');
    expect(await look(id)).toMatchObject({ isAvailable: true, noRate: null });
    expect(await shop.ask('pay', id)).toEqual({
      result: 'failure',
      told: expect.stringContaining('You were not charged. Please choose another payment method'),
    });
    expect((await look(id)).noRate).toContain('quittance adapter enable --kind price --currency EUR');
    await sandbox.setRate('EUR', '0.92');
    const { result, redirect } = await shop.ask('pay', id);
    expect(result).toBe('success');
    expect(await (await fetch(redirect)).text()).toMatch(/25(\.0+)?\s*EUR/);
    await sandbox.setRate('EUR', '0.9');
    const { attempts, noRate } = await look(id);
    expect(noRate).toBe(null);
    const { payment } = await sandbox.get(`/v1/invoices/${attempts[0].invoiceId}?expand=payment`);
    expect(payment).toMatchObject({ requestedAmount: '27.173914', price: { amount: '25.000000', currency: 'EUR' } });
    await sandbox.pay(attempts[0].externalId, 'exact');
    const seen = await until(id, hasNote('for 25 EUR at 0.920000 EUR for 1 USDT'));
    expect(seen.completions).toBe(1);
    expect(seen.status).toMatch(/^(processing|completed)$/);
  });

  test('price: an order whose total or currency changed after an attempt without a rate gets an invoice for what it asks now', async () => {
    onTestFinished(() => shop.ask('set', 0, 'option:currency=USD').then(() => undefined));
    await shop.ask('set', 0, 'option:currency=CHF');
    const [total, currency] = [await shop.ask('create', 0, '25.00'), await shop.ask('create', 0, '25.00')];
    for (const { id } of [total, currency]) expect(await shop.ask('pay', id)).toMatchObject({ result: 'failure' });
    await shop.ask('set', currency.id, 'currency:USD');
    expect((await shop.ask('pay', currency.id)).result).toBe('success');
    await shop.ask('set', total.id, 'total:26.00');
    expect(await shop.ask('pay', total.id)).toMatchObject({ result: 'failure' });
    await sandbox.setRate('CHF', '0.8');
    expect((await shop.ask('pay', total.id)).result).toBe('success');
    const seen = [await look(total.id), await look(currency.id)];
    expect(seen.map(({ attempts }) => attempts.map(({ amount, currency: of }: Json) => `${amount} ${of}`))).toEqual([
      ['25 CHF', '26 CHF'],
      ['25 CHF', '25 USD'],
    ]);
    for (const [at, { id }] of [total, currency].entries()) {
      expect(seen[at].attempts[0].invoiceId).toBe('');
      await sandbox.pay(seen[at].attempts[1].externalId, 'exact');
      expect((await until(id, ({ completions }) => completions === 1)).status).toMatch(/^(processing|completed)$/);
    }
  });

  test('a shop in US dollars that does not count them as USDT takes nothing', async () => {
    const { id } = await shop.ask('create', 0, '37.00');
    await shop.ask('set', 0, 'option:usd_is_usdt=no');
    expect(await shop.ask('pay', id)).toEqual({
      result: 'failure',
      told: expect.stringContaining('You were not charged'),
    });
    await shop.ask('set', 0, 'option:usd_is_usdt=yes');
    expect((await look(id)).isAvailable).toBe(true);
  });

  const send = async (headers: Record<string, string | string[]>, body: string) => {
    const texts = Object.entries(headers).map(([name, value]) => [name, String(value)]);
    const options = {
      method: 'POST',
      headers: { ...Object.fromEntries(texts), 'content-type': 'application/json' },
      body,
    };
    return (await fetch(`${shop.url}/?wc-api=quittance`, options)).status;
  };

  async function replay(type: string, externalId: string): Promise<void> {
    const { data } = await sandbox.get(`/v1/events?limit=100&types=${type}`);
    const signed = deliver(
      data.find((event: Json) => event.data.externalId === externalId),
      secret,
    );
    expect(await send(signed.headers, signed.body)).toBe(204);
  }
});
