import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { LANGUAGES, type Language } from './languages.ts';
import { CATALOGUES, type PluralForms } from './words.ts';

type Entries = Record<string, string | PluralForms>;

/** A text of a catalogue with its English original. Each plural form counts as a text. */
type Text = { key: string; text: string; english: string; language: Language; catalogue: Entries };

type Rule = {
  /** Completes "no text …". */
  says: string;
  languages?: readonly Language[];
  isBroken(text: Text): boolean;
  /** A language, a key, and a text that breaks the rule. */
  planted: [Language, string, string];
};

const CODES = LANGUAGES.map(({ code }) => code);
const ENGLISH: Entries = CATALOGUES.en;

/** Words that are the same in both languages. */
const SAME_AS_ENGLISH: Partial<Record<Language, string[]>> = { fr: ['transaction'], de: ['block'] };

/** These are the same in every language. */
const NAMES_AND_NUMBERS = /USDT|TRON(?!SCAN)|TRC20|TRX|Tronscan|TxID|TronLink|Trust Wallet|JSON|\d+(?:\.\d+)?/g;

const LATIN_NAMES = new Set(
  'USDT TRON TRC TRX QR Memo TxID Tronscan TronLink Trust Wallet JSON internal off chain ID'.split(' '),
);

const PLACE = /\{\w+\}/g;
const withoutPlaces = (text: string) => text.replaceAll(PLACE, '');
const placesOf = (text: string) => [...new Set(text.match(PLACE))].sort().join();
const count = (text: string, part: string) => text.split(part).length - 1;
const isSentence = (text: string) => /[.…。।۔]$/u.test(text.replaceAll('**', ''));

/** Words that a language avoids, so that payers see one word per thing and one form of address. */
const FORBIDDEN: Partial<Record<Language, RegExp>> = {
  de: /\bNetz(?:es|e|en)?\b|Überweisung|\bBörse|nachschlag|\b(?:du|dein\w*)\b/i,
  it: /\b(?:hai|tuo|tua|tuoi|inviare nulla)\b/i,
  ja: /あなた|もう一度送金|取引 ?ID/,
  ko: /마세요|\{merchant\}로/,
  pl: /samoczynnie|wysyłaj\b|\btwoj/i,
  th: /ศูนย์ซื้อขาย/,
};

/** Beginnings of an answer that leave open what the answer is about, because no heading above it names the transaction. */
const UNNAMED: Partial<Record<Language, RegExp>> = {
  de: /^\**(?:Sie (?:ist|sieht|ging|hat|wurde)|Es ist) /,
  it: /^\**(?:È|Ha|Sembra|Non ha) /,
  pl: /^\**(?:Wysłano (?:ją|nią)|Przeniosła|Nie powiodła|Nie przeniosła) /,
  hi: /^\**(?:इसने|यह बिल्कुल|यह सही|यह नेटवर्क|यह इस बिल) /,
  ur: /^\**(?:اس نے|یہ بالکل|یہ درست|یہ نیٹ ورک|یہ اس بل) /,
  'zh-Hant': /^\**它/,
};

/** The words for the deadline, which never moves. Only the countdown can be paused. */
const DEADLINE =
  /frist|deadline|plazo|délai|prazo|tempo per pagare|czas na płatność|срок|строк|süresi|waktu|thời gian|مهلة|مهلت|समय|وقت|期限|時限|时限|시간|เวลาชำระ/i;

