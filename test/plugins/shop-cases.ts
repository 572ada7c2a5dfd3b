import { expect, test } from 'vitest';
// The SDK signs like Quittance.
import { sign } from '../../packages/sdk/src/webhooks/sign.ts';
import { call, eventually, type Json } from '../support/service.ts';
import type { QuittanceWorld } from './quittance-world.ts';

/** An order that waits for its payment. */
export type ShopOrder = { id: string; invoiceId: string; externalId: string; checkoutUrl: string };

/** The shop's view of an order: `settled` counts settled payments; `notes` is what its merchant reads. */
type Seen = { isPaid: boolean; settled: number; notes: string[] };

/** A real shop, as its customer and its merchant use it. */
export type Shop = {
  hookUrl: string;
  /** Orders this many of a product and proceeds to payment, with several simultaneous clicks. */
  order(quantity: number, clicks?: number): Promise<ShopOrder>;
  /** The same as one click with prices in euros, which Quittance converts. Throws what the shop says if it gets no invoice. */
  orderInEuros(quantity: number): Promise<ShopOrder>;
  cancel(order: ShopOrder): Promise<void>;
  read(order: ShopOrder): Promise<Seen>;
  /** Waits until the shop has refused a forged webhook; `status` is its answer. */
  untilForgeryIsRefused(status: number): Promise<void>;
  /** Whether the merchant's notes come from the job for lost webhooks instead of the webhook. */
  isNotedBySweep: boolean;
  /** Runs the plugin's own job for lost webhooks. */
  sweep(): Promise<void>;
  /** Replaces the stored position in the feed with an event that doesn't exist, as after Quittance is restored from a backup. */
  losePosition(): Promise<void>;
  /** Asks the shop to refund a paid order, and returns the state of that refund. */
  refund(order: ShopOrder): Promise<string>;
};

/** No Quittance has this event. */
export const UNKNOWN_EVENT = 'evt_01h455vb4pex5vsknk084sn02q';

type Worlds = () => { shop: Shop; quittance: QuittanceWorld };

const until = (shop: Shop, order: ShopOrder, isDone: (seen: Seen) => boolean) =>
  eventually(() => shop.read(order), isDone);
const untilNoted = (shop: Shop, order: ShopOrder, text: string) =>
  eventually(async () => {
    if (shop.isNotedBySweep) await shop.sweep();
    return shop.read(order);
  }, hasNote(text));
const hasNote = (text: string) => (seen: Seen) => seen.notes.some((note) => note.includes(text));
const countNotes = (seen: Seen, text: string) => seen.notes.filter((note) => note.includes(text)).length;

/** The test cases of every plugin. Those after webhooks are disabled come last. */
export function testShop(worlds: Worlds): void {
  testPrices(worlds);
  testPayments(worlds);
  testMistakes(worlds);
  testHostility(worlds);
}

function testPrices(worlds: Worlds): void {
  test('price: an order in euros names the fix while there is no rate, and then is settled at the rate of its creation', async () => {
    const { shop, quittance } = worlds();
    const setRate = (rate: string) =>
      quittance.run(
        ...['adapter', 'enable', '--project', quittance.projectId, '--kind', 'price', '--currency', 'EUR'],
        ...['--rate', rate],
      );
    const fix =
      'has no rate for EUR. The operator can set a rate with: quittance adapter enable --kind price --currency EUR';
    await expect(shop.orderInEuros(1)).rejects.toThrow(fix);
    await setRate('0.92');
    const order = await shop.orderInEuros(1);
    await setRate('0.9');
    const { payment } = await quittance.read(order.invoiceId);
    expect(payment).toMatchObject({ requestedAmount: '27.173914', price: { amount: '25.000000', currency: 'EUR' } });
    await quittance.pay(order.checkoutUrl, 'exact');
    expect(await until(shop, order, ({ isPaid }) => isPaid)).toMatchObject({ settled: 1 });
  });
}

