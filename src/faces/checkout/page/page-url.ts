import type { Words } from '../words/words.ts';

/** Returns the page's URL, or the URL of a path below it. It keeps a language that was chosen explicitly. */
export function pageUrl(
  { invoice, words, isLanguageAsked }: { invoice: { checkoutToken: string }; words: Words; isLanguageAsked: boolean },
  below: '' | '/ask' | '/receipt' | '/receipt.json' | '/address-proof.json' = '',
): string {
  return `/c/${invoice.checkoutToken}${below}${isLanguageAsked ? `?lang=${words.language}` : ''}`;
}
