import { AppError } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { notVerified } from '../../operator/people/passkey-proof.ts';
import { endOtherSessions, endOwnSession, listOwnSessions } from '../../operator/subjects/sessions.ts';
import {
  addPasskey,
  listOwnPasskeys,
  type PasskeyView,
  removePasskey,
  requestPasskey,
} from '../../operator/subjects/sign-in.ts';
import { type Html, html } from '../../web/html.ts';
import { addClick, addForm, line, oneClick } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { type Column, facts, ltr, outside, table, time } from '../page/pieces.ts';
import type { Routes } from '../page/routes.ts';
import { pathPart, readQuery } from '../page/visit.ts';
import { ownSessionOf, projectNames, sessionTable } from './people.ts';

/** Adds the pages for the visitor's own account. */
export function addMeRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/me', 'listOwnSessions', async ({ visit, request }) => {
    const { done } = readQuery(request, ['project', 'done']);
    const session = await deps.findSession(request);
    if (session === null) return visit.actor.id === null ? signedOutPage() : { goTo: '/sign-in' };
    const { data: passkeys } = await listOwnPasskeys.run(deps, visit.actor, {});
    const { data: sessions } = await listOwnSessions.run(deps, visit.actor, {});
    const { id, person } = session;
    const { login, name, role, projects } = person;
    const own = encodeId('ses', id);
    const shownProjects = projects?.map((project) => encodeId('prj', project)) ?? null;
    return {
      title: 'Your account',
      said: SAID.get(done ?? '') ?? null,
      main: html`
${passkeys.length === 0 ? NUDGE : null}
<section class="card" aria-labelledby="you"><h2 id="you">You</h2>${facts([
        ['Login', ltr(login)],
        ['Name', outside(name, 100)],
        ['Role', role],
        ['Projects', projectNames(visit, shownProjects, 1000)],
      ])}</section>
${passkeys.length === 0 ? null : renderPasskeys(passkeys)}
<section class="card flush" aria-labelledby="sessions"><h2 id="sessions">Where you are signed in</h2>${sessionTable(visit, sessions, { own, end: (sessionId) => `/settings/me/sessions/${sessionId}/end` })}</section>
${sessions.length < 2 ? null : html`<div class="actions">${oneClick(visit, OTHERS_PATH, `End all other sessions (${sessions.length - 1})`)}</div>`}
<section class="card form" aria-labelledby="renew"><h2 id="renew">Change your password, app or recovery codes</h2><p>An owner can create a new link for you to set up your sign-in again: ${role === 'owner' ? html`<a href="/settings/people/${encodeId('usr', person.id)}/reset">create one for yourself</a>, or ask another owner` : 'ask an owner'}. The server administrator can also create a link.</p></section>`,
    };
  });
  addPasskeyForms(routes, deps);
  addClick(routes, OTHERS_PATH, 'endOtherSessions', async ({ visit, request }) => {
    const keep = (await ownSessionOf(deps, request)) ?? '';
    await endOtherSessions.run(deps, visit.actor, { keep });
    return '/settings/me?done=others-ended';
  });
  addClick(routes, '/settings/me/sessions/:sessionId/end', 'endOwnSession', async ({ visit, request }) => {
    await endOwnSession.run(deps, visit.actor, { sessionId: pathPart(request, 'sessionId') });
    return '/settings/me?done=session-ended';
  });
}

const SAID: ReadonlyMap<string, string> = new Map([
  ['passkey-added', 'The passkey was added. You can now sign in with it.'],
  ['passkey-removed', 'The passkey was removed.'],
  ['session-ended', 'The session has ended.'],
  ['others-ended', 'You are signed out everywhere else.'],
]);

const OTHERS_PATH = '/settings/me/sessions/end-others';

const ADD = html`<a class="button" href="/settings/me/passkeys/new">Add a passkey</a>`;

const NUDGE = html`<section class="card well"><h2>Sign in with a passkey</h2><p>Use your fingerprint, face or PIN on this device, or a security key. There is nothing to remember or type, and a fake page cannot steal a passkey. Your current password keeps working.</p><p>${ADD}</p></section>`;

