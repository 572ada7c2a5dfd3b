import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatAmount, microUsdt } from '../../src/core/domain/money.ts';
import { runSql } from '../contract/sql.ts';
import { createInvoice, createTestProject } from '../support/service.ts';
import {
  besidesFailedRequests,
  type CheckoutTest,
  goBlind,
  listenTo,
  newInvoice,
  openPage,
  START_TIMEOUT_MS,
  seeAgain,
  startCheckoutTest,
  stopClock,
  type TestInvoice,
  textOf,
} from './checkout.ts';

let checkout: CheckoutTest;
let invoice: TestInvoice;
beforeAll(async () => {
  checkout = await startCheckoutTest();
  invoice = await newInvoice(checkout.service, '1234.5');
}, START_TIMEOUT_MS);
afterAll(() => checkout.stop());

type Form = { title: string; label: string; button: string; region: string };

const FEE: Form = {
  title: 'Paying from an exchange?',
  label: 'Exchange fee in USDT',
  button: 'Calculate',
  region: '#fee-answer',
};
const PASTE: Form = {
  title: 'Check the address that you copied',
  label: 'The copied address',
  button: 'Compare',
  region: '#paste-answer',
};
const FIND: Form = {
  title: 'I have paid, but this page does not show it',
  label: 'Transaction ID or Tronscan link',
  button: 'Look up',
  region: '#transaction-answer',
};

async function open(page: Page, { title, label }: Form): Promise<void> {
  if (!(await page.getByLabel(label).isVisible())) await page.getByText(title, { exact: true }).click();
}

/** Fills in and submits a form, and returns the first paragraph of its answer. */
async function answerTo(page: Page, form: Form, text: string): Promise<string> {
  const paragraph = page.locator(`${form.region} p`).first();
  await page.evaluate(`document.querySelector('${form.region}').replaceChildren()`);
  await open(page, form);
  await page.getByLabel(form.label).fill(text);
  await page.getByRole('button', { name: form.button }).click();
  return paragraph.innerText();
}

const modes = [
  { mode: 'with JavaScript', javaScriptEnabled: true },
  { mode: 'without JavaScript', javaScriptEnabled: false },
];

test.each(modes)('the amount to type at an exchange is the payable one and its fee, $mode', async (options) => {
  const { page, problems, close } = await openPage(checkout.browser, invoice.url, options);
  const total = formatAmount(microUsdt(invoice.amountMicro + 1_500_000n));
  const reported = `Enter ${total} USDT at the exchange: after its fee of 1.5, exactly ${invoice.amount} will arrive.`;
  for (const fee of ['1.5', '1,5', '۱٫۵', ' 1.50 USDT ']) expect(await answerTo(page, FEE, fee), fee).toBe(reported);
  for (const nonsense of ['1.2.3', '-1', '1e3', '<script>alert(1)</script>']) {
    expect(await answerTo(page, FEE, nonsense), nonsense).toMatch(/^Enter the fee as a number/);
    expect(await page.getByLabel(FEE.label).inputValue()).toBe(nonsense);
  }
  expect(problems).toEqual([]);
  await close();
});

test.each(modes)('a pasted address is compared with that of the invoice, $mode', async (options) => {
  const { page, problems, close } = await openPage(checkout.browser, invoice.url, options);
  const other = checkout.service.devnet.payer.address;
  const said: [pasted: string, reported: string][] = [
    [invoice.address, '✓ The address is the same.'],
    [` ${invoice.address}\t`, '✓ The address is the same.'],
    [other, 'The address is different. Do not send to it. Copy the address again from this page, and check it again.'],
    // Addresses are case-sensitive: with one letter in another case it's another address or none.
    [invoice.address.toLowerCase(), 'This is not a TRON address. Copy the address again from this page.'],
    [`0x${'a1'.repeat(20)}`, 'This is not a TRON address. Copy the address again from this page.'],
  ];
  for (const [pasted, reported] of said) expect(await answerTo(page, PASTE, pasted), pasted).toBe(reported);
  expect(problems).toEqual([]);
  await close();
});

