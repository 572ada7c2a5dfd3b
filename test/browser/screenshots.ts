import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContextOptions, Page as BrowserPage } from 'playwright-core';
import { PNG } from 'pngjs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { microUsdt } from '../../src/core/domain/money.ts';
import type { Language } from '../../src/faces/checkout/words/languages.ts';
import { checkoutPage } from '../support/checkout-page.ts';
import { launchChromium } from '../support/chromium.ts';
import { LOGOS } from '../support/logos.ts';
import { openPage, START_TIMEOUT_MS } from './checkout.ts';
import { type RenderedPages, startRenderedPages, VIEWS, type View } from './rendered-pages.ts';

/**
 * `npm run screenshots` draws everything that a payer can see into .screenshots/ (or `QUITTANCE_SCREENSHOTS`) for people to review:
 * `waiting-ar-phone.png`. It also draws the picture of the README.
 */
const root = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const FOLDER = process.env['QUITTANCE_SCREENSHOTS'] ?? root('.screenshots');
const README_PICTURE = root('docs/images/checkout.png');
/** Keeps the README quick to load. */
const MAX_BYTES = 250 * 1024;

const PHONE = { viewport: { width: 390, height: 844 } };

const TX_ID = '9f2c61d0b7e84a35c19d40f6e2ab7358d1c4096be57f23a8840d6c9e1b72f5a3';

type Look = BrowserContextOptions & { media?: 'print' };

/** English in every look, and the two languages that differ most from it. */
const LOOKS: { name: string; language: Language; isBranded?: boolean; look: Look }[] = [
  { name: 'en-phone', language: 'en', look: PHONE },
  { name: 'ar-phone', language: 'ar', look: PHONE },
  { name: 'zh-phone', language: 'zh-Hans', look: PHONE },
  { name: 'en-dark', language: 'en', look: { ...PHONE, colorScheme: 'dark' } },
  { name: 'en-320', language: 'en', look: { viewport: { width: 320, height: 640 } } },
  { name: 'en-desktop', language: 'en', look: { viewport: { width: 1280, height: 900 } } },
  { name: 'en-forced', language: 'en', look: { ...PHONE, forcedColors: 'active', colorScheme: 'dark' } },
  { name: 'en-print', language: 'en', look: { viewport: { width: 720, height: 900 }, media: 'print' } },
  { name: 'en-brand', language: 'en', isBranded: true, look: PHONE },
  { name: 'ar-brand', language: 'ar', isBranded: true, look: { ...PHONE, colorScheme: 'dark' } },
];

/** Actions on the waiting page, such as opening something or asking. */
const ACTS: Record<string, (page: BrowserPage) => Promise<void>> = {
  'waiting, languages': (page) => page.locator('.languages summary').click(),
  'waiting, wallet': (page) => page.evaluate(`window.tronWeb = {}; dispatchEvent(new Event('tronLink#initialized'))`),
  'waiting, wallets': (page) => page.locator('#help details summary').first().click(),
  'waiting, fee': (page) => ask(page, 'fee', '1'),
  'waiting, paste': (page) => ask(page, 'paste', 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH'),
  'waiting, short': (page) => ask(page, 'transaction', TX_ID),
};

const SHOTS: { name: string; view: View; act?: (page: BrowserPage) => Promise<void> }[] = [
  ...VIEWS.map((view) => ({ name: view, view })),
  ...Object.entries(ACTS).map(([name, act]) => ({ name, view: 'waiting' as const, act })),
];

let browser: Browser;
let pages: RenderedPages;
beforeAll(async () => {
  [pages, browser] = await Promise.all([startRenderedPages(), launchChromium()]);
  await mkdir(FOLDER, { recursive: true });
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.close();
  await pages.stop();
});

test.each(LOOKS)('$name', { timeout: 120_000 }, async ({ name, language, isBranded = false, look }) => {
  // Nothing can be opened on paper.
  for (const shot of SHOTS.filter(({ act }) => act === undefined || look.media !== 'print')) {
    const url = isBranded ? pages.urlOf(shot.view, language) : plainUrlOf(shot.view, language);
    const image = await shoot(url, look, async (page) => {
      await shot.act?.(page);
      return page.screenshot({ fullPage: true });
    });
    await writeFile(join(FOLDER, `${shot.name.replaceAll(/\W+/g, '-')}-${name}.png`), image);
  }
});

test('the picture of the README: waiting, paid, and in Arabic and dark', { timeout: 60_000 }, async () => {
  const shots: [View, Language, 'light' | 'dark'][] = [
    ['waiting', 'en', 'light'],
    ['paid', 'en', 'light'],
    ['waiting', 'ar', 'dark'],
  ];
  const images: PNG[] = [];
  for (const [view, language, colorScheme] of shots) {
    const look = { viewport: { width: 390, height: 758 }, deviceScaleFactor: 1.5, colorScheme };
    const image = await shoot(plainUrlOf(view, language), look, (page) => page.screenshot());
    images.push(PNG.sync.read(image));
  }
  await writeFile(
    README_PICTURE,
    PNG.sync.write(sideBySide(images), { colorType: 2, filterType: 0, deflateStrategy: 0 }),
  );
  expect((await stat(README_PICTURE)).size).toBeLessThan(MAX_BYTES);
});

/** A usual price, and a merchant who has set only the name. */
function plainUrlOf(view: View, language: Language): string {
  if (view === 'not found' || view === 'unavailable' || view === 'unconfirmed') return pages.urlOf(view, language);
  const state = view === 'receipt' ? 'paid' : view;
  const { transfer } = checkoutPage(state).invoice;
  const page = checkoutPage(state, {
    language,
    invoice: {
      requestedMicro: microUsdt(25_000_000n),
      payableMicro: microUsdt(25_002_647n),
      transfer: transfer && { ...transfer, txId: TX_ID },
    },
    brand: { name: 'Bookshop Aurora' },
  });
  return `${pages.add(page)}${view === 'receipt' ? '/receipt' : ''}`;
}

async function shoot(
  url: string,
  { media, ...options }: Look,
  draw: (page: BrowserPage) => Promise<Buffer>,
): Promise<Buffer> {
  const beforeOpening = (page: BrowserPage) =>
    page.route('**/logos/*', (route) => route.fulfill({ contentType: 'image/png', body: LOGOS.png }));
  const { page, close } = await openPage(browser, url, { timezoneId: 'UTC', beforeOpening, ...options });
  if (media !== undefined) await page.emulateMedia({ media });
  const image = await draw(page);
  await close();
  return image;
}

/** Opens a field's form, fills it in, and waits for the answer. */
async function ask(page: BrowserPage, field: string, text: string): Promise<void> {
  await page.evaluate(`document.querySelector('[name=${field}]').closest('details').open = true`);
  await page.locator(`[name=${field}]`).fill(text);
  await page.locator(`form:has([name=${field}]) button`).click();
  await page.locator(`#${field}-answer *`).first().waitFor();
}

function sideBySide(images: readonly PNG[]): PNG {
  const all = new PNG({
    width: images.reduce((sum, { width }) => sum + width, 0),
    height: Math.max(...images.map(({ height }) => height)),
  });
  let x = 0;
  for (const image of images) {
    PNG.bitblt(image, all, 0, 0, image.width, image.height, x, 0);
    x += image.width;
  }
  return all;
}