function testPayments(worlds: Worlds): void {
  test('paid: the exact transfer settles the order, once', async () => {
    const { shop, quittance } = worlds();
    const order = await shop.order(1);
    expect(await shop.read(order)).toMatchObject({ isPaid: false, settled: 0 });
    await quittance.pay(order.checkoutUrl, 'exact');
    expect(await until(shop, order, ({ isPaid }) => isPaid)).toMatchObject({ settled: 1 });
    await shop.sweep();
    await shop.sweep();
    expect(await shop.read(order)).toMatchObject({ isPaid: true, settled: 1 });
  });

  test('late: a payment after the expiry settles the order, and one after its cancellation is told to the merchant', async () => {
    const { shop, quittance } = worlds();
    const order = await shop.order(2);
    await quittance.pay(order.checkoutUrl, 'late');
    await until(shop, order, ({ isPaid }) => isPaid);
    expect(countNotes(await untilNoted(shop, order, 'late'), 'late')).toBe(1);
    const cancelled = await shop.order(3);
    await shop.cancel(cancelled);
    await quittance.pay(cancelled.checkoutUrl, 'exact');
    const seen = await untilNoted(shop, cancelled, 'PAID AND NOT SETTLED');
    expect(seen).toMatchObject({ isPaid: false, settled: 0 });
    await shop.sweep();
    expect(countNotes(await shop.read(cancelled), 'PAID AND NOT SETTLED')).toBe(1);
  });

  test('twice: the order is settled once, and the second transfer is told to the merchant', async () => {
    const { shop, quittance } = worlds();
    const order = await shop.order(4);
    await quittance.pay(order.checkoutUrl, 'twice');
    await until(shop, order, ({ isPaid }) => isPaid);
    expect(await untilNoted(shop, order, 'PAID TWICE')).toMatchObject({ isPaid: true, settled: 1 });
  });

  test('refund: the shop never says that it sent money, and a transfer that was sent back is recorded', async () => {
    const { shop, quittance } = worlds();
    const order = await shop.order(5);
    await quittance.pay(order.checkoutUrl, 'twice');
    await until(shop, order, ({ isPaid }) => isPaid);
    await untilNoted(shop, order, 'PAID TWICE');
    const events = await quittance.events();
    const duplicate = events.find(
      ({ type, data }) => type === 'transfer.duplicate' && data.invoiceId === order.invoiceId,
    );
    await quittance.refund(duplicate.data);
    await untilNoted(shop, order, 'Sent back');
    expect(await shop.refund(order)).not.toMatch(/settled|succe/i);
  });
}

function testMistakes(worlds: Worlds): void {
  test('short: less than the amount settles nothing and adds a note for the merchant, and the right one after it settles the order', async () => {
    const { shop, quittance } = worlds();
    const order = await shop.order(6);
    const { sent } = await quittance.pay(order.checkoutUrl, 'short');
    await eventually(
      () => quittance.events(),
      (events) => events.some(({ type, data }) => type === 'transfer.unmatched' && data.txId === sent[0].txId),
    );
    await shop.sweep();
    const seen = await untilNoted(shop, order, 'probably for this order');
    expect(seen).toMatchObject({ isPaid: false, settled: 0 });
    expect(countNotes(seen, sent[0].txId)).toBe(1);
    await quittance.pay(order.checkoutUrl, 'exact');
    await until(shop, order, ({ isPaid }) => isPaid);
  });

  test('expired: the order stays unpaid', async () => {
    const { shop, quittance } = worlds();
    const order = await shop.order(7);
    await quittance.expireAll();
    await eventually(
      () => quittance.read(order.invoiceId),
      ({ status }) => status === 'EXPIRED',
    );
    await shop.sweep();
    expect(await shop.read(order)).toMatchObject({ isPaid: false, settled: 0 });
  });

  test('orphaned: a payment whose block is gone settles nothing, and is told', { retry: 2 }, async () => {
    const { shop, quittance } = worlds();
    const order = await shop.order(8);
    const { orphaned } = await quittance.pay(order.checkoutUrl, 'orphaned');
    // On a very busy machine, the block may be gone before it was seen.
    expect(orphaned.wasConfirming).toBe(true);
    expect(await untilNoted(shop, order, 'orphaned')).toMatchObject({ isPaid: false, settled: 0 });
    await quittance.pay(order.checkoutUrl, 'exact');
    await until(shop, order, ({ isPaid }) => isPaid);
  });

  test('double click: three requests at once leave one invoice that can be paid', async () => {
    const { shop, quittance } = worlds();
    const order = await shop.order(9, 3);
    expect(await findPayable(quittance, '225.000000')).toEqual([order.invoiceId]);
    await quittance.pay(order.checkoutUrl, 'exact');
    expect(await until(shop, order, ({ isPaid }) => isPaid)).toMatchObject({ settled: 1 });
  });
}

