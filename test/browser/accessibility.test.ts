import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { LANGUAGES } from '../../src/faces/checkout/words/languages.ts';
import { checkoutPage, FULL_BRAND } from '../support/checkout-page.ts';
import { launchChromium } from '../support/chromium.ts';
import { someCases, withVariants } from '../support/some-cases.ts';
import { openTab, START_TIMEOUT_MS } from './checkout.ts';
import { askEverything, FITS, findViolations, measureLayout, openDetails } from './measure-layout.ts';
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

const NARROW = { width: 320, height: 640 };
const DESKTOP = { width: 1280, height: 900 };
/** 1280 by 1024 pixels at 400 %. */
const ZOOMED = { width: 320, height: 256 };

const LOOKS = [
  { look: 'light', colorScheme: 'light', forcedColors: 'none' },
  { look: 'dark', colorScheme: 'dark', forcedColors: 'none' },
  { look: 'forced colours', colorScheme: 'dark', forcedColors: 'active' },
] as const;

const CODES = LANGUAGES.map(({ code }) => code);
/** One language of each direction, or every one in `npm run test:long`. */
const JUDGED = inject('everyCase') ? CODES : (['en', 'ar'] as const);
/** The language with the longest words in each script. */
const WRITTEN = inject('everyCase') ? CODES : (['en', 'de', 'ru', 'ar', 'hi', 'th', 'zh-Hans'] as const);
const JUDGED_VIEWS = withVariants(VIEWS, JUDGED).map(([view, language]) => ({ view, language }));

const open = (url: string, options: Parameters<typeof openTab>[2] = {}) =>
  openTab(browser, url, { viewport: NARROW, ...options });

/** If the page itself is an error page, the browser reports its status. */
const exceptStatus = (problems: string[]) =>
  problems.filter((text) => !/the server responded with a status of (404|503)/.test(text));

test.each(JUDGED_VIEWS)(
  '$view in $language: no violation of axe, and everything fits, in every look, narrow, wide and enlarged',
  async ({ view, language }) => {
    const { page, problems, close } = await open(pages.urlOf(view, language), { reducedMotion: 'reduce' });
    expect(await findViolations(page), 'closed').toEqual([]);
    expect(await measureLayout(page), 'closed').toEqual(FITS);
    await openDetails(page);
    await askEverything(page);
    // Colours don't depend on the width, so each look is checked once. Nothing else depends on the look.
    await page.setViewportSize(DESKTOP);
    expect(await measureLayout(page), 'wide').toEqual(FITS);
    await page.setViewportSize(NARROW);
    for (const { look, ...media } of LOOKS) {
      await page.emulateMedia(media);
      expect(await findViolations(page, look === 'light' ? undefined : 'colours'), look).toEqual([]);
      expect(await measureLayout(page), look).toEqual(FITS);
    }
    await page.setViewportSize(ZOOMED);
    expect(await measureLayout(page), 'at 400 %').toEqual(FITS);
    expect(await page.evaluate(COVERED), 'at 400 %').toEqual([]);
    await page.setViewportSize(NARROW);
    await page.evaluate(`document.documentElement.style.fontSize = '200%'`);
    expect(await measureLayout(page), 'text of 200 %').toEqual(FITS);
    // Nothing moves at all, so there is no motion to reduce.
    expect(await page.evaluate(MOVING)).toEqual([]);
    expect(exceptStatus(problems)).toEqual([]);
    await close();
  },
);

test.each(WRITTEN)(
  'the page that has most on it in %s: no violation of axe, closed and with everything opened',
  async (code) => {
    const { page, close } = await open(pages.urlOf('waiting', code));
    expect(await findViolations(page)).toEqual([]);
    await openDetails(page);
    await askEverything(page);
    expect(await findViolations(page)).toEqual([]);
    await close();
  },
);

/** An open stream would still send something after the sleep. */
const UNHEARD = { beforeOpening: (page: Page) => page.route(/\/(live|parts)\?/, (route) => route.abort()) };

