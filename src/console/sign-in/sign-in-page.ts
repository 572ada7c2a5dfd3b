import type { requestSignIn } from '../../operator/people/start-session.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { alert } from '../page/pieces.ts';

type Shown = {
  passkey: Awaited<ReturnType<typeof requestSignIn>>;
  /** Where to go on. */
  next: string;
  login: string;
  problem: string | null;
  status: number;
};

/** What a person signs in with: a passkey where the browser has one, or password and code. */
export function signInPage({ passkey, next, login, problem, status }: Shown): Page {
  return {
    title: 'Sign in',
    status,
    main: html`${problem === null ? null : alert(html`<p>${problem}</p>`)}
${passkey === null ? null : renderPasskey(passkey, next)}
<form method="post" action="/sign-in" class="card fields">
<h2>With a password</h2>
<input type="hidden" name="next" value="${next}">
<div><label for="login">Login</label><input id="login" name="login" value="${login}" autocomplete="username webauthn" autocapitalize="off" spellcheck="false" maxlength="100" required></div>
<div><label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" maxlength="1000" required></div>
<div><label for="code">Code of your app, or a recovery code</label><input id="code" name="code" autocomplete="one-time-code" autocapitalize="off" spellcheck="false" maxlength="40" required></div>
<p><button>Sign in</button></p>
</form>
<p class="hint">No account yet? Whoever runs this console makes a link for you: <code>quittance user invite</code>. Lost what you sign in with? <code>quittance user reset</code>.</p>`,
  };
}

/** Shown by the script, where the browser knows passkeys. */
function renderPasskey(options: object, next: string): Html {
  return html`<form method="post" action="/sign-in" class="card fields" data-passkey="get" data-options="${JSON.stringify(options)}" hidden>
<input type="hidden" name="next" value="${next}"><input type="hidden" name="passkey">
<p><button>Sign in with a passkey</button></p>
</form>`;
}
