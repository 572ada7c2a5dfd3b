import { readFileSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/core/runtime/package.ts';
import { checkoutPage, type PageView } from '../support/checkout-page.ts';
import { launchChromium } from '../support/chromium.ts';
import { findGlobals, findLacking, OLDEST } from './browser-lacks.ts';
import { openPage, START_TIMEOUT_MS, stopClock, textOf, untilHeading } from './checkout.ts';
import { askEverything, openDetails } from './measure-layout.ts';
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

const read = (path: string) => readFileSync(new URL(path, PACKAGE_ROOT), 'utf8');

/** The script works without these, because it catches the error. The second test proves it. */
const DONE_WITHOUT = ['.clipboard', '.writeText', '{ unit }', '{ unitDisplay }'];

test('the script of the page uses nothing that the oldest browsers lack', () => {
  expect(findLacking(read('public/checkout.js'))).toEqual(DONE_WITHOUT);
  expect(read('docs/guides/checkout.md')).toContain(`Safari ${OLDEST.safari}, Chrome ${OLDEST.chrome}`);
});

test('what they lack is found: syntax, members, static ones, and options', () => {
  const planted = `AbortSignal.timeout(1); answer.replaceChildren(); form.ariaBusy = [1].at(-1);
    new Intl.DateTimeFormat('en', { dateStyle: 'medium' }); a?.b; queueMicrotask(b);`;
  expect(findLacking(planted)).toEqual([
    '.ariaBusy',
    '.at',
    '.replaceChildren',
    'AbortSignal.timeout',
    'syntax',
    '{ dateStyle }',
  ]);
});

/** Removes from a new browser what the oldest ones lack, as far as a page or its script could use it. */
const GROW_OLD = `
  delete AbortSignal.timeout;
  delete AbortSignal.any;
  delete Navigator.prototype.clipboard;
  for (const { prototype } of [Element, Document, DocumentFragment]) delete prototype.replaceChildren;
  delete Element.prototype.ariaBusy;
  delete Array.prototype.at;
  delete String.prototype.replaceAll;
  delete Object.hasOwn;
  delete crypto.randomUUID;
  delete window.structuredClone;
  const { NumberFormat, DateTimeFormat } = Intl;
  Intl.NumberFormat = function (language, options) {
    if (options && options.style === 'unit') throw new RangeError('unit is not a style');
    return new NumberFormat(language, options);
  };
  Intl.DateTimeFormat = function (language, { dateStyle, timeStyle, ...options } = {}) {
    return new DateTimeFormat(language, options);
  };`;

test('without what newer browsers have, forms are answered, times are told, strings are copied, and the page follows', async () => {
  const state = (name: PageView) => checkoutPage(name, { brand: { name: 'Shop' } });
  const url = pages.add(state('waiting'));
  const { page, problems, close } = await openPage(browser, url, {
    timezoneId: 'UTC',
    beforeOpening: async (page) => {
      await stopClock(page);
      await page.addInitScript(GROW_OLD);
    },
  });
  expect(await textOf(page, '#left')).toBe('12 min left');
  expect(await textOf(page, '#when strong')).toBe('Pay by 12:30');
  await openDetails(page);
  await askEverything(page);
  expect(await textOf(page, '#fee-answer p:first-child')).toContain('123458.490007');
  expect(await textOf(page, '#paste-answer')).toContain('The address is different');
  expect(await textOf(page, '#transaction-answer')).toContain('Do not send the rest');
  await page.getByRole('button', { name: 'Copy the amount' }).first().click();
  await page.getByText('Copied', { exact: true }).first().waitFor();
  pages.change(url, state('seen'));
  await untilHeading(page, 'Payment found');
  expect(await textOf(page, '#found time')).toBe('1 Sept 2026, 12:16');
  expect(problems).toEqual([]);
  await close();
});

/** With more pages, some become so slow that they seem broken. */
const AT_ONCE = 8;

/** Without these no script runs on any page. Only a page can replace `parent`. */
const ESSENTIAL =
  /^(Date|Error|JSON|Math|Number|Object|Promise|addEventListener|clearTimeout|document|encodeURIComponent|location|parent|print|setInterval|setTimeout|undefined|window)$/;

test('without any one thing that the script uses, or where it throws, the page still shows that it is paid', async () => {
  const globals = ['performance', ...findGlobals(read('public/checkout.js'))].filter((name) => !ESSENTIAL.test(name));
  expect(globals).toEqual(expect.arrayContaining(['EventSource', 'fetch', 'Intl']));
  const isPaidWith = async (change: string) => {
    const url = pages.add(checkoutPage('waiting'));
    const { page, close } = await openPage(browser, url, { beforeOpening: (page) => page.addInitScript(change) });
    await page.waitForLoadState();
    pages.change(url, checkoutPage('paid'));
    const isPaid = await untilHeading(page, 'Paid').then(
      () => true,
      () => false,
    );
    await close();
    return isPaid;
  };
  const changes = globals.flatMap((name) => [
    `Object.defineProperty(window, '${name}', { value: undefined, configurable: true })`,
    `if (typeof ${name} === 'function') window.${name} = function () { throw new Error('blocked'); }`,
  ]);
  const unpaid: string[] = [];
  const left = changes.values();
  const pass = async () => {
    for (const change of left) if (!(await isPaidWith(change))) unpaid.push(change);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, pass));
  expect(unpaid).toEqual([]);
});

test('where the script is blocked, the time that is left does not stay on the page', async () => {
  const { page, close } = await openPage(browser, pages.add(checkoutPage('waiting')), {
    beforeOpening: (page) => page.route(/checkout.*\.js/, (route) => route.abort()),
  });
  const left = page.locator('#left span');
  expect(await left.isVisible()).toBe(true);
  await left.waitFor({ state: 'hidden' });
  await close();
});
