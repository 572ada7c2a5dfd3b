import { html } from '../../web/html.ts';
import type { TextKey } from '../words/catalogue.ts';
import type { Words } from '../words/words.ts';
import { renderLanguages } from './header.ts';
import { renderDocument } from './render-document.ts';

/**
 * `notFound`: a link that leads nowhere, for any reason. `unavailable`: the database does not answer, or the process is overloaded. No
 * merchant is known of either.
 */
const APOLOGIES = {
  notFound: ['notFoundText', 'notFoundPaid'],
  unavailable: ['unavailableText', 'unavailablePaid'],
} as const satisfies Partial<Record<TextKey, readonly TextKey[]>>;

export function renderApology(words: Words, nonce: string, why: keyof typeof APOLOGIES): string {
  const { say, text } = words;
  return renderDocument({
    ...{ title: text(why), words, nonce },
    main: html`<header>${renderLanguages(words)}</header>
<h1>${say(why)}</h1>
${APOLOGIES[why].map((key) => html`<p>${say(key)}</p>`)}`,
  });
}
