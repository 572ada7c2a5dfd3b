import type { Words } from '../words/words.ts';

/** A URL of the page, or of a path below it, that keeps the language which the reader chose. */
export function pageUrl(
  { invoice, words, isLanguageAsked }: { invoice: { checkoutToken: string }; words: Words; isLanguageAsked: boolean },
  below: '' | '/ask' | '/receipt' | '/receipt.json' | '/address-proof.json' = '',
): string {
  return `/c/${invoice.checkoutToken}${below}${isLanguageAsked ? `?lang=${words.language}` : ''}`;
}
