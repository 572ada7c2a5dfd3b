import { html } from '../../web/html.ts';
import type { Words } from '../words/words.ts';
import { renderDocument } from './render-document.ts';

/** For every link that leads nowhere, for any reason. */
export function renderNotFound(words: Words, nonce: string): string {
  const { say, text } = words;
  return renderDocument({
    title: text('notFound'),
    words,
    nonce,
    main: html`<h1>${say('notFound')}</h1>
<p>${say('notFoundText')}</p>
<p>${say('notFoundPaid')}</p>`,
  });
}

/** For a moment in which the database does not answer, or the process is overloaded. */
export function renderUnavailable(words: Words, nonce: string): string {
  const { say, text } = words;
  return renderDocument({
    title: text('unavailable'),
    words,
    nonce,
    main: html`<h1>${say('unavailable')}</h1>
<p>${say('unavailableText')}</p>
<p>${say('unavailablePaid')}</p>`,
  });
}
