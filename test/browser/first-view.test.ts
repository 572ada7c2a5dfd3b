import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { microUsdt } from '../../src/core/domain/money.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { LANGUAGES, type Language } from '../../src/faces/checkout/words/languages.ts';
import { checkoutPage, FULL_BRAND, PAGE_VIEWS, type PageView } from '../support/checkout-page.ts';
import { launchChromium } from '../support/chromium.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { someCases, withVariants } from '../support/some-cases.ts';
import { openTab, START_TIMEOUT_MS, textOf } from './checkout.ts';
import { findViolations } from './measure-layout.ts';
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

/** The space that phone browsers leave for a page: iPhone 12 to 16, small Android phones, iPhone SE, large Android phones. */
const PHONES = [
  [390, 664],
  [360, 640],
  [375, 548],
  [412, 732],
] as const;
const PHONE = { width: 390, height: 664 };
const LAPTOP = { width: 1280, height: 800 };

/** A usual price. */
const usual = (state: PageView = 'waiting', language: Language = 'en') =>
  checkoutPage(state, { language, invoice: { payableMicro: microUsdt(25_002_647n) } });

type Box = { left: number; top: number; right: number; bottom: number };

const boxOf = (page: Page, selector: string): Promise<Box> =>
  page.evaluate(`(({ left, top, right, bottom }) => ({ left, top, right, bottom }))(
    document.querySelector('${selector}').getBoundingClientRect())`);

/** The things that a payer looks for, in page order. */
const LANDMARKS = ['#left', '.network', '#amount', '#address', '.qr', '#find', '#help', '#rules', '#when', '#check'];

/** Returns how many lines a text takes. */
const linesOf = (page: Page, selector: string): Promise<number> =>
  page.evaluate(`(() => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector('${selector}'));
    return new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom / 8))).size;
  })()`);

test('a phone shows the time, the network, the amount, the address, the code and the way to help, each once and in this order', async () => {
  const { page, close } = await openTab(browser, pages.add(usual()), { viewport: PHONE });
  const boxes: Box[] = [];
  for (const selector of LANDMARKS) boxes.push(await boxOf(page, selector));
  const [left, ...tops] = boxes.map(({ top }) => top) as [number, ...number[]];
  // On the same line as the status.
  const heading = await boxOf(page, 'h1');
  expect(left).toBeGreaterThanOrEqual(heading.top - 4);
  expect(left).toBeLessThan(heading.bottom);
  expect(tops).toEqual([...tops].sort((a, b) => a - b));
  const code = await boxOf(page, '.qr');
  expect([code.right - code.left, code.bottom - code.top]).toEqual([148, 148]);
  expect(await linesOf(page, '#address')).toBe(2);
  expect(await page.evaluate(`getComputedStyle(document.querySelector('#amount')).fontSize`)).toBe('36px');
  await close();
});

test('what is selected of the address is the address, though it is shown in groups', async () => {
  const { page, close } = await openTab(browser, pages.add(usual()), { viewport: PHONE });
  const shown = page.locator('#address');
  expect(await shown.locator('span').allInnerTexts()).toEqual('TPL6 6VK2 gCXN CD7E Jg9p gJRf qcRa zjhUZY'.split(' '));
  const selected = await page.evaluate(
    `(getSelection().selectAllChildren(document.querySelector('#address')), getSelection().toString())`,
  );
  expect(selected).toBe('TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY');
  await close();
});

test('the two copy buttons, and what sends or leads back, are the only ones that stand out', async () => {
  const { page, close } = await openTab(browser, pages.add(usual()), { viewport: PHONE });
  const solid = await page.evaluate(`[...document.querySelectorAll('button, .button')]
    .filter((button) => getComputedStyle(button).backgroundColor !== 'rgba(0, 0, 0, 0)' && !button.closest('[data-wallet]'))
    .map(({ dataset }) => dataset.from)`);
  expect(solid).toEqual(['amount', 'address']);
  await close();
});

