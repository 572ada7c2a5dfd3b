import type { FastifyInstance } from 'fastify';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../support/chromium.ts';
import { createDocumentedApi } from '../support/documented-api.ts';
import { openTab, START_TIMEOUT_MS } from './checkout.ts';
import { findViolations, measureLayout } from './measure-layout.ts';

let app: FastifyInstance;
let origin: string;
let browser: Browser;
beforeAll(async () => {
  [app, browser] = await Promise.all([createDocumentedApi({ isSandbox: true }), launchChromium()]);
  origin = await app.listen({ host: '127.0.0.1', port: 0 });
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.close();
  await app.close();
});

const SIZES = [
  { width: 320, height: 256 },
  { width: 390, height: 844 },
  { width: 1280, height: 900 },
];

const LOOKS = [
  { colorScheme: 'light', forcedColors: 'none' },
  { colorScheme: 'dark', forcedColors: 'none' },
  { colorScheme: 'dark', forcedColors: 'active' },
] as const;

test.each(['/docs', '/docs/errors'])(
  '%s: no violation of axe and nothing cut off, in every look and width',
  async (path) => {
    const { page, problems, close } = await openTab(browser, origin + path);
    for (const size of SIZES) {
      await page.setViewportSize(size);
      const { sideways, cutOff, pinned } = await measureLayout(page);
      expect({ sideways, cutOff }, `${size.width}`).toEqual({ sideways: 0, cutOff: [] });
      if (size.height < 300) expect(pinned).toEqual([]);
    }
    for (const look of LOOKS) {
      await page.emulateMedia(look);
      expect(await findViolations(page, look.colorScheme === 'light' ? undefined : 'colours')).toEqual([]);
    }
    expect(problems).toEqual([]);
    await close();
  },
);

test('the language that is chosen is shown everywhere, and no other', async () => {
  const { page, close } = await openTab(browser, `${origin}/docs`, { javaScriptEnabled: false });
  const shown = async () => new Set(await page.locator('figcaption:visible').allTextContents());
  expect(await shown()).toEqual(new Set(['curl']));
  for (const name of ['JavaScript', 'Python', 'PHP', 'Go', 'Java', 'curl']) {
    await page.getByRole('radio', { name, exact: true }).check();
    expect(await shown()).toEqual(new Set([name]));
  }
  await page.getByRole('radio', { name: 'curl', exact: true }).press('ArrowRight');
  expect(await shown()).toEqual(new Set(['JavaScript']));
  await close();
});

test('a link leads to its heading, which nothing covers', async () => {
  const { page, close } = await openTab(browser, `${origin}/docs`);
  await page.getByRole('navigation').getByRole('link', { name: 'Read an invoice' }).click();
  const heading = page.getByRole('heading', { name: 'Read an invoice', exact: true });
  const [top, bottom] = await Promise.all([
    heading.evaluate((element) => element.getBoundingClientRect().top),
    page.getByRole('group').evaluate((element) => element.getBoundingClientRect().bottom),
  ]);
  expect(top).toBeGreaterThanOrEqual(bottom);
  await close();
});
