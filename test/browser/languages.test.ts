import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LANGUAGES } from '../../src/faces/checkout/words/languages.ts';
import type { Catalogue, PluralForms } from '../../src/faces/checkout/words/words.ts';
import { CATALOGUES, createWords } from '../../src/faces/checkout/words/words.ts';
import { checkoutPage, FULL_BRAND, PAGE_VIEWS, USDT } from '../support/checkout-page.ts';
import { launchChromium } from '../support/chromium.ts';
import { someCases } from '../support/some-cases.ts';
import { openTab, START_TIMEOUT_MS } from './checkout.ts';
import { askEverything, FITS, measureLayout, openDetails } from './measure-layout.ts';
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

const viewport = { width: 320, height: 640 };

const ACCENTS = new Map(
  [...'aáeéiíoóuúyýcçnñsšzžAÁEÉIÍOÓUÚCÇNÑSŠ']
    .join('')
    .match(/../gu)
    ?.map(([plain = '', accented = '']) => [plain, accented]),
);

/** `Paid to {merchant}` as `[Páíd tó {merchant} ~wórds]`: a pseudo-language that is 40 % longer than English, and recognisable. */
function accent(text: string): string {
  const accented = text.replaceAll(/\{\w+\}|[a-z]/gi, (part) => ACCENTS.get(part) ?? part);
  return `[${accented} ${'~wórds'
    .repeat(9)
    .slice(0, Math.ceil(text.length * 0.4))
    .replaceAll('s~', 's ~')}]`;
}

const inPseudo = (entry: string | PluralForms) =>
  typeof entry === 'string'
    ? accent(entry)
    : Object.fromEntries(Object.entries(entry).map(([form, text]) => [form, accent(text)]));

const PSEUDO = Object.fromEntries(
  Object.entries<string | PluralForms>(CATALOGUES.en).map(([key, entry]) => [key, inPseudo(entry)]),
) as Catalogue;

const VIEWS = [...PAGE_VIEWS, 'receipt'] as const;

/** Returns a page in a pseudo-language with everything that a merchant can set, on a test network, which adds one more text. */
function urlOf(view: (typeof VIEWS)[number], words: ReturnType<typeof createWords>): string {
  const page = checkoutPage(view === 'receipt' ? 'paid' : view, {
    words,
    brand: FULL_BRAND,
    invoice: { network: 'nile' },
  });
  return `${pages.add(page)}${view === 'receipt' ? '/receipt' : ''}`;
}

/** Everything that is read or read aloud: texts, the title, labels, and the texts that the script shows later. */
const READ = `(() => {
  const isWords = (node) => node.parentElement.closest('style, script, .languages ul') === null;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [document.title];
  for (let block = null, node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!isWords(node)) continue;
    const own = node.parentElement.closest('p, h1, h2, li, dt, dd, summary, label, button, div');
    if (own === block) texts[texts.length - 1] += node.data;
    else texts.push(node.data);
    block = own;
  }
  for (const element of document.querySelectorAll('*')) {
    for (const { name, value } of element.attributes) {
      const isRead = /^(aria-label|title|alt|placeholder|data-(wait|sent|refused|unknown|other))$/.test(name);
      if (isRead && element.localName !== 'time') texts.push(value);
      if (name === 'data-texts') texts.push(...Object.values(JSON.parse(value)));
    }
  }
  return texts;
})()`;

/** Texts that are the same in every language: names of the merchant, of networks and wallets, figures, and the payer's input. */
const NAMES = [
  FULL_BRAND.name,
  FULL_BRAND.supportContact ?? '',
  USDT,
  'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY',
  'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8',
  ...['0ca1', 'c7c7'].flatMap((part) => [part.repeat(16), `${part}…${part}`]),
  'Nile (TRC20)',
  'USDT',
  'English',
  'UTC',
];

/** Returns texts with letters outside the catalogue's brackets. */
function strayWords(texts: string[]): string[] {
  return texts.filter((text) => {
    let rest = NAMES.reduce((left, name) => left.replaceAll(name, ''), text);
    // Intl formats times. They appear alone if the catalogue has no sentence for them.
    rest = rest.replace(/\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d/, '');
    for (let before = ''; before !== rest; ) [before, rest] = [rest, rest.replaceAll(/\[[^[\]]*\]/g, '')];
    return /\p{L}/u.test(rest);
  });
}

async function openAll(page: Page): Promise<void> {
  await openDetails(page);
  await askEverything(page);
}