const RULES: Rule[] = [
  {
    says: 'promises that the deadline waits until we see the network again',
    isBroken: ({ key, text }) => key === 'clockStands' && DEADLINE.test(text),
    planted: ['de', 'clockStands', 'Die Zahlungsfrist steht still, bis wir das Netzwerk wieder sehen.'],
  },
  {
    says: 'has a word or a form of address that the language has another one for',
    isBroken: ({ text, language }) => /TRC-20/.test(text) || FORBIDDEN[language]?.test(text) === true,
    planted: ['de', 'receiptNetwork', 'Netz'],
  },
  {
    says: 'of an answer begins without a name for the transaction or the payment',
    isBroken: ({ key, text, language }) => key.startsWith('answer') && UNNAMED[language]?.test(text) === true,
    planted: ['it', 'answerFailed', 'È fallita sulla rete: **non è stato pagato nulla**.'],
  },
  {
    says: 'has a decimal point in an example where people write a comma',
    languages: ['de', 'fr', 'es', 'pt-BR', 'it', 'pl', 'ru', 'uk', 'tr', 'id', 'vi'],
    isBroken: ({ text }) => /\d\.\d/.test(text),
    planted: ['fr', 'feeInvalid', 'Par exemple 1.5.'],
  },
  {
    says: 'is empty, or begins or ends with a space',
    isBroken: ({ text }) => text.trim() !== text || text === '',
    planted: ['ru', 'paid', ''],
  },
  {
    says: 'has other places than the English one',
    // A form for exactly one or two may spell the number out.
    isBroken: ({ key, text, english }) =>
      placesOf(text) !== placesOf(english) && !(/\.(one|two)$/.test(key) && !text.includes('{')),
    planted: ['ru', 'titlePaid', 'Оплачено: {shop}'],
  },
  {
    says: 'has a brace that the page would show',
    isBroken: ({ text }) => /[{}]/.test(withoutPlaces(text)),
    planted: ['fr', 'paid', 'Payé {'],
  },
  {
    says: 'emphasises (**) more or less often than the English one',
    isBroken: ({ text, english }) => count(text, '**') % 2 !== 0 || count(text, '**') !== count(english, '**'),
    planted: ['tr', 'foundText', '**Tekrar göndermeyin.'],
  },
  {
    says: 'emphasises (**) nothing',
    isBroken: ({ text }) => text.split('**').some((part, index) => index % 2 === 1 && part.trim() === ''),
    planted: ['tr', 'foundText', 'Tekrar göndermeyin.****'],
  },
  {
    says: 'has a star that the page would show',
    isBroken: ({ text }) => text.replaceAll('**', '').includes('*'),
    planted: ['id', 'paid', '*Lunas'],
  },
  {
    // Otherwise the button can't be operated by voice.
    says: 'of the button that copies lacks the word that is seen on it',
    isBroken: ({ key, text, language, catalogue }) =>
      (key === 'copyAmount' || key === 'copyAddress') &&
      !text.toLocaleLowerCase(language).includes(String(catalogue['copy']).toLocaleLowerCase(language)),
    planted: ['es', 'copyAmount', 'Llevar el importe'],
  },
  {
    says: 'lacks a name or a number of the English one',
    isBroken: ({ text, english }) =>
      (english.match(NAMES_AND_NUMBERS) ?? []).some(
        (name) => !text.includes(name) && !text.includes(name.replace('.', ',')),
      ),
    planted: ['uk', 'openTrust', 'Сплатити'],
  },
  {
    // The payer would take it for a request to pay again.
    says: 'says only once more that the payment is awaited',
    // In Portuguese the extra word is the verb.
    languages: CODES.filter((code) => code !== 'pt-BR'),
    isBroken: ({ key, text, catalogue }) => {
      const words = text.split(' ');
      const awaited = String(catalogue['waiting']).split(' ');
      const isIn = (word: string) => words.some((own) => own.toLowerCase() === word.toLowerCase());
      return key === 'gone' && awaited.every(isIn) && words.length <= awaited.length + 1;
    },
    planted: ['uk', 'gone', 'Знову очікуємо ваш платіж'],
  },
  {
    says: 'has digits that are not Latin',
    isBroken: ({ text }) => /(?![0-9])\p{Nd}/u.test(text),
    planted: ['fa', 'paid', '۱'],
  },
  {
    says: 'ends as a sentence unlike the English one',
    // Thai has no full stop.
    languages: CODES.filter((code) => code !== 'th'),
    isBroken: ({ text, english }) => isSentence(text) !== isSentence(english),
    planted: ['zh-Hans', 'paidText', '您的付款已最终确认'],
  },
  {
    // Non-breaking spaces are correct in Russian, Ukrainian and French typesetting.
    says: 'has a control character, one that turns text around, or a space that is not seen',
    isBroken: ({ text }) => /\p{Cc}|\p{Zl}|\p{Zp}|(?!\u200c)\p{Cf}|\s\s/u.test(text),
    planted: ['ar', 'paid', '\u202eتم الدفع'],
  },
  {
    says: 'has the non-joiner, which stands in Persian words',
    languages: CODES.filter((code) => code !== 'fa'),
    isBroken: ({ text }) => text.includes('\u200c'),
    planted: ['ar', 'paid', 'تم\u200cالدفع'],
  },
  {
    says: 'has typewriter quotes, or dots for an ellipsis',
    isBroken: ({ text }) => /['"`´]|\.\.|…\./.test(text),
    planted: ['en', 'searching', 'Looking up...'],
  },
  {
    says: 'leaves a bracket open',
    isBroken: ({ text }) =>
      ['()', '（）', '«»', '“”', '「」'].some(([open = '', close = '']) => count(text, open) !== count(text, close)),
    planted: ['pt-BR', 'paid', 'Pago (USDT'],
  },
  {
    says: 'is in English but for words that both have',
    languages: CODES.filter((code) => code !== 'en'),
    isBroken: ({ key, text, english, language }) =>
      text === english && !(SAME_AS_ENGLISH[language] ?? []).includes(key),
    planted: ['vi', 'paid', 'Paid'],
  },
  {
    says: 'has Latin letters but for names',
    languages: ['ru', 'uk'],
    isBroken: ({ text }) => (withoutPlaces(text).match(/[a-z]{2,}/gi) ?? []).some((word) => !LATIN_NAMES.has(word)),
    planted: ['uk', 'paid', 'Oplacheno'],
  },
  {
    says: 'has punctuation that is not full-width, or a point outside of numbers',
    languages: ['zh-Hans', 'zh-Hant', 'ja'],
    isBroken: ({ text }) => /[,;:?!()]|。 |(?<!\d)\.|\.(?!\d)/.test(text),
    planted: ['zh-Hans', 'paid', '支付,成功'],
  },
  {
    says: 'has a comma, semicolon or question mark of another script',
    languages: ['ar', 'fa', 'ur'],
    isBroken: ({ text }) => /[,;?]/.test(text),
    planted: ['fa', 'paid', 'پرداخت شد, '],
  },
  {
    says: 'lacks a space that does not break before a mark that wants one',
    languages: ['fr'],
    isBroken: ({ text }) => /[^\s\u00a0\u202f][;?!:»]|(?<![\u00a0\u202f]) [;?!:»]|« /u.test(text),
    planted: ['fr', 'paid', 'Payé !'],
  },
  {
    says: 'ends a question that it has not opened',
    languages: ['es'],
    isBroken: ({ text }) => count(text, '?') !== count(text, '¿'),
    planted: ['es', 'feeTitle', 'Paga desde un exchange?'],
  },
];

/** Reports for translators: the file, the key, and the text next to the English one. */
function problemsOf(language: Language, catalogue: Entries, rule: Rule): string[] {
  if (rule.languages !== undefined && !rule.languages.includes(language)) return [];
  return Object.entries(catalogue).flatMap(([name, entry]) => {
    const source = ENGLISH[name] ?? '';
    return Object.entries(typeof entry === 'string' ? { '': entry } : entry).flatMap(([form, text]) => {
      const english = typeof source === 'string' ? source : (source[form as 'other'] ?? source.other);
      const key = form === '' ? name : `${name}.${form}`;
      if (!rule.isBroken({ key, text, english, language, catalogue })) return [];
      return [
        `${language}.json: "${key}" ${rule.says}: ${JSON.stringify(text)}, in English ${JSON.stringify(english)}`,
      ];
    });
  });
}

/** Finds missing and superfluous keys, a wrong order, and missing plural forms. */
function shapeProblemsOf(language: Language, catalogue: Entries): string[] {
  const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions();
  const problems = Object.entries(ENGLISH).flatMap(([key, source]) => {
    const entry = catalogue[key];
    if (entry === undefined) return [`"${key}" is missing`];
    const wanted =
      typeof source === 'string' ? 'one text' : `a text each for ${[...pluralCategories].sort().join(', ')}`;
    const forms = typeof entry === 'string' ? 'one text' : `a text each for ${Object.keys(entry).sort().join(', ')}`;
    return forms === wanted ? [] : [`"${key}" has ${forms}, and needs ${wanted}`];
  });
  const keys = Object.keys(catalogue);
  const unknown = keys.filter((key) => !(key in ENGLISH)).map((key) => `"${key}" is no text of en.json`);
  const known = keys.filter((key) => key in ENGLISH);
  const moved = Object.keys(ENGLISH)
    .filter((key) => key in catalogue)
    .find((key, index) => known[index] !== key);
  const order = moved === undefined ? [] : [`"${moved}" does not stand where en.json has it`];
  return [...problems, ...unknown, ...order].map((problem) => `${language}.json: ${problem}`);
}

test('each file is a language of the page, and English comes first', () => {
  const files = readdirSync(new URL('.', import.meta.url)).filter((name) => name.endsWith('.json'));
  expect(files.sort()).toEqual(CODES.map((code) => `${code}.json`).sort());
  expect(CODES[0]).toBe('en');
});

test('each text is used by the page', () => {
  const folder = new URL('../', import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /(?<!\.test)\.ts$/.test(name),
  );
  const source = files.map((name) => readFileSync(new URL(name, folder), 'utf8')).join('\n');
  expect(Object.keys(ENGLISH).filter((key) => !source.includes(`'${key}'`))).toEqual([]);
});

test.each(CODES)(
  '%s has every text, in the order of the English ones, with the plural forms of its language',
  (code) => {
    expect(shapeProblemsOf(code, CATALOGUES[code])).toEqual([]);
  },
);

describe.each(RULES)('no text $says', (rule) => {
  test.each(rule.languages ?? CODES)('in %s', (code) => {
    expect(problemsOf(code, CATALOGUES[code], rule)).toEqual([]);
  });

  test('and the translator is told the file, the key and the text', () => {
    const [code, key, text] = rule.planted;
    const problems = problemsOf(code, { ...CATALOGUES[code], [key]: text }, rule);
    expect(problems).toEqual([
      `${code}.json: "${key}" ${rule.says}: ${JSON.stringify(text)}, in English ${JSON.stringify(ENGLISH[key])}`,
    ]);
  });
});

test('a translator is told what is missing, too much, out of order, or lacks plural forms', () => {
  const { titlePay, titleFound, paid: _, ...rest } = CATALOGUES.ru;
  const planted = { titleFound, titlePay, ...rest, payd: 'Оплачено', time: { other: 'Время' }, likelyRounded: 'x' };
  expect(shapeProblemsOf('ru', planted)).toEqual([
    'ru.json: "paid" is missing',
    'ru.json: "time" has a text each for other, and needs one text',
    'ru.json: "likelyRounded" has one text, and needs a text each for few, many, one, other',
    'ru.json: "payd" is no text of en.json',
    'ru.json: "titlePay" does not stand where en.json has it',
  ]);
});
