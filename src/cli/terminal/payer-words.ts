import { renderGeneral } from '../../checkout/lookup/answer.ts';
import { wordsOf } from '../../checkout/words/words.ts';
import type { GeneralAnswer } from '../../domain/lookup/lookup.ts';
import { html, plainText } from '../../web/html.ts';

/** Words an answer about a transaction without an invoice as the payment page does, in English and without markup. */
export function describeForPayer(answer: GeneralAnswer): string {
  return plainText(renderGeneral(wordsOf('en'), html`the merchant`, answer));
}
