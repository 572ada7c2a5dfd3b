import { html } from '../web/html.ts';
import { renderDocument } from './render-document.ts';

/** For every link that leads nowhere, whatever the reason. */
export const NOT_FOUND_PAGE = renderDocument({
  title: 'Not found',
  path: null,
  main: html`<h1>There is no invoice at this link</h1>
<p>Open the link again from where you got it, or ask the shop for a new one.</p>
<p>If you have paid already, your payment is not lost: the shop can find it by its transaction id.</p>`,
});

/** For a moment in which the database does not answer. */
export const UNAVAILABLE_PAGE = renderDocument({
  title: 'One moment, please',
  path: null,
  main: html`<h1>This page cannot be shown right now</h1>
<p>Please reload it in a minute.</p>
<p>If you have paid already, your payment is safe and will be found. Do not send it again.</p>`,
});
