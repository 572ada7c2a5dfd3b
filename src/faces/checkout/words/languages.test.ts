import { expect, test } from 'vitest';
import { chooseLanguage, LANGUAGES, preferredLanguage } from './languages.ts';

const choose = (query: unknown, acceptLanguage?: string) =>
  chooseLanguage({ query, headers: acceptLanguage === undefined ? {} : { 'accept-language': acceptLanguage } });

test('each language is told by its own code, in the link and in what the browser sends', () => {
  for (const { code } of LANGUAGES) {
    expect(choose({ lang: code }), code).toEqual({ language: code, isAsked: true });
    expect(choose({}, code), code).toEqual({ language: code, isAsked: false });
  }
});

test('what the link asks for wins over what the browser prefers', () => {
  expect(choose({ lang: 'tr' }, 'fr,en;q=0.5')).toEqual({ language: 'tr', isAsked: true });
});

test.each([
  ['zh-Hans', 'zh-Hans'],
  ['zh', 'zh-Hans'],
  ['zh-CN', 'zh-Hans'],
  ['PT', 'pt-BR'],
  ['pt-BR', 'pt-BR'],
  ['ar-EG', 'ar'],
])('a link that asks for %s gets the page in %s', (lang, language) => {
  const headers = { 'accept-language': 'fr' };
  expect(chooseLanguage({ query: { lang }, headers })).toEqual({ language, isAsked: true });
});

test.each([
  ['xx'],
  [''],
  ['__proto__'],
  ['constructor'],
  ['../../etc/passwd'],
  ['"><script>'],
  ['fr\u0000'],
  ['f'.repeat(16_000)],
  [['fr', 'en']],
  [{ toString: 'fr' }],
  [null],
  [undefined],
])('a link that asks for %j has asked for nothing', (lang) => {
  expect(choose({ lang }, 'uk')).toEqual({ language: 'uk', isAsked: false });
  expect(choose({ lang })).toEqual({ language: 'en', isAsked: false });
});

test('without a query or the header the page is in English', () => {
  expect(choose(undefined)).toEqual({ language: 'en', isAsked: false });
});

test.each([
  // Typical browser headers.
  ['uk-UA,uk;q=0.9,ru;q=0.8,en-US;q=0.7,en;q=0.6', 'uk'],
  ['nl-NL,nl;q=0.9,fr;q=0.8,en;q=0.7', 'fr'],
  ['en-US,en;q=0.9', 'en'],
  // The highest quality wins, in any order. Of equal ones, the first wins.
  ['en;q=0.1, fr;q=0.9, ru;q=0.5', 'fr'],
  ['es;q=0.5,id;q=0.5', 'es'],
  ['es;q=0.5,id', 'id'],
  ['fr;q=0.001,en;q=0', 'fr'],
  ['fr;q=0,tr;q=0.000', 'en'],
  ['fr; q=0.2 , vi ; q=0.7', 'vi'],
  ['fr;Q=0.2,vi;q=0.1', 'fr'],
  // Unsupported scripts and regions fall back to the supported language.
  ['zh', 'zh-Hans'],
  ['zh-TW', 'zh-Hant'],
  ['zh-Hans-CN', 'zh-Hans'],
  ['zh-Hant-HK,en;q=0.5', 'zh-Hant'],
  ['zh-Hans-TW', 'zh-Hans'],
  ['zh-SG', 'zh-Hans'],
  ['ZH-hans', 'zh-Hans'],
  ['pt-PT', 'pt-BR'],
  ['pt', 'pt-BR'],
  ['es-419', 'es'],
  ['ar-EG', 'ar'],
  ['fa-AF', 'fa'],
  ['in', 'id'],
  ['in-ID', 'id'],
  // Another language with the same prefix.
  ['fil,ru;q=0.4', 'ru'],
  ['ind', 'en'],
  // No preference, and malformed headers.
  ['*', 'en'],
  ['*,tr;q=0.5', 'tr'],
  ['', 'en'],
  [',,;;,', 'en'],
  [';q=1', 'en'],
  ['fr;q=abc', 'fr'],
  ['fr;q=-1;q=0.3,es;q=0.9', 'es'],
  ['\u0000\uffff<script>', 'en'],
  ['__proto__,constructor,toString', 'en'],
  ['constructor-x,ar;q=0.2', 'ar'],
])('%j is read as %s', (header, language) => {
  expect(preferredLanguage(header)).toBe(language);
});

test('a header as long as servers take is read no further than anybody means it', () => {
  const long = (part: string) => part.repeat(Math.floor(16_384 / part.length));
  expect(preferredLanguage(`fr,${long('xx,')}`)).toBe('fr');
  expect(preferredLanguage(`${long('xx,')}fr`)).toBe('en');
  expect(preferredLanguage(`fr;q=0.5${long(';q=x')},tr;q=0.4`)).toBe('fr');
  expect(preferredLanguage(long('a-'))).toBe('en');
  expect(preferredLanguage(`fr;q=${long('1')}`)).toBe('fr');
});
