import { expect, test } from 'vitest';
import { checkoutPage } from '../../../../test/support/checkout-page.ts';
import { LOOKUP_ANSWERS } from '../../../../test/support/lookup-answers.ts';
import type { LookupAnswer } from '../../../core/domain/lookup/lookup.ts';
import { LANGUAGES } from '../words/languages.ts';
import { renderAnswer, renderLimited } from './answer.ts';

const find = (code: LookupAnswer['code'], details: object = {}): LookupAnswer => {
  const found = LOOKUP_ANSWERS.find((answer) => {
    return answer.code === code && Object.entries(details).every(([key, value]) => equals(answer, key, value));
  });
  if (found === undefined) throw new Error(`no ${code} with ${JSON.stringify(details)}`);
  return found;
};

const equals = (answer: LookupAnswer, key: string, value: unknown) =>
  JSON.stringify((answer as Record<string, unknown>)[key]) === JSON.stringify(value);

/** The visible text, without tags. */
const read = (answer: LookupAnswer) => renderAnswer(checkoutPage('waiting'), answer).html.replaceAll(/<[^>]+>/g, '');

test.each<[LookupAnswer, string[]]>([
  [find('paid'), ['✓ This transaction has paid this invoice. 123456.990007 USDT', 'block 68123456']],
  [find('confirming', { earlierTransaction: null }), ['This is your payment.', '3 of 19', 'Do not send again']],
  [find('exact_but_already_paid', { paidBy: null }), ['had already been paid', 'Contact Test shop']],
  [find('exact_not_yet_examined', { earlierTransaction: null }), ['exactly right', 'Do not send again']],
  [find('exact_not_confirmed'), ['not enough nodes', 'check again in 1 minute.']],
  [find('exact_not_recorded'), ['not in our records', 'give this transaction ID to Test shop']],
  [find('before_invoice'), ['1 Sept 2026, 12:10 UTC, before this invoice was created at 1 Sept 2026, 12:00 UTC']],
  [
    find('short', { likely: null }),
    ['only 123455.990007 USDT arrived, which is 1 less than 123456.990007', 'Do not send the rest'],
  ],
  [find('over', { likely: null }), ['1 more than 123456.990007', 'Do not send again']],
  [find('short', { likely: { kind: 'fee' } }), ['looks like a fee']],
  [find('short', { likely: { kind: 'rounded', decimals: 2 } }), ['rounded to 2 decimals']],
  [find('short', { likely: { kind: 'truncated', decimals: 1 } }), ['cut off after 1 decimal.']],
  [find('over', { likely: { kind: 'one_digit' } }), ['One digit is different']],
  [find('other_address'), ['5.00 USDT to a different address: TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t']],
  [find('other_token'), ['not USDT', 'contract TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t']],
  [find('failed', { why: 'out_of_energy' }), ['it paid nothing', 'too little energy']],
  [find('failed', { why: 'other' }), ['The network says: BAD_JUMP_DESTINATION.']],
  [find('no_usdt_transfer', { toAddress: true }), ['12.500000 TRX to the right address', 'Contact Test shop']],
  [find('no_usdt_transfer', { moved: 'trx', toAddress: false }), ['12.500000 TRX to a different address']],
  [find('not_found'), ['check again in 1 minute', 'internal or off-chain']],
  [find('orphaned'), ['usually included in a new block', 'Do not send again.']],
  [find('other_network'), ['on TRON Shasta Testnet. This invoice can be paid only on TRON Mainnet.', 'still awaiting']],
  [find('not_tron', { looksLike: 'solana' }), ['on Solana, not on TRON']],
  [find('not_a_transaction_id', { looksLike: 'part-of-an-id' }), ['12 characters of 64']],
  [find('unavailable'), ['Your payment is safe. Try again in 5 seconds.']],
])('$0.code is told in words, with its figures', (answer, texts) => {
  for (const text of texts) expect(read(answer)).toContain(text);
});

test.each(LOOKUP_ANSWERS)('$code: who is told to contact the merchant is told where, and nobody else', (answer) => {
  const asksMerchant = /[Cc]ontact <bdi>|ID to <bdi>/.test(renderAnswer(checkoutPage('waiting'), answer).html);
  for (const [brand, href] of [
    [{ supportContact: 'help@shop.example', returnUrl: 'https://shop.example/' }, 'mailto:help@shop.example'],
    [{ returnUrl: 'https://shop.example/' }, 'https://shop.example/'],
  ] as const) {
    const text = renderAnswer(checkoutPage('waiting', { brand }), answer).html;
    expect(text.includes(`href="${href}"`)).toBe(asksMerchant);
  }
});

