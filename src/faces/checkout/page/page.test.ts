import { describe, expect, test } from 'vitest';
import {
  checkoutPage,
  FULL_BRAND,
  PAGE_VIEWS,
  type PageView,
  suspendedPage,
  USDT,
} from '../../../../test/support/checkout-page.ts';
import { LOOKUP_ANSWERS } from '../../../../test/support/lookup-answers.ts';
import { formatAmount } from '../../../core/domain/money.ts';
import type { Brand } from '../../../core/store/ledger/checkout.ts';
import { html } from '../../web/html.ts';
import { renderAnswer } from '../lookup/answer.ts';
import { renderReceipt } from '../receipt/receipt-routes.ts';
import { LANGUAGES } from '../words/languages.ts';
import { CATALOGUES, wordsOf } from '../words/words.ts';
import { renderPage, renderSuspended } from './page.ts';
import { lookOf, type Page, type PageState, stateOf } from './page-state.ts';
import { renderApology } from './register.ts';

const NONCE = 'bm9uY2U=';

const render = (page: Page) => renderPage(page, NONCE);

const hrefsOf = (text: string) =>
  [...text.matchAll(/href="([^"]*)"/g)].map(([, href = '']) => href.replaceAll('&amp;', '&'));

const withoutStyle = (text: string) => text.replace(/<style.*?<\/style>/s, '');

/** The visible text. */
const read = (text: string) => withoutStyle(text).replaceAll(/<[^>]+>/g, '');

