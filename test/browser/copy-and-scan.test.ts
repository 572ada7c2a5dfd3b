import jsqr from 'jsqr';
import type { Page } from 'playwright-core';
import { PNG } from 'pngjs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/service.ts';
import {
  type CheckoutTest,
  finalise,
  newInvoice,
  openPage,
  payInto,
  START_TIMEOUT_MS,
  selectionOf,
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

const permissions = ['clipboard-read', 'clipboard-write'];

/** Waits until a page with a stopped clock announces this. Otherwise, the page may remove it before a busy machine has seen it. */
async function untilSaid(page: Page, text: string): Promise<void> {
  await eventually(
    async () => {
      await page.clock.runFor(10);
      return textOf(page, '#said');
    },
    (said) => said.includes(text),
  );
}

test.each(['amount', 'address'] as const)(
  'the button puts exactly the %s on the clipboard and says so',
  async (what) => {
    const { page, problems, close } = await openPage(checkout.browser, invoice.url, {
      permissions,
      beforeOpening: (page) => stopClock(page),
    });
    const button = page.getByRole('button', { name: `Copy the ${what}` });
    await button.click();
    await button.filter({ hasText: 'Copied' }).waitFor();
    await button.click();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(invoice[what]);
    await page.clock.runFor(100);
    expect(await textOf(page, '#said')).toBe(`Copied: ${invoice[what]}`);
    // The label also returns after two clicks.
    await page.clock.runFor(2500);
    expect(await button.innerText()).toBe('Copy');
    expect(await textOf(page, '#said')).toBe('');
    expect(problems).toEqual([]);
    await close();
  },
);

test('who taps the QR code has copied the address', async () => {
  const { page, problems, close } = await openPage(checkout.browser, invoice.url, {
    permissions,
    beforeOpening: (page) => stopClock(page),
  });
  await page.locator('.qr').click();
  await untilSaid(page, `Copied: ${invoice.address}`);
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(invoice.address);
  expect(problems).toEqual([]);
  await close();
});

test('the receipt copies its transaction', async () => {
  const { service, browser } = checkout;
  const paid = await newInvoice(service);
  await payInto(service, paid);
  await finalise(service, paid);
  const { page, problems, close } = await openPage(browser, `${paid.url}/receipt`, {
    permissions,
    beforeOpening: (page) => stopClock(page),
  });
  await page.getByRole('button', { name: 'Copy: Transaction' }).click();
  const txId = await textOf(page, '#transaction');
  expect(txId).toMatch(/^[0-9a-f]{64}$/);
  await untilSaid(page, `Copied: ${txId}`);
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(txId);
  expect(problems).toEqual([]);
  await close();
});

test.each(['amount', 'address'] as const)(
  'without the clipboard API, as on plain HTTP, the %s is copied exactly too',
  async (what) => {
    const { page, problems, close } = await openPage(checkout.browser, invoice.url, {
      permissions,
      beforeOpening: async (page) => {
        await stopClock(page);
        await page.addInitScript(`Object.defineProperty(Navigator.prototype, 'clipboard', { value: undefined })`);
      },
    });
    await page.getByRole('button', { name: `Copy the ${what}` }).click();
    await untilSaid(page, `Copied: ${invoice[what]}`);
    expect(await selectionOf(page)).toBe(invoice[what]);
    expect(problems).toEqual([]);
    await close();
  },
);

test('where copying is refused, the string is selected and the payer told to copy it', async () => {
  const { page, close } = await openPage(checkout.browser, invoice.url, {
    beforeOpening: async (page) => {
      await stopClock(page);
      await page.addInitScript(`
        navigator.clipboard.writeText = () => Promise.reject(new Error('refused'));
        document.execCommand = () => false;`);
    },
  });
  const button = page.getByRole('button', { name: 'Copy the address' });
  await button.click();
  await button.filter({ hasText: 'Selected' }).waitFor();
  await untilSaid(page, 'copy it by hand');
  expect(await selectionOf(page)).toBe(invoice.address);
  await close();
});

const looks = [
  { name: 'light', colorScheme: 'light' },
  { name: 'dark', colorScheme: 'dark' },
  { name: 'forced colours', colorScheme: 'dark', forcedColors: 'active' },
  { name: 'a small and sharp screen', viewport: { width: 320, height: 640 }, deviceScaleFactor: 2 },
] as const;

test.each(looks)('the QR code holds the bare address: $name', async ({ name: _name, ...options }) => {
  const { page, close } = await openPage(checkout.browser, invoice.url, options);
  const image = PNG.sync.read(await page.getByRole('img', { name: 'QR code of the address' }).screenshot());
  const code = jsqr.default(new Uint8ClampedArray(image.data), image.width, image.height, {
    inversionAttempts: 'dontInvert',
  });
  expect(code?.data).toBe(invoice.address);
  await close();
});

test('the QR code scans without the style too', async () => {
  const { page, close } = await openPage(checkout.browser, invoice.url, { colorScheme: 'dark' });
  await page.evaluate(`document.querySelector('style').remove()`);
  const image = PNG.sync.read(await page.locator('.qr').screenshot());
  expect(jsqr.default(new Uint8ClampedArray(image.data), image.width, image.height)?.data).toBe(invoice.address);
  await close();
});
