import { readFileSync } from 'node:fs';
import { type Html, html, rawHtml } from '../../web/html.ts';
import type en from './en.json';
import { LANGUAGES, type Language } from './languages.ts';

type English = typeof en;

/** The text for each plural form of the language (`Intl.PluralRules`). `other` is always present. */
export type PluralForms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

/** Texts that have only one form. */
export type TextKey = { [Key in keyof English]: English[Key] extends string ? Key : never }[keyof English];

/** Texts whose form depends on a number. */
type PluralKey = Exclude<keyof English, TextKey>;

/** A language's texts. Tests check that it has every key in the English catalogue. `{name}` is a placeholder, and `**…**` is strong. */
export type Catalogue = Record<TextKey, string> & Record<PluralKey, PluralForms>;

type Values = Readonly<Record<string, Html | string | number>>;

/** The texts of one language, ready to insert into a page. */
export type Words = {
  language: Language;
  direction: 'ltr' | 'rtl';
  /** Returns a text with its placeholders filled in. Values are escaped; `**…**` is strong. */
  say(key: TextKey, values?: Values): Html;
  /** Like `say`, but plain text for titles and attributes. */
  text(key: TextKey, values?: Readonly<Record<string, string | number>>): string;
  /** Returns the plural form for a number. `{count}` is the number. */
  count(key: PluralKey, count: number): Html;
  /** For example `21 Nov 2026, 03:17 UTC`. The script converts it to the reader's local time. */
  time(iso: string): Html;
  /** Like `time`, but without the date, which is added only on paper. It's for times that are less than a day away. */
  clock(iso: string): Html;
  /**
   * Formats a duration such as `29 minutes`. It's rounded down: to days from two days on, to hours from two hours on, and to minutes below
   * that. Durations below a minute are in seconds.
   */
  duration(ms: number, display?: 'long' | 'short'): string;
};

/**
 * The files are read at startup so that a missing file prevents it. They aren't imported, because early releases of Node.js 22 warn about
 * JSON modules.
 */
export const CATALOGUES = Object.fromEntries(
  LANGUAGES.map(({ code }) => {
    return [code, JSON.parse(readFileSync(new URL(`${code}.json`, import.meta.url), 'utf8'))];
  }),
) as Readonly<Record<Language, Catalogue>>;

export function wordsOf(language: Language): Words {
  const known = ready.get(language);
  if (known !== undefined) return known;
  const found = LANGUAGES.find(({ code }) => code === language);
  if (found === undefined) throw new Error(`there are no words in ${language}`);
  const words = createWords(CATALOGUES[language], language, found.direction);
  ready.set(language, words);
  return words;
}

/**
 * Caches the languages that were requested. Their number and date formats need memory, and the payers of most shops use only a few
 * languages.
 */
const ready = new Map<Language, Words>();

const MINUTE_MS = 60_000;

/** In British format, the day comes before the month, and the month is a word, so that 3/4 can't be misunderstood. */
const DATES: Readonly<Record<string, string>> = { en: 'en-GB' };

export function createWords(catalogue: Catalogue, language: Language, direction: 'ltr' | 'rtl'): Words {
  const dates = new Intl.DateTimeFormat(DATES[language] ?? language, {
    dateStyle: 'medium',
    timeStyle: 'short',
    timeZone: 'UTC',
  });
  const clocks = new Intl.DateTimeFormat(DATES[language] ?? language, { timeStyle: 'short', timeZone: 'UTC' });
  const plurals = new Intl.PluralRules(language);
  const units = new Map<string, Intl.NumberFormat>();
  const measure = (count: number, unit: 'second' | 'minute' | 'hour' | 'day', unitDisplay: 'long' | 'short') => {
    const key = `${unit} ${unitDisplay}`;
    const format = units.get(key) ?? new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay });
    units.set(key, format);
    return format.format(count);
  };
  return {
    language,
    direction,
    say: (key, values = {}) => fill(catalogue[key], values),
    text: (key, values = {}) =>
      catalogue[key].replaceAll(STRONG, '').replace(PLACE, (_, name: string) => String(values[name] ?? '')),
    count: (key, count) => {
      const forms = catalogue[key];
      return fill(forms[plurals.select(count)] ?? forms.other, { count });
    },
    time: (iso) => html`<time datetime="${iso}">${dates.format(new Date(iso))} UTC</time>`,
    clock: (iso) =>
      html`<time datetime="${iso}" data-clock title="${toMinute(iso)}">${clocks.format(new Date(iso))} UTC</time>`,
    duration: (ms, display = 'long') => {
      const minutes = Math.floor(ms / MINUTE_MS);
      if (minutes < 1) return measure(Math.max(0, Math.floor(ms / 1000)), 'second', display);
      if (minutes < 120) return measure(minutes, 'minute', display);
      if (minutes < 48 * 60) return measure(Math.floor(minutes / 60), 'hour', display);
      return measure(Math.floor(minutes / (24 * 60)), 'day', display);
    },
  };
}

const toMinute = (iso: string) => `${iso.slice(0, 16).replace('T', ' ')} UTC`;

const PLACE = /\{(\w+)\}/g;
const STRONG = '**';

/** Fills the placeholders. Every second part between `**` marks is strong. */
function fill(text: string, values: Values): Html {
  const marked = text.split(STRONG).map((part, index) => {
    const filled = fillPlaces(part, values);
    return index % 2 === 1 ? html`<strong>${filled}</strong>` : filled;
  });
  return rawHtml(marked.map((part) => part.html).join(''));
}

function fillPlaces(text: string, values: Values): Html {
  // `split` returns texts and placeholder names alternately.
  const parts = text.split(PLACE).map((part, index) => (index % 2 === 1 ? html`${values[part] ?? ''}` : html`${part}`));
  return rawHtml(parts.map((part) => part.html).join(''));
}