/** Returns the payable invoices of an amount, which only one case uses. */
async function findPayable({ url, apiKey, read }: QuittanceWorld, amount: string): Promise<string[]> {
  const { body } = await call(`${url}/v1/invoices?limit=100`, { headers: { 'x-api-key': apiKey } });
  const all: Json[] = await Promise.all(body.data.map(({ invoiceId }: Json) => read(invoiceId)));
  const payable = all.filter(({ payment, withdrawnAt }) => payment.requestedAmount === amount && !withdrawnAt);
  return payable.map(({ invoiceId }) => invoiceId);
}

function testHostility(worlds: Worlds): void {
  test('webhook forged: it is refused, and a rightly signed lie changes nothing', async () => {
    const { shop, quittance } = worlds();
    const order = await shop.order(10);
    const { invoiceId, externalId, checkoutUrl } = order;
    const invoice = await quittance.read(invoiceId);
    const event = {
      ...{ id: UNKNOWN_EVENT, type: 'invoice.paid', timestamp: new Date().toISOString() },
      ...{ projectId: quittance.projectId, network: 'TRON', sequence: 1 },
      data: { ...invoice, status: 'PAID', externalId, checkoutUrl },
    };
    const send = async (secret: string) => {
      const { body, headers } = await sign(event, secret);
      const response = await fetch(shop.hookUrl, {
        method: 'POST',
        body,
        headers: { ...headers, 'content-type': 'application/json' },
      });
      await response.body?.cancel();
      return response.status;
    };
    const before = await shop.read(order);
    await shop.untilForgeryIsRefused(await send(`whsec_${Buffer.alloc(32, 7).toString('base64')}`));
    expect(await shop.read(order)).toEqual(before);
    expect(await send(quittance.secret)).toBeLessThan(300);
    expect(await shop.read(order)).toMatchObject({ isPaid: false, settled: 0 });
  });

  test('webhook lost: the sweep settles the order', async () => {
    const { shop, quittance } = worlds();
    await quittance.stopWebhooks();
    const order = await shop.order(11);
    await quittance.pay(order.checkoutUrl, 'exact');
    await eventually(
      () => quittance.read(order.invoiceId),
      ({ status }) => status === 'PAID',
    );
    expect(await shop.read(order)).toMatchObject({ isPaid: false, settled: 0 });
    await shop.sweep();
    expect(await until(shop, order, ({ isPaid }) => isPaid)).toMatchObject({ settled: 1 });
  });

  test('position lost: the sweep starts again from the first event, and then continues from the last', async () => {
    const { shop, quittance } = worlds();
    const order = await shop.order(12);
    await quittance.pay(order.checkoutUrl, 'exact');
    await eventually(
      () => quittance.read(order.invoiceId),
      ({ status }) => status === 'PAID',
    );
    await shop.losePosition();
    await shop.sweep();
    expect(await until(shop, order, ({ isPaid }) => isPaid)).toMatchObject({ settled: 1 });
    await shop.sweep();
    expect(await shop.read(order)).toMatchObject({ isPaid: true, settled: 1 });
  });
}