test.each(someCases(VIEWS, 2))(
  '%s in a language that is 40 % longer fits 320 px, and every word of it comes from the catalogue',
  async (view) => {
    const { page, problems, close } = await openTab(browser, urlOf(view, createWords(PSEUDO, 'en', 'ltr')), {
      viewport,
    });
    expect(strayWords((await page.evaluate(READ)) as string[])).toEqual([]);
    await openAll(page);
    expect(strayWords((await page.evaluate(READ)) as string[])).toEqual([]);
    expect(await measureLayout(page)).toEqual(FITS);
    expect(problems).toEqual([]);
    await close();
  },
);

test('a word that does not come from the catalogue would be told', async () => {
  const { page, close } = await openTab(
    browser,
    urlOf('waiting', createWords({ ...PSEUDO, sendExactly: 'Send' }, 'en', 'ltr')),
    { viewport },
  );
  expect(strayWords((await page.evaluate(READ)) as string[])).toEqual(['Send']);
  await page.evaluate(`document.querySelector('h1').append('hard-coded')`);
  expect(strayWords((await page.evaluate(READ)) as string[])).toHaveLength(2);
  await close();
});

/** The height of the page with each label of a copy button. */
const HEIGHTS = `(() => {
  const { copied, selected } = JSON.parse(document.body.dataset.texts);
  const buttons = [...document.querySelectorAll('[data-copy]')];
  const heights = [buttons[0].textContent, copied, selected].map((word) => {
    for (const button of buttons) button.textContent = word;
    return document.body.scrollHeight;
  });
  return [...new Set(heights)];
})()`;

/** Finds where amounts, addresses and ids appear, and any other digits that a payer types or compares. */
const FIGURES = `(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const { parentElement: parent, data } = node;
    if (parent.closest('style, script, time') || !/\\d\\.\\d{2}|T[1-9A-HJ-NP-Za-km-z]{33}|[0-9a-f]{64}/.test(data)) continue;
    // What is only said of the form of a number, as in "for example 1.5".
    if (/\\b1\\.5\\b/.test(data)) continue;
    found.push({ data, direction: getComputedStyle(parent).direction, isolated: parent.closest('bdi[dir=ltr], p[dir=ltr], dd bdi') !== null });
  }
  return found;
})()`;

test.each(someCases(LANGUAGES, 2))(
  'in $code every state fits 320 px, and its figures are read from left to right',
  async ({ code, direction }) => {
    for (const view of ['replaced', 'seen', 'receipt'] as const) {
      const { page, close } = await openTab(browser, pages.urlOf(view, code), { viewport, locale: code });
      await openDetails(page);
      if (view === 'replaced') {
        await askEverything(page);
        expect(await page.evaluate(HEIGHTS)).toHaveLength(1);
      }
      expect(await measureLayout(page), view).toEqual(FITS);
      const html = page.locator('html');
      expect([await html.getAttribute('lang'), await html.getAttribute('dir')]).toEqual([code, direction]);
      const figures = (await page.evaluate(FIGURES)) as { data: string; direction: string; isolated: boolean }[];
      expect(figures.length, view).toBeGreaterThan(0);
      expect(
        figures.filter((figure) => figure.direction !== 'ltr' || !figure.isolated),
        view,
      ).toEqual([]);
      await close();
    }
  },
);

test('names of languages stand in line, whichever way they are read', async () => {
  for (const [language, edge] of [
    ['en', 'left'],
    ['ar', 'right'],
  ] as const) {
    const { page, close } = await openTab(browser, pages.urlOf('waiting', language), { viewport });
    await openDetails(page);
    const edges = await page.evaluate(
      `[...document.querySelectorAll('.languages bdi')].map((name) => name.getBoundingClientRect().${edge} - name.closest('li').getBoundingClientRect().${edge})`,
    );
    expect(new Set(edges as number[])).toEqual(new Set([0]));
    await close();
  }
});

test('a language that is switched to by hand stays, also in the answers and the receipt', async () => {
  const { page, close } = await openTab(browser, pages.add(checkoutPage('paid')), { viewport });
  await page.getByText('Language: English').click();
  await page.getByRole('link', { name: 'فارسی' }).click();
  await page.locator('html[lang=fa]').waitFor();
  await openAll(page);
  expect(await page.locator('#transaction-answer').innerText()).not.toMatch(/The money was sent/);
  await page.getByRole('link', { name: CATALOGUES.fa.receiptLink }).click();
  await page.getByRole('heading', { level: 1, name: CATALOGUES.fa.receipt }).waitFor();
  expect(await page.locator('html').getAttribute('lang')).toBe('fa');
  await close();
});
