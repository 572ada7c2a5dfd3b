import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PageState, stateOf } from '../../src/faces/checkout/page/page-state.ts';
import { checkoutPage, FULL_BRAND, PAGE_VIEWS, suspendedPage } from '../support/checkout-page.ts';
import { launchChromium } from '../support/chromium.ts';
import { openPage, START_TIMEOUT_MS, stopClock, textOf, untilHeading } from './checkout.ts';
import { type RenderedPages, startRenderedPages } from './rendered-pages.ts';

let pages: RenderedPages;
let browser: Browser;
beforeAll(async () => {
  [pages, browser] = await Promise.all([startRenderedPages(), launchChromium()]);
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.close();
  await pages.stop();
});

const SUSPENDED = 'Payment is suspended. Do not pay';

/** Everything that could be used to pay. */
const HOW_TO_PAY = /TPL66VK2gCXN|123456\.99|class="qr"|data-copy=|data-wallet|trustwallet/;

/** Pages without anything to copy. */
const NOTHING_TO_COPY: readonly PageState[] = ['withdrawn', 'settled', 'claimed', 'suspended'];

// A paid page no longer has a stream.
const OPEN = PAGE_VIEWS.filter((view) => stateOf(checkoutPage(view)) !== 'paid');

test.each(OPEN)(
  'an open page in the state %s loses everything to pay with, and gets it back by itself',
  async (state) => {
    const before = checkoutPage(state, { brand: FULL_BRAND });
    const url = pages.add(before);
    const { page, problems, close } = await openPage(browser, url);
    await page.locator('#check', { hasText: 'updates automatically' }).waitFor();
    await page.evaluate(`window.isSame = true; document.querySelector('[name=transaction]').value = 'abc'`);
    const heading = await page.locator('h1').innerText();
    pages.change(url, suspendedPage());
    await untilHeading(page, SUSPENDED);
    expect(await page.content()).not.toMatch(HOW_TO_PAY);
    expect(await page.title()).toBe(SUSPENDED);
    // The answer to a look-up couldn't be relied on.
    expect(await page.locator('#find').isVisible()).toBe(false);
    const shown = await page.locator('main').innerText();
    expect(shown).toContain('keep the transaction ID and contact the shop');
    expect(shown).not.toContain('is safe');
    pages.change(url, before);
    await untilHeading(page, heading);
    expect(HOW_TO_PAY.test(await page.content())).toBe(!NOTHING_TO_COPY.includes(stateOf(before)));
    expect(await page.evaluate(`[isSame, document.querySelector('[name=transaction]').value]`)).toEqual([true, 'abc']);
    expect(problems).toEqual([]);
    await close();
  },
);

test('a page that was opened while payment is suspended becomes the whole page by itself', async () => {
  const url = pages.add(suspendedPage());
  const { page, close } = await openPage(browser, url);
  await untilHeading(page, SUSPENDED);
  await page.locator('#check', { hasText: 'updates automatically' }).waitFor();
  expect(await page.content()).not.toMatch(HOW_TO_PAY);
  pages.change(url, checkoutPage('waiting', { brand: FULL_BRAND }));
  await untilHeading(page, 'Waiting for your payment');
  await page.getByRole('button', { name: 'Copy the address' }).waitFor();
  expect(await page.locator('header').innerText()).toContain(FULL_BRAND.name);
  await close();
});

test('what was copied just before is not announced any more', async () => {
  const url = pages.add(checkoutPage('waiting'));
  const { page, close } = await openPage(browser, url, {
    permissions: ['clipboard-read', 'clipboard-write'],
    beforeOpening: (page) => stopClock(page),
  });
  const button = page.getByRole('button', { name: 'Copy the address' });
  await button.click();
  await button.filter({ hasText: 'Copied' }).waitFor();
  await page.clock.runFor(100);
  expect(await textOf(page, '#said')).toMatch(/^Copied: T/);
  pages.change(url, suspendedPage());
  await untilHeading(page, SUSPENDED);
  expect(await page.content()).not.toMatch(HOW_TO_PAY);
  await close();
});
