import type { requestSignIn } from '../../operator/subjects/sign-in.ts';
import { type Html, html } from '../../web/html.ts';
import { RESUMED } from './form-tokens.ts';
import type { Page } from './layout.ts';
import { alert } from './pieces.ts';
import type { Fields } from './read-fields.ts';

type Shown = {
  passkey: Awaited<ReturnType<typeof requestSignIn>>;
  /** Where to continue. */
  next: string;
  /** What was typed into a form whose session ended; `next` is what it is sent to. `null`: there is no form. */
  kept: Fields | null;
  login: string;
  problem: string | null;
  status: number;
};

/** What a person signs in with: a passkey where the browser has one, or password and code. */
export function signInPage({ passkey, next, kept, login, problem, status }: Shown): Page {
  const hidden = html`<input type="hidden" name="next" value="${next}">${kept && hide(kept, KEPT)}`;
  return {
    title: 'Sign in',
    status,
    main: html`${problem === null ? null : alert(html`<p>${problem}</p>`)}${kept === null ? null : html`<p class="notice">Your session has ended, and nothing was sent. Your input is kept on this page: sign in to get it back.</p>`}
${passkey === null ? null : renderPasskey(passkey, hidden)}
<form method="post" action="/sign-in" class="card fields">
<h2>With a password</h2>
${hidden}
<div><label for="login">Login</label><input id="login" name="login" value="${login}" autocomplete="username webauthn" autocapitalize="off" spellcheck="false" maxlength="100" required></div>
<div><label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" maxlength="1000" required></div>
<div><label for="code">Code from your app, or a recovery code</label><input id="code" name="code" autocomplete="one-time-code" autocapitalize="off" spellcheck="false" maxlength="40" required></div>
<p><button>Sign in</button></p>
</form>
<p class="hint">No account yet? Ask the administrator for an invitation link: <code>quittance user invite</code>. Lost your passkey or password? <code>quittance user reset</code>.</p>`,
  };
}

/** Shown by the script, where the browser knows passkeys. */
function renderPasskey(options: object, hidden: Html): Html {
  return html`<form method="post" action="/sign-in" class="card fields" data-passkey="get" data-options="${JSON.stringify(options)}" hidden>
${hidden}<input type="hidden" name="passkey">
<p><button>Sign in with a passkey</button></p>
</form>`;
}

/** What the fields that are kept are called in the form of the sign-in. */
export const KEPT = 'kept.';

const hide = (fields: Fields, prefix = '') =>
  Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${prefix}${name}" value="${value ?? ''}">`,
  );

/** Leads back into a form whose session had ended. It is shown with its entries, and is not sent by this. */
export function resumePage(path: string, kept: Fields): Page {
  return {
    title: 'You are signed in again',
    main: html`<form method="post" action="${path}" class="card">${hide({ ...kept, token: RESUMED })}
<p>Your input is still there. Nothing has been sent yet.</p><p><button autofocus>Back to the form</button></p></form>`,
  };
}