test.each<[Parameters<typeof checkoutPage>[0], solidNumber: number, wasSighted: boolean, string]>([
  ['waiting', 68_123_456, false, 'If you have not sent another payment, you can send again.'],
  ['expired', 68_123_456, false, 'If you have not sent another payment, you can send again.'],
  // Until its block is irreversible, a fork may let it succeed.
  ['waiting', 68_123_455, false, 'This result is not final yet. Do not send again; check again in 1 minute.'],
  ['seen', 68_123_456, false, 'Another payment was found. Do not send again.'],
  ['paid', 68_123_456, false, 'Another payment was found. Do not send again.'],
  ['replaced', 68_123_456, false, 'Another payment was found. Do not send again.'],
  // It is itself the payment whose block was replaced.
  ['replaced', 68_123_455, true, 'This result is not final yet. Do not send again; check again in 1 minute.'],
  ['replaced', 68_123_456, true, 'If you have not sent another payment, you can send again.'],
  ['seen', 68_123_456, true, 'Another payment was found. Do not send again.'],
])(
  'who looks up a failed transaction of an invoice that is %s, final up to %i, sighted before: %s, is told what to do',
  (state, solidNumber, wasSighted, text) => {
    const page = checkoutPage(state, { invoice: { solidNumber } });
    const failed = { ...find('failed', { why: 'reverted' }), wasSighted } as LookupAnswer;
    const shown = renderAnswer(page, failed).html;
    expect(shown.replaceAll(/<[^>]+>/g, '')).toContain(text);
    expect(shown.includes('data-may-send')).toBe(text.includes('you can send again'));
  },
);

test('whoever must not send again, or may, is told so by the paragraph and not by its colour', () => {
  const isGood = (answer: LookupAnswer) =>
    renderAnswer(checkoutPage('waiting'), answer).html.startsWith('<p class="good">✓ ');
  expect(LOOKUP_ANSWERS.filter(isGood).map(({ code }) => code)).toEqual([
    'paid',
    'confirming',
    'exact_not_yet_examined',
  ]);
});

test('a second payment is no good news, though it is exactly right', () => {
  for (const code of ['confirming', 'exact_not_yet_examined'] as const) {
    const text = read(find(code, { earlierTransaction: 'b4'.repeat(32) }));
    expect(text).toContain('so this payment does not count');
    expect(text).toContain('b4'.repeat(32));
  }
});

test.each(LANGUAGES.map(({ code }) => code))(
  'in %s every answer is complete, and its figures are read from left to right',
  (language) => {
    const page = checkoutPage('waiting', { language });
    const texts = [...LOOKUP_ANSWERS.map((answer) => renderAnswer(page, answer)), renderLimited(page, 7)].map(
      ({ html }) => html,
    );
    expect(texts.filter((text) => /[{}]|\*\*|undefined|\bnull\b|<p[^>]*>\s*<\/p>/.test(text))).toEqual([]);
    // Each detail has its own text, except that second payments, other tokens, and empty results share one each.
    expect(new Set(texts).size).toBe(texts.length - 3);
    for (const text of texts) {
      const bare = text.replaceAll(/<bdi dir="ltr">[^<]*<\/bdi>|<time[^>]*>[^<]*<\/time>/g, '');
      expect(bare).not.toMatch(/\d\.\d|T[1-9A-HJ-NP-Za-km-z]{33}|[0-9a-f]{64}/);
    }
  },
);

test('what the chain, a token or the merchant says is text', () => {
  const hostile = '<img src=x onerror=1>';
  const page = checkoutPage('waiting', { brand: { name: hostile } });
  const answers: LookupAnswer[] = [
    { ...find('failed', { why: 'other' }), result: hostile } as LookupAnswer,
    { ...find('other_token'), contract: hostile } as LookupAnswer,
    { ...find('other_address'), to: hostile } as LookupAnswer,
    find('exact_not_recorded'),
  ];
  for (const answer of answers) {
    const { html } = renderAnswer(page, answer);
    expect(html).not.toContain('<img');
    expect(html).toContain('&lt;img src=x onerror=1&gt;');
  }
});
