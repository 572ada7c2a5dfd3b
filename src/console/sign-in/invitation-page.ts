import { toIso } from '../../domain/time.ts';
import type { OpenInvitation } from '../../operator/subjects/sign-in.ts';
import { type Html, html } from '../../web/html.ts';
import { renderQr } from '../../web/render-qr.ts';
import type { Page } from '../page/layout.ts';
import { alert, ltr, time } from '../page/pieces.ts';

type Shown = { invitation: OpenInvitation; path: string; problem: Html | null };

/** Where an invited person chooses what it signs in with. To look at it takes nothing up. */
export function invitationPage({ invitation, path, problem }: Shown): Page {
  const { person, kind, expiresAt, passkey, totp } = invitation;
  const what =
    kind === 'invite'
      ? html`You are invited as <strong>${person.role}</strong>.`
      : html`Choose anew what you sign in with. What you had signs you in no more.`;
  return {
    title: kind === 'invite' ? `Welcome, ${person.name}` : `Hello, ${person.name}`,
    ...(problem === null ? {} : { status: 400 }),
    main: html`${problem === null ? null : alert(problem)}
<p>${what} Your login is ${ltr(person.login)}. This link is good until ${time(toIso(expiresAt))} UTC, once.</p>
${passkey === null ? null : renderPasskey(passkey, path)}
<form method="post" action="${path}" class="card fields">
<h2>A password and an authenticator app</h2>
<div class="scan">${renderQr(totp.uri, 'QR code for your authenticator app')}<p class="hint">Scan this with the app, or type the key: <code>${ltr(totp.secret.replace(/(.{4})(?=.)/g, '$1 '))}</code></p></div>
<input type="hidden" name="login" value="${person.login}" autocomplete="username">
<div><label for="password">Password</label><input id="password" name="password" type="password" autocomplete="new-password" minlength="12" maxlength="1000" aria-describedby="password-hint" required><p class="hint" id="password-hint">At least 12 characters; a few words of your own are best.</p></div>
<div><label for="code">The code that the app shows</label><input id="code" name="code" inputmode="numeric" autocomplete="one-time-code" maxlength="6" required></div>
<p><button>Use these</button></p>
</form>`,
  };
}

function renderPasskey(options: object, path: string): Html {
  return html`<form method="post" action="${path}" class="card fields" data-passkey="create" data-options="${JSON.stringify(options)}" hidden>
<h2>A passkey</h2>
<p class="hint">Your fingerprint, face or PIN of this device, or a security key. Nothing to remember, and nothing that a false page could ask for.</p>
<input type="hidden" name="passkey">
<div><label for="name">What you call it</label><input id="name" name="name" value="This device" maxlength="100" autocomplete="off" required></div>
<p><button>Make a passkey</button></p>
</form>`;
}

/** The recovery codes, which nobody can show again. */
export function recoveryCodesPage(codes: readonly string[]): Page {
  return {
    title: 'Keep these codes',
    main: html`<section class="card"><p>Each signs you in once, with your password, if you lose the app. They are shown only now: print them, or keep them where your passwords are.</p>
<ul class="codes">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
<p><a class="button" href="/">I have kept them</a></p></section>`,
  };
}
