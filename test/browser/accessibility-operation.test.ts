import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkoutPage } from '../support/checkout-page.ts';
import { launchChromium } from '../support/chromium.ts';
import { openPage, START_TIMEOUT_MS, stopClock, textOf } from './checkout.ts';
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

const open = (url: string, options: Parameters<typeof openPage>[2] = {}) =>
  openPage(browser, url, { viewport: { width: 320, height: 640 }, ...options });

describe('with the keyboard only', () => {
  const READ_FOCUS = `(() => {
    const element = document.activeElement;
    if (element === document.body) return null;
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    const { top, bottom } = element.getBoundingClientRect();
    return {
      name: element.ariaLabel ?? element.labels?.[0]?.textContent ?? element.innerText.replace(/\\s+/g, ' '),
      ring: outlineStyle + ' ' + outlineWidth,
      // A page is scrolled by whole pixels.
      isSeen: top > -1 && bottom < innerHeight + 1,
    };
  })()`;
  type Focus = { name: string; ring: string; isSeen: boolean } | null;
  const readFocus = (page: Page) => page.evaluate(READ_FOCUS) as Promise<Focus>;

  const ORDER = [
    'Language: English',
    'Copy the amount',
    'Copy the address',
    'I have paid, but this page does not show it',
    'Open in a wallet',
    'Paying from an exchange?',
    'Check the address that you copied',
    'Check now',
    'help@shop.example',
    'Return to Café “Zur Post” & Söhne',
  ];

  test('every control is reached in the order of the page, is seen with its focus, and lets go of it', async () => {
    const { page, close } = await open(pages.urlOf('waiting', 'en'));
    const reached: Focus[] = [];
    for (let focus: Focus = null, i = 0; i < 50; i++) {
      await page.keyboard.press('Tab');
      focus = await readFocus(page);
      if (focus === null) break;
      reached.push(focus);
    }
    expect(reached).toEqual(ORDER.map((name) => ({ name, ring: 'solid 3px', isSeen: true })));
    // Backwards as well.
    await page.keyboard.press('Shift+Tab');
    for (const name of [...ORDER].reverse()) {
      expect((await readFocus(page))?.name).toBe(name);
      await page.keyboard.press('Shift+Tab');
    }
    await close();
  });

  const focusOn = async (page: Page, name: string) => {
    for (let i = 0; i < 60; i++) {
      if ((await readFocus(page))?.name === name) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`no way to ${name} by Tab`);
  };

  test.each(['Enter', 'Space'])('%s copies', async (key) => {
    const { page, close } = await open(pages.urlOf('waiting', 'en'), {
      permissions: ['clipboard-read', 'clipboard-write'],
      beforeOpening: (page) => stopClock(page),
    });
    await focusOn(page, 'Copy the address');
    await page.keyboard.press(key);
    await page.locator('[data-from=address]', { hasText: 'Copied' }).waitFor();
    await page.clock.runFor(100);
    expect(await textOf(page, '#said')).toBe('Copied: TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY');
    expect((await readFocus(page))?.name).toMatch(/^(Copy the address|Copied)$/);
    await close();
  });

  test.each(['Enter', 'Space'])(
    '%s opens the help, a form is filled in and sent, and the focus stays there',
    async (key) => {
      const { page, close } = await open(pages.urlOf('waiting', 'en'));
      await focusOn(page, 'Paying from an exchange?');
      await page.keyboard.press(key);
      await page.keyboard.press('Tab');
      await page.keyboard.type('1,5');
      expect((await readFocus(page))?.name).toBe('Exchange fee in USDT');
      await page.keyboard.press('Enter');
      await page.locator('#fee-answer', { hasText: 'Enter 123458.490007 USDT' }).waitFor();
      await focusOn(page, 'Calculate');
      await page.keyboard.press(key);
      await page.locator('#fee-answer button').waitFor();
      await page.keyboard.press('Tab');
      expect((await readFocus(page))?.name).toBe('Copy the amount');
      await close();
    },
  );

  test.each(['Enter', 'Space'])('%s opens the languages, and Enter switches', async (key) => {
    const { page, close } = await open(pages.urlOf('waiting', 'en'));
    await focusOn(page, 'Language: English');
    await page.keyboard.press(key);
    await focusOn(page, 'العربية');
    await page.keyboard.press('Enter');
    await page.locator('html[lang=ar][dir=rtl]').waitFor();
    await close();
  });
});

