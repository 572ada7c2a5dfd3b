import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { START_TIMEOUT_MS } from '../browser/checkout.ts';
import { launchChromium } from '../support/chromium.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { newInvoice, payInFull, startTestConsole, type TestConsole } from './console.ts';

let console_: TestConsole;
let browser: Browser;
beforeAll(async () => {
  [console_, browser] = await Promise.all([startTestConsole(), launchChromium()]);
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.close();
  await console_.stop();
});

async function openPage(path: string): Promise<Page> {
  const context = await browser.newContext({ extraHTTPHeaders: { 'x-actor': 'ana' } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(console_.url + path);
  return page;
}

test('an invoice that is paid while its page is open turns paid there, and what was focused stays', async () => {
  const invoice = await newInvoice(console_.service, 'seen live');
  const page = await openPage(`/invoices/${invoice.invoiceId}`);
  await page.evaluate(`window.isTheSame = true`);
  await page.getByRole('link', { name: 'Open as the payer' }).focus();
  await payInFull(console_.service, invoice);
  await page.locator('#state').getByText('paid', { exact: false }).waitFor();
  await page.locator('#events').getByText('invoice.paid').first().waitFor();
  expect(await page.evaluate('window.isTheSame')).toBe(true);
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Open as the payer');
  expect(await page.locator('#verdict').getAttribute('aria-live')).toBe('polite');
});

test('a list changes rows where they stand, and says how many are new instead of moving them', async () => {
  const invoice = await newInvoice(console_.service, 'stands still');
  const page = await openPage('/invoices');
  const top = await page.locator('a.row').first().textContent();
  await newInvoice(console_.service, 'comes later');
  await payInFull(console_.service, invoice);
  await page.getByRole('link', { name: '1 new: show' }).waitFor();
  await page.locator('tr', { hasText: 'stands still' }).getByText('Paid', { exact: false }).first().waitFor();
  expect(await page.locator('a.row').first().textContent()).toBe(top);
  await page.getByRole('link', { name: '1 new: show' }).click();
  await page.locator('a.row').first().getByText('comes later').waitFor();
});

test('a page whose connection is lost says as of when it is, and catches up when it is back', async () => {
  const page = await openPage('/');
  await page.context().setOffline(true);
  await console_.app.server.closeAllConnections();
  const banner = page.getByText(/Not connected: as of \d\d:\d\d:\d\d UTC/);
  await banner.waitFor();
  await page.context().setOffline(false);
  await banner.waitFor({ state: 'hidden' });
});

test('nobody hears anything without a session, and there is a bound to how many do, who keep no page from being answered', async () => {
  const ask = (headers: Record<string, string>) => fetch(`${console_.url}/live`, { headers });
  expect((await ask({})).status).toBe(204);
  const streams = await Promise.all(Array.from({ length: 202 }, () => ask({ 'x-actor': 'vera' })));
  const refused = streams.filter(({ status }) => status === 503).length;
  expect((await console_.get('/')).status).toBe(200);
  await Promise.all(streams.map(({ body }) => body?.cancel()));
  // The browser of a test before may have one open.
  expect([2, 3]).toContain(refused);
});
