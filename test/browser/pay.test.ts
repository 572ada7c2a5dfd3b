import { afterAll, beforeAll, expect, test } from 'vitest';
import { untilHeadIsExamined } from '../support/fault-flow.ts';
import {
  type CheckoutTest,
  expire,
  finalise,
  goBlind,
  listenTo,
  newInvoice,
  openPage,
  orphan,
  payInto,
  START_TIMEOUT_MS,
  seeAgain,
  startCheckoutTest,
  type TestInvoice,
  textOf,
  untilHeading,
} from './checkout.ts';

let checkout: CheckoutTest;
beforeAll(async () => {
  checkout = await startCheckoutTest();
}, START_TIMEOUT_MS);
afterAll(() => checkout.stop());

/** Matches texts that must not appear anywhere on a page once a payment was found; otherwise someone could pay twice. */
function payableTextsOf({ address, amountMicro }: TestInvoice): RegExp {
  return new RegExp(`${address}|${amountMicro}|class="qr"|data-from="(?:amount|address)"`);
}

test('a payer watches the page go from waiting over found to paid without a reload', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url);
  await untilHeading(page, 'Waiting for your payment');
  expect(await page.title()).toBe(`Pay ${invoice.amount} USDT to Test shop`);
  expect(await textOf(page, '#amount')).toBe(invoice.amount);
  expect(await textOf(page, '#amount b')).toBe(invoice.amount.slice(-4));
  expect(await textOf(page, '#address')).toBe(invoice.address);
  expect(await textOf(page, '#left')).toMatch(/^(29|30) min left$/);
  expect(await textOf(page, '#when')).toMatch(/^Pay by \d\d:\d\d\nA later payment still counts\.$/);
  expect(await textOf(page, '#check')).toBe('This page updates automatically. Check now');
  expect(await page.content()).toMatch(payableTextsOf(invoice));
  const heard = await listenTo(page);
  await page.evaluate('window.isFirst = true');

  await payInto(service, invoice);
  await untilHeading(page, 'Payment found');
  expect(await page.title()).toBe('Payment found: Test shop');
  expect(await page.content()).not.toMatch(payableTextsOf(invoice));
  expect(await textOf(page, '#progress')).toMatch(/^Found in block \d+\. .*\s+1 of 19$/);
  service.devnet.mine();
  await page.getByText('2 of 19').waitFor();

  await finalise(service, invoice);
  await untilHeading(page, 'Paid');
  expect(await page.title()).toBe('Paid: Test shop');
  expect(await page.content()).not.toMatch(payableTextsOf(invoice));
  expect(await textOf(page, '.total')).toBe(`${invoice.amount} USDT`);
  expect(await textOf(page, 'dl')).toMatch(
    /^Time\s.+\sBlock\s\d+\sTransaction\s([0-9a-f]{4})…([0-9a-f]{4})\s+\1[0-9a-f]{56}\2\s*Copy$/,
  );
  expect(await textOf(page, '#check')).toBe('');
  // Once for each state: the second block changed the count without an announcement.
  expect(await heard()).toEqual([
    'Payment found Do not send again. You can close this page.',
    'Paid Your payment is final. There is nothing more to do.',
  ]);
  expect(await page.evaluate('isFirst')).toBe(true);
  await page.getByRole('link', { name: 'Receipt to print or save' }).click();
  await untilHeading(page, 'Receipt');
  expect(problems).toEqual([]);
  await close();
});

test('an orphaned payment returns calmly to waiting, for everybody with the link; how to pay is shown to whom it failed for, and it can still be paid', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url);
  await payInto(service, invoice);
  await untilHeading(page, 'Payment found');
  await orphan(service, invoice);
  for (const round of ['by itself', 'the link opened again']) {
    await untilHeading(page, 'Waiting for your payment to reappear');
    expect(await textOf(page, '#status'), round).toContain('Do not send again unless');
    expect(await page.locator('#amount').isVisible(), round).toBe(false);
    await page.getByText('The transfer failed? Show how to pay').click();
    expect(await textOf(page, '#amount'), round).toBe(invoice.amount);
    expect(await textOf(page, '#address'), round).toBe(invoice.address);
    expect(await page.getByRole('button', { name: 'Copy the address' }).isVisible(), round).toBe(true);
    expect(await page.locator('#found, #progress').allInnerTexts(), round).toEqual(['', '']);
    if (round === 'by itself') await page.goto(invoice.url);
  }
  await payInto(service, invoice);
  await finalise(service, invoice);
  await untilHeading(page, 'Paid');
  expect(problems).toEqual([]);
  await close();
});

test('while we are blind the page says so and pauses the countdown; then it goes on', async () => {
  const { service, browser } = checkout;
  seeAgain(service);
  await untilHeadIsExamined(service);
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url);
  expect(await page.getByText('We cannot see the TRON network').count()).toBe(0);
  const heard = await listenTo(page);
  goBlind(service);
  await page.getByText('The countdown is paused until we can see the network again.').waitFor();
  expect(await textOf(page, '#amount')).toBe(invoice.amount);
  expect(await page.locator('[data-until]').count()).toBe(0);
  seeAgain(service);
  await page.locator('#left', { hasText: 'min left' }).waitFor();
  expect(await heard()).toEqual([
    'Waiting for your payment We cannot see the TRON network right now. Your payment is safe, and we will find it as soon as we can see the network again.',
    'Waiting for your payment',
  ]);
  expect(problems).toEqual([]);
  await close();
});

test('an expired page keeps listening and turns to paid by itself', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url);
  await expire(service, invoice);
  await untilHeading(page, 'The deadline has passed, but you can still pay');
  expect(await textOf(page, '#amount')).toBe(invoice.amount);
  expect(await textOf(page, '#address')).toBe(invoice.address);
  expect(await textOf(page, '#when')).toMatch(/^The deadline was /);
  await payInto(service, invoice);
  await untilHeading(page, 'Payment found');
  await finalise(service, invoice);
  await untilHeading(page, 'Paid');
  expect(problems).toEqual([]);
  await close();
});
