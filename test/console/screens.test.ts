import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId } from '../../src/domain/ids.ts';
import { newAddress } from '../addresses/shop.ts';
import { START_TIMEOUT_MS } from '../browser/checkout.ts';
import { FITS, findViolations, measureLayout } from '../browser/measure-layout.ts';
import { launchChromium } from '../support/chromium.ts';
import {
  type Made,
  newInvoice,
  payInFull,
  send,
  startTestConsole,
  type TestConsole,
  tokenIn,
  unmatchedIds,
  writeHistory,
} from './console.ts';

let console_: TestConsole;
let browser: Browser;
let invoice: Made;
let open: string;
let change: string;

beforeAll(async () => {
  [console_, browser] = await Promise.all([startTestConsole(), launchChromium()]);
  const { service } = console_;
  await writeHistory(service, service.project, (day) => day % 3);
  invoice = await newInvoice(service, 'قهوة'.repeat(25), '49.90');
  await newInvoice(service, '🧾'.repeat(200));
  await payInFull(service, invoice);
  const { address: to, amountMicro } = invoice;
  await send(service, { to, amountMicro: amountMicro - 1_000_000n }, { to, amountMicro });
  open = encodeId('trf', (await unmatchedIds(service))[0] ?? '');
  const { address } = newAddress();
  const ending = address.slice(-6);
  const form = { list: address, firstEnding: ending, lastEnding: ending };
  const token = tokenIn(await console_.get('/addresses/add'), '/addresses/add');
  const waits = await console_.post('/addresses/add', { ...form, token });
  change = /chg_[0-9a-z]{26}/.exec(waits.text)?.[0] ?? '';
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.close();
  await console_.stop();
});

/** A page of Ana's, with what must never happen on it. */
async function openPage(path: string): Promise<{ page: Page; problems: string[]; close(): Promise<void> }> {
  const context = await browser.newContext({
    extraHTTPHeaders: { 'x-actor': 'ana' },
    viewport: { width: 1280, height: 900 },
  });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('console', (message) => void problems.push(message.text()));
  page.on('pageerror', (error) => void problems.push(String(error)));
  page.on('dialog', (dialog) => void problems.push(dialog.message()));
  await page.goto(console_.url + path);
  return { page, problems, close: () => context.close() };
}

const SCREENS: [name: string, path: () => string][] = [
  ['Today', () => '/'],
  ['Invoices', () => '/invoices?status=PAID'],
  ['New invoice', () => '/invoices/new'],
  ['Invoice', () => `/invoices/${invoice.invoiceId}`],
  ['Unmatched money', () => '/unmatched'],
  ['Transfer', () => `/unmatched/${open}`],
  ['Addresses', () => '/addresses?amount=49.90'],
  ['Add addresses', () => '/addresses/add'],
  ['Derive addresses', () => '/addresses/derive'],
  ['Retire an address', () => `/addresses/${invoice.address}/retire`],
  ['Use an address again', () => `/addresses/${invoice.address}/activate`],
  ['Addresses that wait', () => `/addresses/changes/${change}`],
  ['Confirm addresses', () => `/addresses/changes/${change}/confirm`],
  ['Withdraw addresses', () => `/addresses/changes/${change}/withdraw`],
  ['Address', () => `/find?q=${invoice.address}`],
  ['Not found', () => '/find?q=nothing'],
  ['Sign in', () => '/sign-in'],
];

test.each(SCREENS)(
  '%s: axe finds nothing and everything fits at 320, 768 and 1280 px, light and dark',
  async (_name, path) => {
    const { page, problems, close } = await openPage(path());
    await page.evaluate(`for (const details of document.querySelectorAll('details')) details.open = true`);
    for (const width of [320, 768, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      // Colours do not depend on the width.
      for (const colorScheme of width === 320 ? (['dark', 'light'] as const) : (['light'] as const)) {
        await page.emulateMedia({ colorScheme });
        expect(
          await findViolations(page, colorScheme === 'dark' ? 'colours' : undefined),
          `${width} ${colorScheme}`,
        ).toEqual([]);
      }
      expect(await measureLayout(page), `${width}`).toEqual(FITS);
      const low =
        await page.evaluate(`[...document.querySelectorAll('button, .button, input:not([type=radio], [type=checkbox], [type=hidden]), select, nav a, td > span > a')]
      .filter((element) => element.checkVisibility() && !element.matches('.link') && element.getBoundingClientRect().height < 43.5).map(({ outerHTML }) => outerHTML)`);
      expect(low, `targets of less than 44 px at ${width}`).toEqual([]);
    }
    expect(problems.filter((text) => !text.includes('404'))).toEqual([]);
    await close();
  },
);

test('a person finds, walks, resolves and copies by keys alone, and can switch the keys off', async () => {
  const { page, problems, close } = await openPage('/');
  await page.keyboard.press('g');
  await page.keyboard.press('u');
  await page.waitForURL('**/unmatched');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('r');
  await page.waitForURL('**/unmatched/trf_*#decide');
  await page.getByLabel('Kept').check();
  await page.getByLabel('Note (optional)').fill('by hand');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/unmatched?resolved=1');
  expect(await page.getByRole('status').first().textContent()).toContain('The decision is recorded');
  await page.keyboard.press('/');
  expect(await page.evaluate('document.activeElement.id')).toBe('q');
  await page.keyboard.type(`${invoice.invoiceId}\n`);
  await page.waitForURL(`**/invoices/${invoice.invoiceId}`);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy link for the payer' }).click();
  await page.getByRole('button', { name: 'Copy link for the payer' }).getByText('Copied').waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toContain('/c/');
  await page.getByRole('heading', { level: 1 }).click();
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  expect(await findViolations(page)).toEqual([]);
  await page.getByLabel('Single keys are shortcuts').uncheck();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.keyboard.press('/');
  expect(await page.evaluate('document.activeElement.id')).not.toBe('q');
  expect(problems).toEqual([]);
  await close();
});

test('without JavaScript an invoice is made, and nothing is offered that would do nothing', async () => {
  const context = await browser.newContext({ extraHTTPHeaders: { 'x-actor': 'ana' }, javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${console_.url}/invoices/new`);
  await page.getByLabel('Amount in USDT').fill('7');
  await page.getByLabel('Order id').fill('without a script');
  await page.getByRole('button', { name: 'Make the invoice' }).click();
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Invoice made');
  expect(await page.getByRole('img', { name: 'QR code of the link' }).isVisible()).toBe(true);
  expect(await page.getByRole('button').allTextContents()).toEqual(['Find', 'Sign out']);
  await context.close();
});
