import type { GeneralAnswer } from '../../core/domain/lookup/lookup.ts';
import { renderGeneral } from '../../faces/checkout/lookup/answer.ts';
import { wordsOf } from '../../faces/checkout/words/words.ts';
import { html, plainText } from '../../faces/web/html.ts';

/** Phrases an answer about a transaction without an invoice as the payment page does, in English and without markup. */
export function describeForPayer(answer: GeneralAnswer): string {
  return plainText(renderGeneral(wordsOf('en'), html`the merchant`, answer));
}
