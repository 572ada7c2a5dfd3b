import { encodeId } from '../../domain/ids.ts';
import type { Session, SessionView } from '../../operator/subjects/sessions.ts';
import type { PasskeyView } from '../../operator/subjects/sign-in.ts';
import { type Html, html } from '../../web/html.ts';
import { oneClick } from '../forms/form.ts';
import type { Page } from '../page/layout.ts';
import { facts, ltr, outside, table, time } from '../page/pieces.ts';
import type { Visit } from '../page/visit.ts';
import { projectNames } from './people-page.ts';
import { sessionTable } from './session-table.ts';

type Shown = {
  session: Session;
  passkeys: readonly PasskeyView[];
  sessions: readonly SessionView[];
  said: Html | null;
};

/** What do I sign in with, and where am I signed in? */
export function mePage(visit: Visit, { session: { id, person }, passkeys, sessions, said }: Shown): Page {
  const { login, name, role, projects } = person;
  const own = encodeId('ses', id);
  const shownProjects = projects?.map((project) => encodeId('prj', project)) ?? null;
  return {
    title: 'Your account',
    main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}
${passkeys.length === 0 ? NUDGE : null}
<section class="card" aria-labelledby="you"><h2 id="you">You</h2>${facts([
      ['Login', ltr(login)],
      ['Name', outside(name, 100)],
      ['Role', role],
      ['Projects', projectNames(visit, shownProjects, 1000)],
    ])}</section>
${passkeys.length === 0 ? null : renderPasskeys(passkeys)}
<section class="card flush" aria-labelledby="sessions"><h2 id="sessions">Where you are signed in</h2>${sessionTable(visit, sessions, { own, end: (sessionId) => `/settings/me/sessions/${sessionId}/end` })}</section>
${sessions.length < 2 ? null : html`<div class="actions">${oneClick(visit, OTHERS_PATH, `End all but this one (${sessions.length - 1})`)}</div>`}
<section class="card form" aria-labelledby="anew"><h2 id="anew">Another password, app or recovery codes</h2><p>An owner makes a new link for you, by which you choose all of it anew: ${role === 'owner' ? html`<a href="/settings/people/${encodeId('usr', person.id)}/reset">make one for yourself</a>, or ask another owner` : 'ask one'}. Whoever has the machine that runs Quittance can make it too.</p></section>`,
  };
}

export const OTHERS_PATH = '/settings/me/sessions/end-others';

const ADD = html`<a class="button" href="/settings/me/passkeys/new">Add a passkey</a>`;

const NUDGE = html`<section class="card well"><h2>Sign in with a passkey</h2><p>Your fingerprint, face or PIN of this device, or a security key: nothing to remember or type, and nothing that a false page could ask for. What you have now goes on working.</p><p>${ADD}</p></section>`;

function renderPasskeys(passkeys: readonly PasskeyView[]): Html {
  return html`<section class="card flush" aria-labelledby="passkeys"><h2 id="passkeys">Your passkeys</h2>${table('Your passkeys, the oldest first', PASSKEYS, passkeys)}</section>
<div class="actions">${ADD}</div>`;
}

const PASSKEYS = [
  ['Name', ({ name }: PasskeyView) => outside(name, 100)],
  ['Made', ({ createdAt }: PasskeyView) => time(createdAt)],
  ['Last used', ({ lastUsedAt }: PasskeyView) => (lastUsedAt === null ? 'never' : time(lastUsedAt))],
  [
    'Remove it',
    ({ passkeyId, name }: PasskeyView) =>
      html`<a href="/settings/me/passkeys/${passkeyId}/remove">Remove<span class="unseen"> the passkey ${name}</span></a>`,
  ],
] as const;

/** The owner of a sandbox is nobody. */
export function nobodyPage(): Page {
  return {
    title: 'Your account',
    main: html`<section class="card empty"><h2>You have none</h2><p>You came by the link that the sandbox printed, and are its owner as long as it runs. To see how people sign in, <a href="/settings/people/new">invite somebody</a>.</p></section>`,
  };
}
