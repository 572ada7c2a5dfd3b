import { expect, test } from 'vitest';
import { html } from '../../web/html.ts';
import type { Language } from './languages.ts';
import { CATALOGUES, createWords, wordsOf } from './words.ts';

const { en } = CATALOGUES;

/** The English catalogue with some texts replaced. */
const wordsWith = (texts: Partial<typeof en>) => createWords({ ...en, ...texts }, 'en', 'ltr');

test('a text is filled in: values are escaped, HTML stays as it is, what is missing is nothing', () => {
  const { say } = wordsWith({ support: '{merchant}, {contact} & {merchant} {unknown}.' });
  expect(say('support', { merchant: '<b>"A" & b\'s</b>', contact: html`<i>c</i>` }).html).toBe(
    '&lt;b&gt;&quot;A&quot; &amp; b&#39;s&lt;/b&gt;, <i>c</i> &amp; &lt;b&gt;&quot;A&quot; &amp; b&#39;s&lt;/b&gt; .',
  );
  expect(say('support', { constructor: 'x' }).html).toBe(',  &amp;  .');
});

test('what stands between two marks is strong, also around places', () => {
  const { say, text } = wordsWith({ paid: '**A {x}** b **c**' });
  expect(say('paid', { x: '1' }).html).toBe('<strong>A 1</strong> b <strong>c</strong>');
  expect(text('paid', { x: 1 })).toBe('A 1 b c');
});

test('a value is never read as a text: neither its places nor its marks', () => {
  const { say, text } = wordsWith({ titlePay: '{amount} {merchant}' });
  const values = { amount: '{merchant} **1**', merchant: '$& {amount} **' };
  expect(say('titlePay', values).html).toBe('{merchant} **1** $&amp; {amount} **');
  expect(text('titlePay', values)).toBe('{merchant} **1** $& {amount} **');
});

test('plain text is not escaped, for the place where it stands escapes it', () => {
  expect(wordsOf('en').text('titlePaid', { merchant: 'A & B' })).toBe('Paid: A & B');
});

test.each<[Language, number, string]>([
  ['en', 1, 'rounded to 1 decimal.'],
  ['en', 2, 'rounded to 2 decimals.'],
  ['en', 0, 'rounded to 0 decimals.'],
  ['ru', 1, CATALOGUES.ru.likelyRounded.one ?? ''],
  ['ru', 3, CATALOGUES.ru.likelyRounded.few ?? ''],
  ['ru', 6, CATALOGUES.ru.likelyRounded.many ?? ''],
  ['ar', 0, CATALOGUES.ar.likelyRounded.zero ?? ''],
  ['ar', 2, CATALOGUES.ar.likelyRounded.two ?? ''],
  ['zh-Hans', 1, CATALOGUES['zh-Hans'].likelyRounded.other],
])('in %s the number %d takes its plural form', (language, count, text) => {
  expect(text).not.toBe('');
  expect(wordsOf(language).count('likelyRounded', count).html).toContain(text.replace('{count}', String(count)));
});

test('a form that a catalogue lacks is replaced by the one that each has', () => {
  const { count } = wordsWith({ likelyRounded: { other: 'x{count}' } as typeof en.likelyRounded });
  expect(count('likelyRounded', 1).html).toBe('x1');
});

test('a time is there for the script and, in UTC, for those without it', () => {
  expect(wordsOf('en').time('2026-04-03T09:05:59.000Z').html).toBe(
    '<time datetime="2026-04-03T09:05:59.000Z">3 Apr 2026, 09:05 UTC</time>',
  );
  expect(wordsOf('fr').time('2026-04-03T09:05:59.000Z').html).toContain('>3 avr. 2026, 09:05 UTC</time>');
});

test('a clock leaves the date to the paper', () => {
  expect(wordsOf('en').clock('2026-04-03T09:05:59.000Z').html).toBe(
    '<time datetime="2026-04-03T09:05:59.000Z" data-clock title="2026-04-03 09:05 UTC">09:05 UTC</time>',
  );
});

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

test.each([
  [-5, '0 seconds'],
  [999, '0 seconds'],
  [59_999, '59 seconds'],
  [MINUTE, '1 minute'],
  [2 * MINUTE - 1, '1 minute'],
  [119 * MINUTE + 59_999, '119 minutes'],
  [120 * MINUTE, '2 hours'],
  [2 * DAY - 1, '47 hours'],
  [2 * DAY, '2 days'],
  [400 * DAY, '400 days'],
])('%d ms are "%s", never more than they are', (ms, text) => {
  expect(wordsOf('en').duration(ms)).toBe(text);
});

test.each<[Language, string, string]>([
  ['ru', '5 минут', '2 дня'],
  ['zh-Hans', '5分钟', '2天'],
  ['fr', '5 minutes', '2\u00a0jours'],
  ['id', '5 menit', '2 hari'],
])('in %s they are said in its own words', (language, minutes, days) => {
  const { duration } = wordsOf(language);
  expect([duration(5 * MINUTE), duration(2 * DAY)]).toEqual([minutes, days]);
});

test('a language that the page does not have is a mistake of ours', () => {
  expect(() => wordsOf('nl' as Language)).toThrow('there are no words in nl');
});
