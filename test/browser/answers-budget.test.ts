import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { renderAnswer } from '../../src/faces/checkout/lookup/answer.ts';
import { renderPage, renderSuspended } from '../../src/faces/checkout/page/page.ts';
import { renderApology } from '../../src/faces/checkout/page/register.ts';
import { ASSETS, newNonce } from '../../src/faces/checkout/page/render-document.ts';
import { renderReceipt } from '../../src/faces/checkout/receipt/receipt-routes.ts';
import { LANGUAGES } from '../../src/faces/checkout/words/languages.ts';
import { wordsOf } from '../../src/faces/checkout/words/words.ts';
import { checkoutPage, FULL_BRAND, PAGE_VIEWS, suspendedPage } from '../support/checkout-page.ts';
import { LOOKUP_ANSWERS } from '../support/lookup-answers.ts';

/** The smaller of the two usual meanings. */
const KB = 1000;

/** Compressed like the server does. */
const sizeOf = (text: string) => gzipSync(text).length;

/** Names and links as long as those of real merchants. */
const BRAND = {
  ...FULL_BRAND,
  name: 'Интернет-магазин «Четыре времени года» — 四季商店 (Zürich)',
  returnUrl: `https://shop.example/checkout/return/0198e1c2-7d3f-7000-8000-1b2c3d4e5f60?session=${'k7'.repeat(20)}&step=paid`,
};

describe.each(LANGUAGES.map(({ code }) => code))('in %s', (language) => {
  test.each(PAGE_VIEWS)('the first view in state %s, with its style and QR code, is at most 10 KB', (state) => {
    for (const [brand, price] of [
      [{}, null],
      [BRAND, { amount: '114999.990000', currency: 'EUR' }],
    ] as const) {
      const page = checkoutPage(state, { language, isLanguageAsked: true, brand, invoice: { price } });
      expect(sizeOf(renderPage(page, newNonce()))).toBeLessThanOrEqual(10 * KB);
    }
  });

  test('so is each page with an answer', () => {
    const page = checkoutPage('replaced', { language, isLanguageAsked: true, brand: BRAND });
    const answers = LOOKUP_ANSWERS.map((answer) => ({
      question: { field: 'transaction' as const, text: `https://tronscan.org/#/transaction/${'b4'.repeat(32)}` },
      answer: renderAnswer(page, answer),
    }));
    const forms = (['fee', 'paste'] as const).map((field) => ({ question: { field, text: '1.5' }, answer: null }));
    const sizes = [...answers, ...forms].map((exchange) => sizeOf(renderPage(page, newNonce(), exchange)));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(10 * KB);
  });

  test('so are the receipt and the apologies', () => {
    const page = checkoutPage('paid', { language, isLanguageAsked: true, brand: BRAND });
    const { transfer } = page.invoice;
    if (transfer === null) throw new Error('a paid invoice has its transfer');
    const texts = [
      renderReceipt(page, { transfer, isSigned: true, nonce: newNonce() }),
      renderApology(wordsOf(language), newNonce(), 'notFound'),
      renderApology(wordsOf(language), newNonce(), 'unavailable'),
      renderSuspended(suspendedPage(language), newNonce()),
    ];
    expect(Math.max(...texts.map(sizeOf))).toBeLessThanOrEqual(10 * KB);
  });
});

test('the one script is at most 6 KB', () => {
  expect(sizeOf(ASSETS.js.text)).toBeLessThanOrEqual(6 * KB);
});
