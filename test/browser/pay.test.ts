import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, eventually } from '../support/service.ts';
import {
  type CheckoutTest,
  expire,
  finalise,
  goBlind,
  newInvoice,
  openPage,
  orphan,
  payInto,
  poll,
  START_TIMEOUT_MS,
  seeAgain,
  startCheckoutTest,
  textOf,
  untilHeading,
  withClock,
} from './checkout.ts';

let checkout: CheckoutTest;
beforeAll(async () => {
  checkout = await startCheckoutTest();
}, START_TIMEOUT_MS);
afterAll(() => checkout.stop());

/** Notes every change of the announced region from now on. A page that is loaded anew forgets it. */
const START_LISTENING = `
  window.heard = [];
  const region = document.querySelector('#status');
  const note = () => heard.push(region.innerText.replace(/\\s+/g, ' ').trim());
  new MutationObserver(note).observe(region, { childList: true, characterData: true, subtree: true });`;

test('a payer watches the page go from waiting over found to paid without a reload', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url);
  await untilHeading(page, 'Waiting for your payment');
  expect(await textOf(page, '#amount')).toBe(invoice.amount);
  expect(await textOf(page, '#amount b')).toBe(invoice.amount.slice(-4));
  expect(await textOf(page, '#address')).toBe(invoice.address);
  expect(await textOf(page, '#when')).toMatch(/^Pay by .+\n(29|30) minutes left\. A later payment still counts\.$/);
  await page.evaluate(START_LISTENING);

  await payInto(service, invoice);
  await untilHeading(page, 'Payment found');
  expect(await page.locator('#amount, #address, .qr, [data-copy]').count()).toBe(0);
  expect(await textOf(page, 'main')).not.toContain(invoice.address);
  expect(await textOf(page, '#progress')).toContain('1 of 19');
  expect(await page.title()).toBe('Payment found: Test shop');

  service.devnet.mine();
  await page.getByText('2 of 19').waitFor();
  await finalise(service, invoice);
  await untilHeading(page, 'Paid');
  expect(await textOf(page, 'dl')).toContain(invoice.amount);
  expect(await textOf(page, '#check')).toBe('');
  // Once for each state: the second block changed the count and announced nothing.
  expect(await page.evaluate('heard')).toEqual([
    'Payment found Do not send again. You can close this page.',
    'Paid Your payment is final. There is nothing more to do.',
  ]);
  expect(problems).toEqual([]);
  await close();
});

test('an orphaned payment returns calmly to waiting, with amount and address, also after a reload, and can still be paid', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, withClock);
  await payInto(service, invoice);
  await poll(page);
  await untilHeading(page, 'Payment found');
  await orphan(service, invoice);
  await poll(page);
  for (const round of ['by itself', 'reloaded']) {
    await untilHeading(page, 'Waiting for your payment again');
    expect(await textOf(page, '#status'), round).toContain('Do not send again unless');
    expect(await textOf(page, '#amount'), round).toBe(invoice.amount);
    expect(await textOf(page, '#address'), round).toBe(invoice.address);
    expect(await page.getByRole('button', { name: 'Copy the address' }).isVisible(), round).toBe(true);
    expect(await page.locator('#found, #progress').allInnerTexts(), round).toEqual(['', '']);
    if (round === 'by itself') await page.reload();
  }
  await payInto(service, invoice);
  await finalise(service, invoice);
  await poll(page);
  await untilHeading(page, 'Paid');
  expect(problems).toEqual([]);
  await close();
});

test('an expired page keeps listening and turns to paid by itself', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, withClock);
  await expire(service, invoice);
  await poll(page);
  await untilHeading(page, 'The time is over, but you can still pay');
  expect(await textOf(page, '#amount')).toBe(invoice.amount);
  expect(await textOf(page, '#when')).toMatch(/^The time to pay ended: /);
  await payInto(service, invoice);
  await finalise(service, invoice);
  await poll(page);
  await untilHeading(page, 'Paid');
  expect(problems).toEqual([]);
  await close();
});

test('while we are blind the page says so and the deadline stands still; then it goes on', async () => {
  const { service, browser } = checkout;
  seeAgain(service);
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, withClock);
  expect(await page.locator('.notice').count()).toBe(0);
  goBlind(service);
  await poll(page);
  await page.getByText('We cannot see the TRON network right now.').waitFor();
  expect(await textOf(page, '#when')).toContain('The time to pay waits.');
  expect(await textOf(page, '#amount')).toBe(invoice.amount);
  seeAgain(service);
  await eventually(
    () => call(`${invoice.url}/status`),
    ({ body }) => !body.blind,
  );
  await poll(page);
  await page.locator('.notice').waitFor({ state: 'detached' });
  expect(await textOf(page, '#when')).toContain('minutes left');
  expect(problems).toEqual([]);
  await close();
});

test('without a connection the page says so, keeps what it shows, and catches up at once when it is back', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, close } = await openPage(browser, invoice.url, withClock);
  await page.context().setOffline(true);
  expect(await textOf(page, '#check span')).toBe('This page updates itself.');
  await poll(page);
  await page.clock.runFor(6000);
  await page.getByText('No connection. Trying again…').first().waitFor();
  expect(await textOf(page, '#said')).toBe('No connection. Trying again…');
  expect(await textOf(page, '#amount')).toBe(invoice.amount);
  await payInto(service, invoice);
  // No timer is run: the event of the browser is enough.
  await page.context().setOffline(false);
  await untilHeading(page, 'Payment found');
  expect(await textOf(page, '#check span')).toBe('This page updates itself.');
  await close();
});

test('coming back to the page looks at once, also past a request that never ends', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, close } = await openPage(browser, invoice.url, withClock);
  let held = 0;
  await page.route('**/fragment*', (route) => (held++ === 0 ? undefined : route.continue()));
  await poll(page);
  await payInto(service, invoice);
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
  await untilHeading(page, 'Payment found');
  expect(held).toBeGreaterThan(1);
  await finalise(service, invoice);
  await page.evaluate(`dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`);
  await untilHeading(page, 'Paid');
  await close();
});
