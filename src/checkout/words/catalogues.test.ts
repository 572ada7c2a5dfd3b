import { describe, expect, test } from 'vitest';
import { LANGUAGES, type Language } from '../languages.ts';
import { CATALOGUES } from '../words.ts';
import type { PluralForms } from './catalogue.ts';

const { en } = CATALOGUES;
const OTHERS = LANGUAGES.map(({ code }) => code).filter((code) => code !== 'en');

type Text = { key: string; text: string; english: string };

/** Every text of a language with the English one that it translates; each form of a plural counts. */
function textsOf(language: Language): Text[] {
  return Object.entries<string | PluralForms>(CATALOGUES[language]).flatMap(([key, entry]) => {
    const source: string | PluralForms = en[key as keyof typeof en];
    if (typeof entry === 'string') return [{ key, text: entry, english: typeof source === 'string' ? source : '' }];
    return Object.entries(entry).map(([form, text]) => {
      const forms = typeof source === 'string' ? { other: source } : source;
      return { key: `${key}.${form}`, text, english: forms[form as 'other'] ?? forms.other };
    });
  });
}

/** What breaks a rule, as `key: text`. */
const breaches = (language: Language, isRight: (text: Text) => boolean): string[] =>
  textsOf(language)
    .filter((text) => !isRight(text))
    .map(({ key, text }) => `${key}: ${JSON.stringify(text)}`);

const setOf = (text: string, pattern: RegExp): string => [...new Set(text.match(pattern) ?? [])].sort().join();

/** Words that are the same in both languages. */
const SAME_AS_ENGLISH: Partial<Record<Language, string[]>> = { fr: ['transaction'] };

test('the languages are the catalogues, English first', () => {
  expect(LANGUAGES.map(({ code }) => code)).toEqual(Object.keys(CATALOGUES));
  expect(LANGUAGES[0].code).toBe('en');
});

describe.each(LANGUAGES.map(({ code }) => code))('%s', (language) => {
  const catalogue = CATALOGUES[language];

  test('has every text, in the order of the English ones, and none is empty', () => {
    expect(Object.keys(catalogue)).toEqual(Object.keys(en));
    expect(breaches(language, ({ text }) => text.trim() === text && text !== '')).toEqual([]);
  });

  test('has for each number exactly the plural forms of its language', () => {
    const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions();
    for (const [key, entry] of Object.entries<string | PluralForms>(catalogue)) {
      const isPlural = typeof en[key as keyof typeof en] !== 'string';
      expect(typeof entry === 'string' ? null : Object.keys(entry).sort(), key).toEqual(
        isPlural ? [...pluralCategories].sort() : null,
      );
    }
  });

  test('has the places that the English text has', () => {
    expect(breaches(language, ({ text, english }) => setOf(text, /\{\w+\}/g) === setOf(english, /\{\w+\}/g))).toEqual(
      [],
    );
    // What is left without its places has no brace that the page would show.
    expect(breaches(language, ({ text }) => !/[{}]/.test(text.replaceAll(/\{\w+\}/g, '')))).toEqual([]);
  });

  test('emphasises as much as the English text does, and something each time', () => {
    const marks = (text: string) => text.split('**').length - 1;
    expect(breaches(language, ({ text, english }) => marks(text) % 2 === 0 && marks(text) === marks(english))).toEqual(
      [],
    );
    expect(
      breaches(language, ({ text }) => text.split('**').every((part, index) => index % 2 === 0 || part.trim() !== '')),
    ).toEqual([]);
    expect(breaches(language, ({ text }) => !text.replaceAll('**', '').includes('*'))).toEqual([]);
  });

  test('names the button as it is seen in what is read out, so that it can be called by voice', () => {
    const seen = catalogue.copy.toLocaleLowerCase(language);
    for (const key of ['copyAmount', 'copyAddress'] as const) {
      expect(catalogue[key].toLocaleLowerCase(language), key).toContain(seen);
    }
  });

  test('keeps what is the same in every language: names, numbers in Latin digits', () => {
    const names = /USDT|TRON(?!SCAN)|TRC-20|TRX|Tronscan|TxID|TronLink|Trust Wallet|JSON|\d+(?:\.\d+)?/g;
    const lacking = ({ text, english }: Text) => (english.match(names) ?? []).every((name) => text.includes(name));
    expect(breaches(language, lacking)).toEqual([]);
    expect(breaches(language, ({ text }) => !/(?![0-9])\p{Nd}/u.test(text))).toEqual([]);
  });

  test('ends a text as a sentence exactly where the English one does', () => {
    const isSentence = (text: string) => /[.…。]$/u.test(text.replaceAll('**', ''));
    expect(breaches(language, ({ text, english }) => isSentence(text) === isSentence(english))).toEqual([]);
  });

  test('holds no control character, none that turns text around, and no space that is not seen', () => {
    // Spaces that do not break stand in Russian, Ukrainian and French typesetting, the non-joiner in Persian words.
    const hidden = /\p{Cc}|\p{Zl}|\p{Zp}|(?!\u200c)\p{Cf}|\s\s/u;
    expect(breaches(language, ({ text }) => !hidden.test(text))).toEqual([]);
    if (language !== 'fa') expect(breaches(language, ({ text }) => !text.includes('\u200c'))).toEqual([]);
  });

  test('is typeset: no typewriter quotes, no dots for an ellipsis, brackets closed', () => {
    expect(breaches(language, ({ text }) => !/['"`´]|\.\.|…\./.test(text))).toEqual([]);
    for (const [open, close] of ['()', '（）', '«»', '“”', '「」'] as const) {
      const count = (text: string, mark: string | undefined) => text.split(mark ?? '').length;
      expect(breaches(language, ({ text }) => count(text, open) === count(text, close))).toEqual([]);
    }
  });
});

test.each(OTHERS)('%s says nothing in English but words that both have', (language) => {
  const same = breaches(language, ({ key, text, english }) => {
    return text !== english || (SAME_AS_ENGLISH[language] ?? []).includes(key);
  });
  expect(same).toEqual([]);
});

test.each(['ru', 'uk'] as const)('%s is in Cyrillic letters but for names', (language) => {
  const foreign = /[a-z]{2,}/gi;
  const NAMES = new Set(
    'USDT TRON TRC TRX QR TxID Tronscan TronLink Trust Wallet JSON internal off chain ID'.split(' '),
  );
  const withoutPlaces = (text: string) => text.replaceAll(/\{\w+\}/g, '');
  expect(
    breaches(language, ({ text }) => (withoutPlaces(text).match(foreign) ?? []).every((word) => NAMES.has(word))),
  ).toEqual([]);
});

test('Chinese has full-width punctuation, and a point only within numbers', () => {
  expect(breaches('zh-Hans', ({ text }) => !/[,;:?!()]|(?<!\d)\.|\.(?!\d)/.test(text))).toEqual([]);
});

test.each(['ar', 'fa'] as const)('%s has its own comma, semicolon and question mark', (language) => {
  expect(breaches(language, ({ text }) => !/[,;?]/.test(text))).toEqual([]);
});

test('French has a space that does not break before the marks that want one', () => {
  expect(breaches('fr', ({ text }) => !/[^\s\u00a0\u202f][;?!:»]|(?<![\u00a0\u202f]) [;?!:»]|« /u.test(text))).toEqual(
    [],
  );
});

test('Spanish opens its questions', () => {
  expect(breaches('es', ({ text }) => text.split('?').length === text.split('¿').length)).toEqual([]);
});