test.each(WRITTEN)(
  'a page in %s that waits to hear from the service: no violation of axe, and it fits',
  async (code) => {
    const { page, close } = await open(pages.urlOf('waiting', code), UNHEARD);
    // As after a sleep.
    await page.evaluate('{ const now = Date.now(); Date.now = () => now + 600_000; }');
    await page.locator('.covered').waitFor();
    expect(await page.locator('#amount').isVisible()).toBe(false);
    expect(await findViolations(page)).toEqual([]);
    expect(await measureLayout(page)).toEqual(FITS);
    await close();
  },
);

const MOVING = `[...document.querySelectorAll('*')].filter((element) => {
  const { transitionDuration, animationName } = getComputedStyle(element);
  return transitionDuration !== '0s' || animationName !== 'none';
}).map(({ outerHTML }) => outerHTML)`;

/** The error pages have no script. */
const SCRIPTED = JUDGED_VIEWS.filter(({ view }) => view !== 'not found' && view !== 'unavailable');

test.each(SCRIPTED)(
  '$view in $language, without JavaScript: no violation of axe, and everything fits',
  async ({ view, language }) => {
    const { page, problems, close } = await open(pages.urlOf(view, language), { beforeOpening: removeScripts });
    // Buttons that would do nothing are hidden.
    expect(await page.getByRole('button').count()).toBe(0);
    expect(await measureLayout(page)).toEqual(FITS);
    await openDetails(page);
    expect(await page.getByRole('button').count()).toBe(await page.locator('form:visible').count());
    expect(await findViolations(page)).toEqual([]);
    expect(await measureLayout(page)).toEqual(FITS);
    expect(exceptStatus(problems)).toEqual([]);
    await close();
  },
);

/** Shows the page as it looks without JavaScript. axe can't run if JavaScript is disabled, because it waits for timers. */
async function removeScripts(page: Page): Promise<void> {
  await page.route('**/*', async (route) => {
    const response = await route.fetch();
    const text = await response.text();
    const body = text.replace(/<script .*?<\/script>/, '').replace('(scripting: enabled)', '(scripting: none)');
    await route.fulfill({ response, body });
  });
}

/** Returns the controls that a tap in their middle doesn't reach after scrolling to them. */
const COVERED = `[...document.querySelectorAll('a, button, summary, input')].filter((element) => element.checkVisibility({ visibilityProperty: true })).filter((element) => {
  element.scrollIntoView({ block: 'center' });
  const { left, top, width, height } = element.getBoundingClientRect();
  const met = document.elementFromPoint(left + width / 2, top + height / 2);
  return met === null || !element.contains(met);
}).map(({ outerHTML }) => outerHTML)`;

test('what does not fit, cannot be read or has no name is found', async () => {
  const { page, close } = await open(pages.urlOf('not found', 'en'));
  await page.evaluate(`{
    const plant = (name, text, style) => {
      const element = document.createElement(name);
      element.textContent = text;
      Object.assign(element.style, style);
      document.querySelector('main').append(element);
    };
    plant('button', 'small', { display: 'block', minWidth: '0', minHeight: '0', width: '20px', height: '20px', padding: '0', border: '0', fontSize: '6px' });
    plant('p', 'pinned', { position: 'fixed', bottom: '0' });
    plant('p', 'longer than its place', { width: '3rem', overflow: 'hidden', whiteSpace: 'nowrap' });
    plant('p', 'pale', { color: '#ddd', background: '#fff' });
    plant('p', 'covered', {});
    plant('p', 'upon it', { marginTop: '-1rem' });
    plant('div', '', { width: '400px', height: '1px' });
    plant('input', '', {});
  }`);
  const layout = await measureLayout(page);
  expect(layout.small).toEqual(['<button> small']);
  expect(layout.pinned).toEqual(['<p> pinned']);
  expect(layout.cutOff).toContain('<p> longer than its place');
  expect(layout.overlapping).toContain('<p> covered / <p> upon it');
  expect(layout.sideways).toBeGreaterThan(0);
  const violations = await findViolations(page);
  expect(violations.filter((text) => text.startsWith('color-contrast: ')).join()).toContain('pale');
  expect(violations.filter((text) => text.startsWith('label: '))).toHaveLength(1);
  await close();
});

