import type { FastifyRequest } from 'fastify';

/** The languages of the payer's page, with their own names. The first is the fallback. */
export const LANGUAGES = [
  { code: 'en', name: 'English', direction: 'ltr' },
  { code: 'ru', name: 'Русский', direction: 'ltr' },
  { code: 'zh-Hans', name: '简体中文', direction: 'ltr' },
  { code: 'zh-Hant', name: '繁體中文', direction: 'ltr' },
  { code: 'es', name: 'Español', direction: 'ltr' },
  { code: 'pt-BR', name: 'Português', direction: 'ltr' },
  { code: 'tr', name: 'Türkçe', direction: 'ltr' },
  { code: 'ar', name: 'العربية', direction: 'rtl' },
  { code: 'fa', name: 'فارسی', direction: 'rtl' },
  { code: 'vi', name: 'Tiếng Việt', direction: 'ltr' },
  { code: 'id', name: 'Indonesia', direction: 'ltr' },
  { code: 'uk', name: 'Українська', direction: 'ltr' },
  { code: 'fr', name: 'Français', direction: 'ltr' },
  { code: 'de', name: 'Deutsch', direction: 'ltr' },
  { code: 'it', name: 'Italiano', direction: 'ltr' },
  { code: 'pl', name: 'Polski', direction: 'ltr' },
  { code: 'hi', name: 'हिन्दी', direction: 'ltr' },
  { code: 'ur', name: 'اردو', direction: 'rtl' },
  { code: 'th', name: 'ไทย', direction: 'ltr' },
  { code: 'ja', name: '日本語', direction: 'ltr' },
  { code: 'ko', name: '한국어', direction: 'ltr' },
] as const;

export type Language = (typeof LANGUAGES)[number]['code'];

export type ChosenLanguage = {
  language: Language;
  /** Whether the reader chose the language explicitly, in which case the links on the page keep it. */
  isAsked: boolean;
};

/** Chooses the language in `?lang=` (`zh-Hans`, but also `zh`, `zh-CN`, `PT`), or otherwise the one that the browser prefers. */
export function chooseLanguage({ query, headers }: Pick<FastifyRequest, 'query' | 'headers'>): ChosenLanguage {
  const asked = (query as { lang?: unknown } | undefined)?.lang;
  const language = typeof asked === 'string' ? languageOf(asked.toLowerCase()) : undefined;
  if (language !== undefined) return { language, isAsked: true };
  return { language: preferredLanguage(headers['accept-language'] ?? ''), isAsked: false };
}

/** No one speaks this many languages. */
const MAX_RANGES = 20;

/** Reads `Accept-Language` (RFC 9110, 12.5.4), such as `uk-UA,uk;q=0.9,ru;q=0.8,en;q=0.7`. Accepts any text. */
export function preferredLanguage(header: string): Language {
  const ranges = header
    .split(',', MAX_RANGES)
    .map((range) => {
      const [tag = '', ...parameters] = range.trim().split(';');
      const quality = parameters.map((parameter) => /^\s*q=(\d(?:\.\d{0,3})?)\s*$/i.exec(parameter)?.[1]).find(Boolean);
      return { tag: tag.trim().toLowerCase(), quality: Number(quality ?? 1) };
    })
    .filter(({ quality }) => quality > 0)
    // The sort is stable, so the first of several equal ones wins.
    .sort((left, right) => right.quality - left.quality);
  for (const { tag } of ranges) {
    const found = languageOf(tag);
    if (found !== undefined) return found;
  }
  return LANGUAGES[0].code;
}

/** Android still sends `in` for Indonesian. */
const FORMER_CODES: Readonly<Record<string, string>> = { in: 'id' };

/** Matches the regions that write Chinese in the traditional script. */
const TRADITIONAL = /^zh-(?:hant|(?:\w{4}-)?(?:tw|hk|mo))\b/;

/**
 * Matches languages and, for Chinese, scripts. Readers of any variety of Portuguese get the Brazilian texts instead of the English ones.
 */
function languageOf(tag: string): Language | undefined {
  if (TRADITIONAL.test(tag) && !tag.startsWith('zh-hans')) return 'zh-Hant';
  const [primary = ''] = tag.split('-', 1);
  const wanted = FORMER_CODES[primary] ?? primary;
  return LANGUAGES.find(({ code }) => code.split('-', 1)[0] === wanted)?.code;
}