function renderPasskeys(passkeys: readonly PasskeyView[]): Html {
  return html`<section class="card flush" aria-labelledby="passkeys"><h2 id="passkeys">Your passkeys</h2>${table('Your passkeys, oldest first', PASSKEYS, passkeys)}</section>
<div class="actions">${ADD}</div>`;
}

const PASSKEYS: readonly Column<PasskeyView>[] = [
  ['Name', ({ name }) => outside(name, 100)],
  ['Created', ({ createdAt }) => time(createdAt)],
  ['Last used', ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : time(lastUsedAt))],
  [
    'Remove',
    ({ passkeyId, name }) =>
      html`<a href="/settings/me/passkeys/${passkeyId}/remove">Remove<span class="unseen"> the passkey ${name}</span></a>`,
  ],
];

/** A sandbox's owner isn't a person with an account. */
function signedOutPage(): Page {
  return {
    title: 'Your account',
    main: html`<section class="card empty"><h2>No account</h2><p>You signed in with the link that the sandbox printed. You are its owner while it runs. To see how people sign in, <a href="/settings/people/new">invite a user</a>.</p></section>`,
  };
}

/** Adds the forms that create and remove the visitor's passkeys. */
function addPasskeyForms(routes: Routes, deps: ConsoleDeps): void {
  addForm(routes, deps, {
    ...{ action: 'addPasskey', path: `${ME}/passkeys/new` },
    find: async ({ request }) => {
      const session = await deps.findSession(request);
      if (session === null) throw new AppError('NOT_FOUND', 'only users who have signed in can have passkeys');
      const options = await requestPasskey(deps.people(), session);
      if (options !== null) return options;
      throw new AppError(
        'CONFLICT',
        'browsers create passkeys only for host names, but this console uses an IP address: set QUITTANCE_CONSOLE_URL to a host name',
      );
    },
    show: (_visit, options) => ({
      ...{ title: 'Add a passkey', button: 'Create passkey', back: ME },
      consequence: html`<p>Your browser asks for your fingerprint, face or PIN, or for a security key. After that, you can sign in with the passkey alone. Your current sign-in method keeps working.</p><p class="hint">If there is no button below, this browser does not support passkeys, or JavaScript is off.</p>`,
      fields: [
        { name: 'created', label: 'Passkey', kind: 'passkey', options },
        line('name', 'Name', { value: 'This device', more: html` maxlength="100" required` }),
      ],
    }),
    read: ({ created = '', name = '' }) => addPasskey.read({ passkey: parse(created), name }, deps.now()),
    run: (actor, wanted) => addPasskey.run(deps.people(), actor, wanted),
    done: () => ({ goTo: `${ME}?done=passkey-added` }),
  });
  addForm(routes, deps, {
    ...{ action: 'removePasskey', path: `${ME}/passkeys/:passkeyId/remove` },
    find: async ({ visit, request }) => {
      const passkeyId = pathPart(request, 'passkeyId');
      const { data } = await listOwnPasskeys.run(deps, visit.actor, {});
      const passkey = data.find((each) => each.passkeyId === passkeyId);
      if (passkey === undefined) throw new AppError('NOT_FOUND', 'you have no passkey with this id');
      return { passkey, others: data.length - 1 };
    },
    show: (_visit, { passkey, others }) => ({
      ...{ title: 'Remove a passkey', button: 'Remove', back: ME },
      consequence: html`<p>${outside(passkey.name, 100)} will no longer sign you in. You keep ${others === 1 ? '1 other passkey' : `${others} other passkeys`}, and a password if you have one. Sessions opened with this passkey continue: end sessions that you do not recognise.</p><p class="hint">Your device still offers the passkey until you delete it on the device.</p>`,
    }),
    read: (_filled, { passkey: { passkeyId } }) => removePasskey.read({ passkeyId }, deps.now()),
    run: (actor, wanted) => removePasskey.run(deps.people(), actor, wanted),
    done: () => ({ goTo: `${ME}?done=passkey-removed` }),
  });
}

const ME = '/settings/me';

/** Throws `INVALID_ARGUMENT`. */
function parse(created: string): unknown {
  try {
    return JSON.parse(created);
  } catch {
    throw notVerified();
  }
}
