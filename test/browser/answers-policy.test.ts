import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkoutPage, FULL_BRAND, PAGE_VIEWS } from '../support/checkout-page.ts';
import { launchChromium } from '../support/chromium.ts';
import { openPage, openTab, START_TIMEOUT_MS } from './checkout.ts';
import { askEverything, openDetails } from './measure-layout.ts';
import { type RenderedPages, startRenderedPages, VIEWS } from './rendered-pages.ts';

let pages: RenderedPages;
let browser: Browser;
beforeAll(async () => {
  [pages, browser] = await Promise.all([startRenderedPages(), launchChromium()]);
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.close();
  await pages.stop();
});

const exceptStatus = (problems: string[]) =>
  problems.filter((text) => !/the server responded with a status of (404|503)/.test(text));

test.each(VIEWS)('%s: no request to another origin, no breach of the policy, no error', async (view) => {
  for (const javaScriptEnabled of [true, false]) {
    const { page, problems, close } = await openTab(browser, pages.urlOf(view, 'en'), { javaScriptEnabled });
    await openDetails(page);
    if (javaScriptEnabled) await askEverything(page);
    expect(exceptStatus(problems)).toEqual([]);
    await close();
  }
});

test('from the first view to the receipt the whole way breaches nothing', async () => {
  const url = pages.add(checkoutPage('waiting', { brand: FULL_BRAND }));
  const { page, problems, close } = await openPage(browser, url);
  // A paid page never changes, and stops asking.
  for (const state of [...PAGE_VIEWS.filter((view) => view !== 'paid' && view !== 'second payment'), 'paid' as const]) {
    const version = await page.locator('#invoice').getAttribute('data-version');
    pages.change(url, checkoutPage(state, { brand: FULL_BRAND }));
    if (state !== 'waiting') await page.locator(`#invoice:not([data-version="${version}"])`).waitFor();
  }
  await page.getByRole('link', { name: 'Receipt to print or save' }).click();
  await page.getByRole('heading', { level: 1, name: 'Receipt' }).waitFor();
  expect(problems).toEqual([]);
  await close();
});

const HOSTILE = `</title></style></script><script>alert(1)</script>"><img src=https://evil.example/x onerror=alert(2)>' onload='alert(3)`;

test.each([...PAGE_VIEWS, 'receipt'] as const)('%s: nothing that the merchant wrote runs or loads', async (view) => {
  const state = view === 'receipt' ? 'paid' : view;
  const brand = { ...FULL_BRAND, name: HOSTILE, supportContact: HOSTILE, returnUrl: 'javascript:alert(4)' };
  const url = pages.add(checkoutPage(state, { brand }));
  const { page, problems, close } = await openTab(browser, view === 'receipt' ? `${url}/receipt` : url);
  await openDetails(page);
  await askEverything(page);
  expect(await page.getByText(HOSTILE, { exact: true }).first().isVisible()).toBe(true);
  expect(await page.title()).toContain(HOSTILE);
  expect(await page.evaluate(`document.querySelectorAll('a[href^="javascript"], img[src*="evil"]').length`)).toBe(0);
  expect(problems).toEqual([]);
  await close();
});

describe('what the tests above would report', () => {
  const inject = (markup: string) => async (page: Page) => {
    await page.route('**/c/*', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace('</main>', `${markup}</main>`) });
    });
    // No request may reach the network.
    await page.route('https://**', (route) => route.abort());
  };

  test.each([
    ['an inline handler', '<img src="data:," onerror="document.title = 1">', /inline event handler|script-src/],
    ['an inline script', '<script>document.title = 1</script>', /inline script|script-src/],
    ['an inline style', '<p style="color: red">x</p>', /inline style|style-src/],
    ['a foreign script', '<script src="https://cdn.example/x.js"></script>', /cdn\.example/],
    ['a foreign picture', '<img src="https://cdn.example/x.png">', /cdn\.example/],
    ['a foreign style', '<link rel="stylesheet" href="https://cdn.example/x.css">', /cdn\.example/],
    ['a foreign frame', '<iframe src="https://cdn.example/"></iframe>', /cdn\.example|frame/],
  ])('%s', async (_what, markup, report) => {
    const { page, problems, close } = await openPage(browser, pages.urlOf('waiting', 'en'), {
      beforeOpening: inject(markup),
    });
    expect(problems.join('\n')).toMatch(report);
    expect(await page.title()).not.toBe('1');
    await close();
  });

  test('a request that the policy allows is still one to another origin', async () => {
    const { page, problems, close } = await openPage(browser, pages.urlOf('waiting', 'en'), {
      beforeOpening: inject(''),
    });
    // The policy allows wallets' scripts to use the network, but our own scripts must not.
    await page.evaluate(`fetch('https://api.trongrid.io/').catch(() => 0)`);
    expect(problems).toContain('request to https://api.trongrid.io/');
    await close();
  });
});