test('where there is a wallet its button comes before all else that is to be paid; where there is none it takes no place', async () => {
  const { page, close } = await openTab(browser, pages.add(usual()), { viewport: PHONE });
  const topOf = async (selector: string) => (await boxOf(page, selector)).top;
  const without = await topOf('.net');
  await page.evaluate(`window.tronLink = { request() {} }; dispatchEvent(new Event('tronLink#initialized'))`);
  const button = await boxOf(page, '.wallet button');
  expect(button.top).toBeGreaterThan(await topOf('.state'));
  expect(button.bottom).toBeLessThanOrEqual(160);
  expect(await topOf('.net')).toBeGreaterThan(without);
  for (const selector of ['#amount', '#address', '.qr']) expect(await topOf(selector)).toBeGreaterThan(button.bottom);
  await page.evaluate(`delete window.tronLink; dispatchEvent(new Event('tronLink#initialized'))`);
  expect(await topOf('.net')).toBe(without);
  await close();
});

test.each(['waiting', 'expired', 'blind'] as const)('%s has two columns on a laptop', async (state) => {
  const { page, close } = await openTab(browser, pages.add(usual(state)), { viewport: LAPTOP });
  expect((await boxOf(page, '.qr')).left).toBeGreaterThan((await boxOf(page, '.address')).right);
  await close();
});

const BRANDED = { brand: FULL_BRAND, invoice: { payableMicro: microUsdt(25_002_647n) } };

test.each(withVariants(PAGE_VIEWS, ['en', 'ar', 'de'] as const).map(([view, language]) => ({ view, language })))(
  '$view in $language: axe finds nothing on a phone and on a laptop, and the laptop shows all of it',
  async ({ view, language }) => {
    const url = pages.add(checkoutPage(view, { ...BRANDED, language }));
    const { page, close } = await openTab(browser, url, { viewport: PHONE });
    expect(await findViolations(page), 'phone').toEqual([]);
    await page.setViewportSize(LAPTOP);
    expect(await findViolations(page), 'laptop').toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollHeight')).toBeLessThanOrEqual(LAPTOP.height);
    await close();
  },
);

// The pages with the most content.
test.each(['waiting', 'expired', 'expired and blind', 'second payment, not final'] as const)(
  '%s: in each language a laptop shows all of it, with a logo, a contact and a way back',
  async (view) => {
    for (const { code } of someCases(LANGUAGES, 3)) {
      const { page, close } = await openTab(browser, pages.add(checkoutPage(view, { ...BRANDED, language: code })), {
        viewport: LAPTOP,
      });
      expect
        .soft(await page.evaluate('document.documentElement.scrollHeight'), code)
        .toBeLessThanOrEqual(LAPTOP.height);
      await close();
    }
  },
);

