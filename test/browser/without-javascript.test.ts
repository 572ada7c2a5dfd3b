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
  START_TIMEOUT_MS,
  seeAgain,
  selectionOf,
  startCheckoutTest,
  textOf,
  untilHeading,
} from './checkout.ts';

let checkout: CheckoutTest;
beforeAll(async () => {
  checkout = await startCheckoutTest();
}, START_TIMEOUT_MS);
afterAll(() => checkout.stop());

test('everything needed to pay is there without JavaScript, and "Check now" leads from state to state', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, { javaScriptEnabled: false });
  const checkNow = async () => {
    const loaded = page.waitForEvent('load');
    await page.getByRole('link', { name: 'Check now' }).click();
    await loaded;
  };
  await untilHeading(page, 'Waiting for your payment');
  expect(await textOf(page, '#amount')).toBe(invoice.amount);
  expect(await textOf(page, '#address')).toBe(invoice.address);
  expect(await page.locator('.qr').isVisible()).toBe(true);
  expect(await textOf(page, '#when')).toMatch(
    /^Pay by \d\d:\d\d UTC\nA later payment still counts\.\n(29|30) minutes left when this page was opened\.$/,
  );
  // Buttons that would do nothing are hidden.
  expect(await page.getByRole('button').count()).toBe(0);
  expect(await textOf(page, 'main')).not.toContain('updates automatically');

  goBlind(service);
  await checkNow();
  expect(await textOf(page, '#status')).toContain('Your payment is safe');
  expect(await textOf(page, '#when')).toContain('The countdown is paused');
  seeAgain(service);
  await eventually(
    () => call(`${invoice.url}/status`),
    ({ body }) => !body.blind,
  );

  await payInto(service, invoice);
  await checkNow();
  await untilHeading(page, 'Payment found');
  expect(await page.content()).not.toMatch(new RegExp(`${invoice.address}|${invoice.amountMicro}|class="qr"`));
  expect(await textOf(page, '#progress')).toContain('1 of 19');
  await orphan(service, invoice);
  await checkNow();
  await untilHeading(page, 'Waiting for your payment to reappear');
  await page.getByText('The transfer failed? Show how to pay').click();
  expect(await textOf(page, '#amount')).toBe(invoice.amount);
  await expire(service, invoice);
  await checkNow();
  expect(await textOf(page, '#when')).toBe('');
  await page.getByText('The transfer failed? Show how to pay').click();
  expect(await textOf(page, '#address')).toBe(invoice.address);
  await payInto(service, invoice);
  await finalise(service, invoice);
  await checkNow();
  await untilHeading(page, 'Paid');
  expect(await textOf(page, '#check')).toBe('');
  await page.getByRole('link', { name: 'Receipt to print or save' }).click();
  await untilHeading(page, 'Receipt');
  expect(problems).toEqual([]);
  await close();
});

test('one tap selects exactly the amount or the address', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, close } = await openPage(browser, invoice.url);
  for (const what of ['amount', 'address'] as const) {
    await page.locator(`#${what}`).click();
    expect(await selectionOf(page)).toBe(invoice[what]);
  }
  await close();
});