test('the widest amount fits 320 px with text of 200 %, and none of its digits is hidden', async () => {
  const widest = checkoutPage('waiting', { invoice: { payableMicro: 999_999_999_999_990_007n as never } });
  const { page, close } = await open(pages.add(widest));
  for (const size of ['100%', '200%']) {
    await page.evaluate(`document.documentElement.style.fontSize = '${size}'`);
    expect(await measureLayout(page)).toEqual(FITS);
    expect(await page.locator('#amount').innerText()).toBe('999999999999.990007');
  }
  await close();
});

test.each(someCases(['#ffff00', '#000000', '#ffffff', '#ff0000'], 2))(
  'a merchant whose colour is %s has no page that cannot be read',
  async (accent) => {
    for (const state of ['waiting', 'paid'] as const) {
      const { page, close } = await open(pages.add(checkoutPage(state, { brand: { ...FULL_BRAND, accent } })));
      await openDetails(page);
      if (state === 'waiting') await askEverything(page);
      for (const { look, ...media } of LOOKS) {
        await page.emulateMedia(media);
        expect(await findViolations(page, 'colours'), `${state}, ${look}`).toEqual([]);
      }
      await close();
    }
  },
);

test('colours that the reader forces keep the edges of controls, the emphasis and the QR code', async () => {
  const { page, close } = await open(pages.urlOf('waiting', 'en'), { forcedColors: 'active' });
  await openDetails(page);
  const style = (selector: string, property: string) =>
    page.evaluate(`getComputedStyle(document.querySelector('${selector}')).${property}`);
  expect(await style('#amount b', 'fontWeight')).toBe('700');
  expect(await style('#amount b', 'textDecorationLine')).toBe('underline');
  for (const selector of ['[data-copy]', 'input', '.questions']) {
    expect(await style(selector, 'borderTopStyle'), selector).toBe('solid');
    expect(await style(selector, 'borderTopWidth'), selector).toBe('1px');
  }
  expect(await style('.qr', 'forcedColorAdjust')).toBe('none');
  await close();
});

test.each(['waiting', 'seen', 'paid', 'receipt'] as const)(
  '%s on paper: the facts in black, on one sheet, and nothing to press',
  async (view) => {
    const { page, close } = await openTab(browser, pages.urlOf(view, 'en'), { colorScheme: 'dark' });
    await openDetails(page);
    await askEverything(page);
    await page.emulateMedia({ media: 'print' });
    expect(await page.evaluate(CONTROLS)).toEqual([]);
    const facts = {
      waiting: [
        'Waiting for your payment',
        '123456.990007 USDT',
        'TRON (TRC20) – USDT only',
        'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY',
        'Pay by',
      ],
      seen: ['Payment found', 'Do not send again', '123456.990007 USDT', '68123456', '0ca1'.repeat(16)],
      paid: ['Paid', '123456.990007 USDT', '68123456', '0ca1'.repeat(16)],
      receipt: ['Receipt', '123456.990007 USDT', '68123456', '0ca1'.repeat(16), 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'],
    }[view];
    const shown = await page.locator('main').innerText();
    for (const fact of facts) expect(shown).toContain(fact);
    expect(shown).not.toMatch(/Return to|Check now|Language|Receipt to print/);
    expect(await page.evaluate(COLOURS)).toEqual(['rgb(20, 32, 27)', 'rgba(0, 0, 0, 0)']);
    const pdf = (await page.pdf({ format: 'A4' })).toString('latin1');
    expect(pdf.match(/\/Type \/Page\b/g)).toHaveLength(1);
    await close();
  },
);

const CONTROLS = `[...document.querySelectorAll('button, input, form, details, summary')]
  .filter((element) => element.checkVisibility()).map(({ outerHTML }) => outerHTML)`;

const COLOURS = `(({ color, backgroundColor }) => [color, backgroundColor])(getComputedStyle(document.body))`;