test('the amount is never broken: its digits stand in one line at any size of text and on any phone', async () => {
  const amounts = [1_000_001n, 25_000_014n, 123_456_990_007n, 999_999_999_999_990_007n];
  for (const payableMicro of amounts) {
    const url = pages.add(checkoutPage('waiting', { invoice: { payableMicro: microUsdt(payableMicro) } }));
    const { page, close } = await openTab(browser, url, { viewport: PHONE });
    for (const width of [320, 360, 390, 768, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      for (const size of ['100%', '150%', '200%']) {
        await page.evaluate(`document.documentElement.style.fontSize = '${size}'`);
        const look = `${payableMicro} at ${width} px and ${size}`;
        expect(await linesOf(page, '#amount'), look).toBe(1);
        const [amount, card] = [await boxOf(page, '#amount'), await boxOf(page, '.sum')];
        expect(amount.right, look).toBeLessThanOrEqual(card.right);
      }
    }
    await close();
  }
});

test('a price in another currency takes no line of its own, at the end of the line above the amount', async () => {
  const price = { amount: '114999.990000', currency: 'EUR' };
  const heights: number[] = [];
  for (const shown of [null, price]) {
    const url = pages.add(checkoutPage('waiting', { invoice: { price: shown } }));
    const { page, close } = await openTab(browser, url, { viewport: PHONE });
    const { top, bottom } = await boxOf(page, '.sum');
    heights.push(bottom - top);
    if (shown !== null) {
      const [heading, small] = [await boxOf(page, '#amount-label'), await boxOf(page, '.sum .row .hint')];
      expect(await textOf(page, '.sum .row .hint')).toBe('114999.99 EUR');
      expect(small.bottom).toBeLessThanOrEqual((await boxOf(page, '.amount')).top + 1);
      expect(small.right).toBeGreaterThan(heading.right);
    }
    await close();
  }
  const [without = 0, withPrice = 0] = heights;
  // A line is 20 pixels.
  expect(withPrice - without).toBeLessThan(8);
});

test('a deadline of today is a time; a later one has its date', async () => {
  const soon = await openTab(browser, pages.add(usual()), { timezoneId: 'Asia/Tokyo' });
  expect(await textOf(soon.page, '#when strong')).toBe('Pay by 21:30');
  await soon.close();
  const { now } = usual();
  const late = checkoutPage('waiting', { invoice: { expiresAt: unixMs(now + 3 * 86_400_000 + 60_000) } });
  const { page, close } = await openTab(browser, pages.add(late), { timezoneId: 'Asia/Tokyo' });
  expect(await textOf(page, '#when strong')).toBe('Pay by 4 Sept 2026, 21:18');
  expect(await textOf(page, '#left')).toBe('3 days left');
  await close();
});

test('on paper the deadline has its date and its zone, and no minutes that grow old', async () => {
  const { page, close } = await openTab(browser, pages.add(usual()), { timezoneId: 'Asia/Tokyo' });
  await page.emulateMedia({ media: 'print' });
  expect(await page.evaluate(`getComputedStyle(document.querySelector('#when time'), '::after').content`)).toContain(
    '2026-09-01 12:30 UTC',
  );
  expect(await page.locator('main').innerText()).not.toMatch(/min(utes)? left/);
  await close();
});

test('on paper without JavaScript the time is what the page says, and a wallet is not printed', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: PHONE });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  for (const state of ['waiting', 'expired'] as const) {
    await page.goto(pages.add(usual(state)));
    await page.emulateMedia({ media: 'print' });
    const content: string = await page.evaluate(
      `getComputedStyle(document.querySelector('#when time'), '::after').content`,
    );
    // A time that already includes the date has nothing after it.
    if (state === 'waiting') expect(content).toContain('2026-09-01 12:30 UTC');
    else expect(['none', 'normal']).toContain(content);
  }
  await context.close();
  const opened = await openTab(browser, pages.add(usual()), { viewport: PHONE });
  await opened.page.evaluate(`window.tronLink = { request() {} }; dispatchEvent(new Event('tronLink#initialized'))`);
  expect(await opened.page.locator('.wallet').isVisible()).toBe(true);
  await opened.page.emulateMedia({ media: 'print' });
  expect(await opened.page.locator('.wallet').isVisible()).toBe(false);
  await opened.close();
});

test.each(someCases(LANGUAGES, 3))(
  'in $code the first view of every phone has all down to the way to help',
  async ({ code }) => {
    const { page, close } = await openTab(browser, pages.add(usual('waiting', code)), { viewport: PHONE });
    for (const [width, height] of PHONES) {
      await page.setViewportSize({ width, height });
      expect.soft((await boxOf(page, '#find summary')).bottom, `${width} × ${height}`).toBeLessThanOrEqual(height);
    }
    await close();
  },
);

test.each(LANGUAGES)('in $code each copy button is beside what it copies on a phone', async ({ code }) => {
  const { page, close } = await openTab(browser, pages.add(usual('waiting', code)), { viewport: PHONE });
  for (const section of ['.sum', '.to']) {
    const beside = section === '.sum' ? '#amount' : `${section} h2`;
    const [text, button] = [await boxOf(page, beside), await boxOf(page, `${section} [data-copy]`)];
    expect(button.top, section).toBeLessThan(text.bottom);
    expect(text.top, section).toBeLessThan(button.bottom);
  }
  await close();
});
