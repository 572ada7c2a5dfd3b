import { readFileSync } from 'node:fs';
import { type Html, html, rawHtml } from '../../web/html.ts';
import type { Catalogue, PluralKey, TextKey } from './catalogue.ts';
import { LANGUAGES, type Language } from './languages.ts';

type Values = Readonly<Record<string, Html | string | number>>;

/** The words of one language, ready to be put into a page. */
export type Words = {
  language: Language;
  direction: 'ltr' | 'rtl';
  /** A text with its places filled in. Values are escaped; `**…**` is strong. */
  say(key: TextKey, values?: Values): Html;
  /** The same as plain text, for titles and attributes. */
  text(key: TextKey, values?: Readonly<Record<string, string | number>>): string;
  /** The form of a text that a number asks for; `{count}` is the number. */
  count(key: PluralKey, count: number): Html;
  /** `21 Nov 2026, 03:17 UTC`: the script turns it into the reader's own time. */
  time(iso: string): Html;
  /** The same without its date, which stands behind it on paper: for a time within a day from now. */
  clock(iso: string): Html;
  /** `29 minutes`, rounded down to whole minutes, hours from two of them on, days from two of them on; below a minute in seconds. */
  duration(ms: number, display?: 'long' | 'short'): string;
};

/** Read at the start, so that a missing file stops it. Not imported, because early releases of Node 22 warn of JSON modules. */
export const CATALOGUES = Object.fromEntries(
  LANGUAGES.map(({ code }) => {
    return [code, JSON.parse(readFileSync(new URL(`${code}.json`, import.meta.url), 'utf8'))];
  }),
) as Readonly<Record<Language, Catalogue>>;

/** The words of a language of the page. */
export function wordsOf(language: Language): Words {
  const known = ready.get(language);
  if (known !== undefined) return known;
  const found = LANGUAGES.find(({ code }) => code === language);
  if (found === undefined) throw new Error(`there are no words in ${language}`);
  const words = createWords(CATALOGUES[language], language, found.direction);
  ready.set(language, words);
  return words;
}

/** Languages that were asked for. What counts and dates in one takes memory, and payers of most shops read a few. */
const ready = new Map<Language, Words>();

const MINUTE_MS = 60_000;

/** The day before the month, and the month by name: no reader takes 3/4 for another day. */
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

/** `2026-11-21 03:17 UTC`. */
const toMinute = (iso: string) => `${iso.slice(0, 16).replace('T', ' ')} UTC`;

const PLACE = /\{(\w+)\}/g;
const STRONG = '**';

/** Text stands between the places, and every second stretch between the marks is strong. */
function fill(text: string, values: Values): Html {
  const marked = text.split(STRONG).map((part, index) => {
    const filled = fillPlaces(part, values);
    return index % 2 === 1 ? html`<strong>${filled}</strong>` : filled;
  });
  return rawHtml(marked.map((part) => part.html).join(''));
}

function fillPlaces(text: string, values: Values): Html {
  // Texts and names of places take turns.
  const parts = text.split(PLACE).map((part, index) => (index % 2 === 1 ? html`${values[part] ?? ''}` : html`${part}`));
  return rawHtml(parts.map((part) => part.html).join(''));
}