describe.each(LANGUAGES)('in $code', ({ code: language, direction, name }) => {
  test.each(PAGE_VIEWS)(
    'the page in state %s says its language and direction, and leaves no place and no mark',
    (state) => {
      const text = render(checkoutPage(state, { language, brand: FULL_BRAND }));
      expect(text).toContain(`<html lang="${language}" dir="${direction}">`);
      // The script fills in two placeholders itself.
      const words = withoutStyle(text).replace(/ data-texts="[^"]*"/, '');
      expect(words).not.toMatch(/[{}]|\*\*|undefined|\[object|>null</);
    },
  );

  // Concatenated texts and texts in another language aren't in the catalogue.
  const wholeTexts = Object.values<string | object>(CATALOGUES[language])
    .filter((text) => typeof text === 'string')
    .map((text) =>
      text
        .replaceAll('**', '')
        .split(/\{\w+\}/)
        .map((part) => html`${part}`.html.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&')),
    );
  const isWhole = (label: string) => wholeTexts.some((parts) => new RegExp(`^${parts.join('.*')}$`, 's').test(label));

  test.each(PAGE_VIEWS)('the page in state %s has one heading, and each label is one text of the language', (view) => {
    const page = checkoutPage(view, { language, brand: FULL_BRAND });
    const text = withoutStyle(render(page));
    const labelsOf = (tags: string) =>
      [...text.matchAll(new RegExp(`<(${tags})\\b[^>]*>(.*?)</\\1>`, 'gs'))].map(([, , inner = '']) => read(inner));
    expect(labelsOf('h1')).toEqual([read(page.words.say(lookOf(page).heading, lookOf(page).values).html)]);
    const isSwitch = (label: string) => label === `${page.words.text('changeLanguage')}: ${name}`;
    const labels = labelsOf('h1|h2|summary|label|button|dt').filter((label) => label !== '' && !isSwitch(label));
    expect(labels.length).toBeGreaterThan(view === 'suspended' || view === 'paused' ? 1 : 3);
    expect(labels.filter((label) => !isWhole(label))).toEqual([]);
  });

  test('amount and address are written from left to right in Latin digits, and nothing stands between', () => {
    const page = checkoutPage('waiting', { language });
    const text = render(page);
    expect(text).toContain(
      '<p class="amount long" dir="ltr"><span id="amount">123456.99<b>0007</b></span> <span class="unit">USDT</span></p>',
    );
    expect(text).toContain(
      '<span id="address"><span>TPL6</span><wbr><span>6VK2</span><wbr><span>gCXN</span><wbr><span>CD7E</span><wbr><span>Jg9p</span><wbr><span>gJRf</span><wbr><span>qcRa</span><wbr><span>zjhUZY</span><wbr></span></p>',
    );
    expect(text).toContain('data-copy="123456.990007"');
    expect(text).toContain('data-copy="TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY"');
  });
});

test.each(['waiting', 'replaced', 'expired', 'blind', 'expired and blind'] as const)(
  'in state %s the page holds all that is needed to pay',
  (state) => {
    const text = render(checkoutPage(state));
    for (const needed of [
      'id="amount"',
      'id="address"',
      'class="qr"',
      'TRON (TRC20) – USDT only',
      'name="fee"',
      'name="paste"',
    ]) {
      expect(text).toContain(needed);
    }
  },
);

test.each(['seen', 'paid', 'second payment', 'seen and blind'] as const)(
  'in state %s nothing on the page can be paid again',
  (state) => {
    const page = checkoutPage(state, { brand: FULL_BRAND });
    const text = withoutStyle(render(page));
    expect(text).not.toContain(page.invoice.address);
    expect(text).not.toMatch(
      /class="qr"|data-from="(?:amount|address|total)"|data-wallet|tronlink|trustwallet|id="amount"|name="fee"|name="paste"/,
    );
    expect(read(text)).toContain(`${formatAmount(page.invoice.payableMicro)} USDT`);
  },
);

test.each(PAGE_VIEWS)(
  'in state %s the page links to the proof of its address only if it may show the address',
  (view) => {
    const site = {
      ...checkoutPage(view).site,
      proofOf: () => ({ head: '', signatures: [], network: 'mainnet', projectId: 'prj_1', path: [] }),
    };
    const page = checkoutPage(view, { site });
    const isShown = ['waiting', 'blind', 'expired', 'replaced', 'seen', 'paid'].includes(stateOf(page));
    expect(render(page).includes('address-proof.json')).toBe(isShown);
  },
);

test('a payment that was seen and set aside has no block and no confirmations', () => {
  const text = read(render(checkoutPage('seen', { invoice: { transfer: null } })));
  expect(text).toContain('Payment found');
  expect(text).not.toMatch(/Found in block|of 19/);
});

/** The prominent elements: buttons, except in forms, lists and wallets, and except buttons that copy rarely needed texts. */
const prominentOf = (text: string) => {
  const bare = withoutStyle(text).replaceAll(
    /<form.*?<\/form>|<p class="open">.*?<\/p>|<div class="wallet".*?<\/div>/gs,
    '',
  );
  return [...bare.matchAll(/<(?:button[^>]*data-from="(\w+)"|a class="(button)")/g)]
    .map(([, from, link]) => from ?? link)
    .filter((from) => from !== 'transaction' && from !== 'second');
};

const PROMINENT: Readonly<Record<PageState, string[]>> = {
  waiting: ['amount', 'address'],
  blind: ['amount', 'address'],
  expired: ['amount', 'address'],
  // Behind one more click.
  replaced: ['amount', 'address'],
  paid: ['button'],
  ...{ seen: [], withdrawn: [], claimed: [], settled: [], suspended: [] },
};

test.each(PAGE_VIEWS)('in state %s only what is to be done next stands out', (view) => {
  const page = checkoutPage(view, { brand: FULL_BRAND });
  expect(prominentOf(render(page))).toEqual(PROMINENT[stateOf(page)]);
  const folded = render(page).replace(/<details><summary>The transfer failed\?.*?<\/section>\s*<ul.*?<\/details>/s, '');
  if (view.startsWith('replaced')) expect(prominentOf(folded)).toEqual([]);
});

test('the ids of our books are nowhere on a page', () => {
  for (const state of PAGE_VIEWS) expect(render(checkoutPage(state))).not.toContain('0198e1c2');
});

test.each([
  ['mainnet', 'https://tronscan.org/#/transaction/'],
  ['nile', 'https://nile.tronscan.org/#/transaction/'],
  ['devnet', null],
] as const)('on %s a transaction that was found leads to the block explorer of the network', (network, explorer) => {
  for (const state of ['seen', 'paid'] as const) {
    const page = checkoutPage(state, { invoice: { network } });
    const links = hrefsOf(render(page)).filter((href) => href.includes('tronscan'));
    expect(links).toEqual(explorer === null ? [] : [`${explorer}${page.invoice.transfer?.txId}`]);
  }
});

test('only a return link with {invoiceId} shows the id of the invoice, to the payer and on the receipt', () => {
  const id = 'inv_01k3gw4000e008000000000001';
  const returnUrl = 'https://shop.example/orders/{invoiceId}?from=pay';
  const paid = checkoutPage('paid', { brand: { ...FULL_BRAND, returnUrl } });
  const { transfer } = paid.invoice;
  const receiptOf = (page: Page) =>
    transfer === null ? '' : renderReceipt(page, { transfer, isSigned: true, nonce: NONCE });
  for (const text of [render(paid), render(checkoutPage('waiting', { brand: { returnUrl } }))]) {
    expect(hrefsOf(text)).toContain(`https://shop.example/orders/${id}?from=pay`);
  }
  expect(read(receiptOf(paid))).toContain(`Invoice${id}`);
  const other = checkoutPage('paid', { brand: FULL_BRAND });
  expect(render(other) + receiptOf(other)).not.toContain('inv_');
});

test('the clock counts down while the network is seen, stands still while it is not, and says when it has run out', () => {
  const waiting = read(render(checkoutPage('waiting')));
  expect(waiting).toContain('12 min left\n');
  expect(waiting).toContain('Pay by 12:30 UTC A later payment still counts.12 minutes left when this page was opened.');
  const blind = read(render(checkoutPage('blind')));
  expect(blind).toContain('A later payment still counts.The countdown is paused until we can see the network again.');
  expect(blind).not.toMatch(/min(utes)? left/);
  expect(read(render(checkoutPage('expired')))).toContain('The deadline was 1 Sept 2026, 12:16 UTC.');
});

test('before the first block was read the network is not seen either', () => {
  expect(read(render(checkoutPage('waiting', { invoice: { head: null } })))).toContain(
    'We cannot see the TRON network right now.',
  );
});

test('a paid page never says that the network is not seen, for there is nothing to wait for', () => {
  const { head } = checkoutPage('blind').invoice;
  expect(read(render(checkoutPage('paid', { invoice: { head } })))).not.toContain('We cannot see');
});

test('links keep the language that was chosen by hand, and nothing else', () => {
  const below = (page: Page) => render(page).match(/(?<=(?:href|action)=")\/c\/[^"]*/g) ?? [];
  for (const link of below(checkoutPage('waiting', { language: 'tr' }))) {
    expect(link).toMatch(/^\/c\/1{22}(?:\/ask#\w+-answer)?$/);
  }
  const chosen = below(checkoutPage('replaced', { language: 'tr', isLanguageAsked: true }));
  expect(chosen.length).toBeGreaterThan(0);
  for (const link of chosen) expect(link).toContain('?lang=tr');
});

test('wallets get exactly the address, the amount and the token of this invoice', () => {
  const page = checkoutPage('waiting', { language: 'fr', isLanguageAsked: true });
  const [tronLink, trust] = hrefsOf(render(page)).filter((href) => /tronlink|trustwallet.com\/send/.test(href));
  const asked = new URL(tronLink ?? '').searchParams.get('param') ?? '';
  expect(JSON.parse(asked)).toEqual({
    url: 'https://pay.example/c/1111111111111111111111?lang=fr',
    action: 'open',
    protocol: 'tronlink',
    version: '1.0',
  });
  expect(Object.fromEntries(new URL(trust ?? '').searchParams)).toEqual({
    asset: `c195_t${USDT}`,
    address: page.invoice.address,
    amount: '123456.990007',
  });
});

test('on a test network the page says so first, and names no wallet that moves real money', () => {
  const text = render(checkoutPage('waiting', { invoice: { network: 'nile' } }));
  expect(read(text)).toContain('Test payment. This is the Nile test network: do not send real money.');
  expect(text.indexOf('Test payment')).toBeLessThan(text.indexOf('<h1'));
  expect(text).not.toMatch(/tronlinkoutside|trustwallet|okx|imtoken|tpdapp/);
  expect(render(checkoutPage('waiting'))).not.toContain('Test payment');
});

test('the form that was sent is open, with what was entered and the answer to it', () => {
  const page = checkoutPage('waiting');
  const fee = renderPage(page, NONCE, { question: { field: 'fee', text: '1,5' }, answer: null });
  expect(fee).toContain('value="1,5"');
  expect(read(fee)).toContain(
    'Enter 123458.490007 USDT at the exchange: after its fee of 1.5, exactly 123456.990007 will arrive.',
  );
  const same = renderPage(page, NONCE, {
    question: { field: 'paste', text: ` ${page.invoice.address}\n` },
    answer: null,
  });
  expect(read(same)).toContain('The address is the same.');
  const other = renderPage(page, NONCE, { question: { field: 'paste', text: USDT }, answer: null });
  expect(read(other)).toContain('The address is different. Do not send to it.');
  const [answer] = LOOKUP_ANSWERS.map((found) => renderAnswer(page, found));
  const found = renderPage(page, NONCE, { question: { field: 'transaction', text: 'b4' }, answer: answer ?? null });
  expect(read(found)).toContain('This transaction has paid this invoice.');
  for (const text of [fee, same, other, found]) expect(text.match(/<details[^>]* open>/g)).toHaveLength(1);
});

const switchOf = (text: string) => [...text.matchAll(/href="\?lang=([\w-]+)" lang="\1"/g)].map(([, code]) => code);

test.each(LANGUAGES)(
  'every page in $code leads to itself in each other language, apologies and suspended pages too',
  ({ code }) => {
    const others = LANGUAGES.map((language) => language.code).filter((other) => other !== code);
    const words = wordsOf(code);
    for (const text of [
      ...PAGE_VIEWS.map((view) => render(checkoutPage(view, { language: code }))),
      renderSuspended(suspendedPage(code), NONCE),
      renderApology(words, NONCE, 'notFound'),
      renderApology(words, NONCE, 'unavailable'),
    ]) {
      expect(switchOf(text)).toEqual(others);
    }
  },
);

describe.each(LANGUAGES)('a payer who needs help, in $code', ({ code: language }) => {
  const supportOf = (brand: Partial<Brand>, view: PageView) =>
    /<footer><p>(.*?)<\/p>/s.exec(render(checkoutPage(view, { language, brand })))?.[1] ?? '';
  const { text } = wordsOf(language);
  const name = 'Test shop';

  test.each(PAGE_VIEWS)('finds the contact, else the pages of the shop, else its name, on the page %s', (view) => {
    const withContact = supportOf({ supportContact: 'help@shop.example', returnUrl: 'https://shop.example/' }, view);
    expect(read(withContact)).toBe(text('support', { merchant: name, contact: 'help@shop.example' }));
    expect(hrefsOf(withContact)).toEqual(['mailto:help@shop.example']);
    const withReturn = supportOf({ returnUrl: 'https://shop.example/' }, view);
    expect(read(withReturn)).toBe(text('supportMerchant', { merchant: name }));
    expect(hrefsOf(withReturn)).toEqual(['https://shop.example/']);
    const bare = supportOf({}, view);
    expect(read(bare)).toBe(text('supportMerchant', { merchant: name }));
    expect(hrefsOf(bare)).toEqual([]);
  });
});

const HOSTILE =
  "</title></style></script><script>alert(1)</script>\"><img src=x onerror=alert(1)>' onload='x \u202egnp{amount}**";
const ESCAPED =
  '&lt;/title&gt;&lt;/style&gt;&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&gt;&lt;img src=x onerror=alert(1)&gt;&#39; onload=&#39;x \u202egnp{amount}**';

describe('whatever the merchant or the payer wrote is text', () => {
  const tagsOf = (text: string) => text.match(/<[a-z/!][^>]*>/gi)?.map((tag) => tag.replaceAll(/="[^"]*"/g, ''));
  const receipt = (page: Page) => {
    const { transfer } = page.invoice;
    if (transfer === null) throw new Error('not paid');
    return renderReceipt(page, { transfer, isSigned: true, nonce: NONCE });
  };

  test.each([...PAGE_VIEWS, 'receipt'] as const)(
    '%s: a hostile name and contact add no tag and no attribute',
    (view) => {
      const [state, show] = view === 'receipt' ? (['paid', receipt] as const) : ([view, render] as const);
      const tame = checkoutPage(state, { brand: { ...FULL_BRAND, supportContact: 'no link' } });
      const hostile = checkoutPage(state, { brand: { ...FULL_BRAND, name: HOSTILE, supportContact: HOSTILE } });
      expect(tagsOf(show(hostile))).toEqual(tagsOf(show(tame)));
      // The bdi also keeps it from changing the direction of the words around it.
      expect(show(hostile)).toContain(`<bdi>${ESCAPED}</bdi>`);
    },
  );

  test.each([
    'javascript:alert(1)',
    ' javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\nscript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:x',
    '//evil.example/',
    'https://user:password@shop.example/',
    'https://shop.example/\u202e',
    'https://shop.example\\@evil.example/',
  ])('a return link or contact of %j is no link', (url) => {
    const text = render(checkoutPage('paid', { brand: { ...FULL_BRAND, returnUrl: url, supportContact: url } }));
    const outside = hrefsOf(text).filter(
      (href) => !/^\/c\/1{22}|^\?lang=[\w-]+$|^data:,$|^https:\/\/tronscan\.org\/#/.test(href),
    );
    expect(outside).toEqual([]);
  });

  test('a return link cannot leave its attribute', () => {
    const returnUrl = `https://shop.example/?a="><script>alert(1)</script>&b='x'`;
    const text = render(checkoutPage('paid', { brand: { returnUrl } }));
    expect(text).not.toContain('<script>alert');
    expect(text).toContain('href="https://shop.example/?a=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&amp;b=%27x%27"');
  });

  test.each([
    'red;}body{display:none',
    '#fff;}</style><script>alert(1)</script>',
    'url(https://evil.example)',
    '#ABCDEF0',
  ])('a colour of %j is a mistake of ours, and never gets into the style', (accent) => {
    expect(() => render(checkoutPage('waiting', { brand: { accent } }))).toThrow('is not a colour');
  });

  test('what the payer entered comes back as it was, in its field only', () => {
    for (const field of ['fee', 'paste', 'transaction'] as const) {
      const text = renderPage(checkoutPage('waiting'), NONCE, { question: { field, text: HOSTILE }, answer: null });
      const [, ...rest] = text.split(ESCAPED);
      expect(rest).toHaveLength(1);
      expect(text).toContain(`value="${ESCAPED}"`);
      expect(text).not.toContain('<script>alert');
    }
  });
});
