import type { Page } from './page-state.ts';

/** A URL of the page, or of a path below it, that keeps the language which the reader chose. */
export function pageUrl(
  { invoice, words, isLanguageAsked }: Pick<Page, 'invoice' | 'words' | 'isLanguageAsked'>,
  below: '' | '/ask' | '/receipt' | '/receipt.json' | '/address-proof.json' = '',
): string {
  return `/c/${invoice.checkoutToken}${below}${isLanguageAsked ? `?lang=${words.language}` : ''}`;
}