test('what changes by itself is announced when the state changes, and never while time runs or blocks are built', async () => {
  const url = pages.add(checkoutPage('waiting'));
  const { page, close } = await open(url);
  const announced = () => page.evaluate('window.spoken.splice(0)');
  await page.evaluate(LISTEN);
  const found = (builtOn: number, state: 'seen' | 'paid' = 'seen') => {
    const next = checkoutPage(state);
    const { head, transfer } = next.invoice;
    if (head === null || transfer === null) throw new Error('no transfer');
    return { ...next, invoice: { ...next.invoice, head: { ...head, number: transfer.blockNumber + builtOn - 1 } } };
  };
  const untilBuilt = (count: number) => page.locator('.built', { hasText: `${count} of 19` }).waitFor();
  pages.change(url, found(1));
  await untilBuilt(1);
  expect(await announced()).toEqual(['Payment foundDo not send again. You can close this page.']);
  for (let count = 2; count <= 19; count++) pages.change(url, found(count));
  await untilBuilt(19);
  expect(await announced()).toEqual([]);
  pages.change(url, found(20, 'paid'));
  await page.getByRole('heading', { level: 1, name: 'Paid' }).waitFor();
  expect(await announced()).toEqual(['PaidYour payment is final. There is nothing more to do.']);
  await close();
});

/** Records a live region's text whenever anything in it changes. */
const LISTEN = `
  window.spoken = [];
  for (const region of document.querySelectorAll('[role=status], [role=alert], [aria-live]')) {
    new MutationObserver(() => spoken.push(region.textContent)).observe(region, { subtree: true, childList: true, characterData: true });
  }`;

test('time that runs down is shown and not announced', async () => {
  const { page, close } = await openPage(browser, pages.add(checkoutPage('waiting')), {
    beforeOpening: (page) => stopClock(page),
  });
  await page.evaluate(LISTEN);
  await page.locator('#left', { hasText: '12 min left' }).waitFor();
  await page.clock.runFor(40_000);
  await page.locator('#left', { hasText: '11 min left' }).waitFor();
  expect(await page.evaluate('spoken')).toEqual([]);
  await close();
});

test('nothing moves while the page loads, when something is copied, or when the connection is lost', async () => {
  const { page, close } = await openPage(browser, pages.urlOf('waiting', 'en'), {
    permissions: ['clipboard-read', 'clipboard-write'],
    beforeOpening: async (page) => {
      await stopClock(page);
      await page.addInitScript(`
        window.shifts = [];
        const note = (list) => shifts.push(...list.getEntries().map(({ value }) => value));
        new PerformanceObserver(note).observe({ type: 'layout-shift', buffered: true });`);
    },
  });
  await page.getByRole('button', { name: 'Copy the amount' }).click();
  await page.locator('[data-from=amount]', { hasText: 'Copied' }).waitFor();
  await page.clock.runFor(2600);
  await page.locator('[data-from=amount]', { hasText: 'Copy' }).waitFor();
  await page.context().setOffline(true);
  await page.locator('#check', { hasText: 'No connection' }).waitFor();
  // A screenshot makes the browser report to its observer.
  await page.screenshot();
  const shifts = (await page.evaluate('shifts')) as number[];
  // A button's text is centred, so its letters move when it changes: by 0.00006 each time.
  expect(shifts.filter((value) => value > 0.0005)).toEqual([]);
  await close();
});
