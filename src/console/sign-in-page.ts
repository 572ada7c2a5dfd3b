import { html } from '../web/html.ts';
import type { Page } from './layout.ts';

/** For whoever is not signed in: how to get a link. */
export function signInPage(): Page {
  return {
    title: 'Sign in',
    main: html`<section class="card form"><p>Ask an owner for a link, which signs you in once. On the machine that runs Quittance it is made by:</p>
<pre><code>quittance user invite --role operator</code></pre>
<p class="hint">Reaching this page gives nobody any right.</p></section>`,
  };
}