test('the answers come without leaving the page, are announced once, and the total is copied exactly', async () => {
  const { page, problems, close } = await openPage(checkout.browser, invoice.url, {
    permissions: ['clipboard-read', 'clipboard-write'],
    beforeOpening: (page) => stopClock(page),
  });
  const total = formatAmount(microUsdt(invoice.amountMicro + 1_500_000n));
  const heard = await listenTo(page);
  await open(page, FEE);
  await page.getByLabel(FEE.label).fill('1.5');
  await page.keyboard.press('Enter');
  const button = page.locator(FEE.region).getByRole('button', { name: 'Copy the amount' });
  await button.click();
  await button.filter({ hasText: 'Copied' }).waitFor();
  await page.clock.runFor(100);
  expect(await textOf(page, '#said')).toBe(`Copied: ${total}`);
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(total);
  const announced = await heard();
  expect(announced[0]).toBe('Looking up…');
  expect(announced.filter((text) => text.startsWith(`Enter ${total}`))).toHaveLength(1);
  expect(page.url()).toBe(invoice.url);
  expect(problems).toEqual([]);
  await close();
});

test('what is being typed is kept when the page changes by itself', async () => {
  const { service, browser } = checkout;
  const { page, problems, close } = await openPage(browser, invoice.url);
  await open(page, FEE);
  await page.getByLabel(FEE.label).fill('1.5');
  goBlind(service);
  await page.getByText('We cannot see the TRON network').waitFor();
  seeAgain(service);
  expect(await page.getByLabel(FEE.label).inputValue()).toBe('1.5');
  expect(problems).toEqual([]);
  await close();
});

test('who asks too often is told when to ask again, with JavaScript and without', async () => {
  const { service, browser } = checkout;
  const hasty = await newInvoice(service);
  for (const { javaScriptEnabled } of modes) {
    // The comparison ignores seconds.
    service.clock.advance(60_000);
    seeAgain(service);
    service.clock.freeze();
    const { page, problems, close } = await openPage(browser, hasty.url, { javaScriptEnabled });
    const body = new URLSearchParams({ transaction: 'nonsense' });
    for (let asked = 0; asked < 10; asked++) await fetch(`${hasty.url}/ask`, { method: 'POST', body });
    expect(await answerTo(page, FIND, 'nonsense')).toBe('Too many attempts. Try again in 1 second.');
    expect(besidesFailedRequests(problems)).toEqual([]);
    await close();
  }
});

test('without a connection a question is answered by saying so, and is asked again with the connection', async () => {
  const { page, problems, close } = await openPage(checkout.browser, invoice.url);
  await open(page, FEE);
  await page.getByLabel(FEE.label).fill('1.5');
  await page.context().setOffline(true);
  await page.getByRole('button', { name: FEE.button }).click();
  // Nothing was paid yet, so the page must not call a payment safe.
  await page.locator(FEE.region).getByText('No connection. Trying again…', { exact: true }).waitFor();
  await page.context().setOffline(false);
  await page.locator(`${FEE.region} p`, { hasText: 'after its fee of' }).waitFor();
  expect(besidesFailedRequests(problems)).toEqual([]);
  await close();
});

test('without a connection each form keeps what was sent, and gets its own answer later', async () => {
  const { page, problems, close } = await openPage(checkout.browser, invoice.url);
  await open(page, FEE);
  await open(page, PASTE);
  await page.context().setOffline(true);
  for (const [form, text] of [
    [FEE, '1.5'],
    [PASTE, invoice.address],
  ] as const) {
    await page.getByLabel(form.label).fill(text);
    await page.getByRole('button', { name: form.button }).click();
    await page.locator(form.region).getByText('No connection. Trying again…', { exact: true }).waitFor();
    await page.getByLabel(form.label).fill('not finished');
  }
  await page.context().setOffline(false);
  await page.locator(`${FEE.region} p`, { hasText: 'after its fee of 1.5,' }).waitFor();
  await page.locator(`${PASTE.region} p`, { hasText: 'The address is the same.' }).waitFor();
  expect(besidesFailedRequests(problems)).toEqual([]);
  await close();
});

test.each(modes)('a hostile name of a merchant is text, also in answers, $mode', async (options) => {
  const { service, browser } = checkout;
  service.clock.advance(60_000);
  const name = `</title><img src=x onerror=alert(1)>"'&lt;b>`;
  const shop = await createTestProject(service.db);
  await runSql(service, 'update projects set name = $1 where id = $2', [name, shop.id]);
  const { body } = await createInvoice(service, { apiKey: shop.apiKey });
  const { page, problems, close } = await openPage(browser, body.checkoutUrl, options);
  expect(await page.title()).toContain(name);
  expect(await textOf(page, '.merchant')).toBe(`Payment to ${name}`);
  expect(await answerTo(page, FIND, 'a1'.repeat(32))).toContain(`contact ${name}.`);
  expect(await page.locator('img').count()).toBe(0);
  expect(problems).toEqual([]);
  await close();
});
