import type { FastifyRequest } from 'fastify';
import { conflict, notFound } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import type { Role } from '../../operator/actor.ts';
import { clip, FieldError } from '../../operator/input/problems.ts';
import {
  addPasskey,
  listOwnPasskeys,
  notVerified,
  type PasskeyView,
  removePasskey,
  requestPasskey,
} from '../../operator/subjects/passkeys.ts';
import {
  changeRole,
  type InvitedView,
  invitePerson,
  listPeople,
  type PersonView,
  removePerson,
  resetPerson,
} from '../../operator/subjects/people.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import {
  endOtherSessions,
  endOwnSession,
  endSession,
  listOwnSessions,
  listSessions,
  type SessionView,
} from '../../operator/subjects/sessions.ts';
import { type Html, html } from '../../web/html.ts';
import { addClick, addForm, byOperation, check, choice, type FormField, line, oneClick } from '../forms/form.ts';
import type { Page } from '../page/layout.ts';
import { badge, type Column, copyButton, facts, ltr, many, outside, rowLink, table, time } from '../page/pieces.ts';
import { type Asked, type ConsoleDeps, performFor, type Routes } from '../page/routes.ts';
import { entryOf, type Fields, pathPart, type Visit } from '../page/visit.ts';

/** Adds the pages for the people who may sign in, for their sessions, and for the visitor's own account. */
export function addPeopleRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/people', 'listPeople', ['project', 'removed'], async ({ visit, query: { removed } }) => {
    const { data: people } = await performFor(deps, visit, listPeople, {});
    return {
      title: 'People',
      beside: html`<a class="button" href="/settings/people/new">Invite a user</a>`,
      said: removed === undefined ? null : 'The user was removed and signed out.',
      main: html`
${people.length === 0 ? NOBODY : html`<section class="card flush" aria-label="People">${table('People, oldest first', columnsFor(visit, deps.now()), people)}</section>`}
<p class="hint">A viewer can read and export, an operator can also resolve received payments, and an owner can do everything. <a href="/settings/sessions">Active sessions</a></p>`,
    };
  });
  addPeopleForms(routes, deps);
  addMeRoutes(routes, deps);
  routes.get('/settings/people/:personId', 'listPeople', ['project', 'changed'], async (asked) => {
    const { visit, request, query } = asked;
    const own = await ownSessionOf(deps, request);
    const { person, sessions } = await findPerson(deps, asked);
    const { personId, login, name, role, projects, createdAt, seenAt, invitedUntil } = person;
    const at = `/settings/people/${personId}`;
    return {
      title: login,
      said: query.changed === undefined ? null : 'The role was changed, and the user was signed out.',
      beside: html`<a href="/settings/people">People</a>`,
      main: html`
<section class="card" aria-labelledby="facts"><h2 id="facts">Details</h2>${facts([
        ['Name', outside(name, 100)],
        ['Role', role],
        ['Projects', projectNames(visit, projects, 1000)],
        ['Signs in with', signsInWith(person)],
        ['Last seen', seenAt === null ? 'never' : html`${time(seenAt)} UTC`],
        ['Link', invitedUntil && linkBadge(invitedUntil, deps.now())],
        ['Invited', html`${time(createdAt)} UTC`],
        ['Id', ltr(personId)],
      ])}
<div class="actions"><a class="button quiet" href="${at}/role">Change role</a><a class="button quiet" href="${at}/reset">Create new link</a><a class="button quiet" href="${at}/remove">Remove</a><a href="/settings/audit?${new URLSearchParams({ by: login }).toString()}">This user's actions</a></div></section>
${
  sessions.length === 0
    ? html`<p class="hint">Not signed in.</p>`
    : html`<section class="card flush" aria-labelledby="sessions"><h2 id="sessions">Signed in</h2>${sessionTable(visit, sessions, { own, end: (id) => `/settings/sessions/${id}/end` })}</section>`
}`,
    };
  });
  routes.get('/settings/sessions', 'listSessions', ['project', 'ended'], async ({ visit, request, query }) => {
    const { data } = await performFor(deps, visit, listSessions, {});
    const own = await ownSessionOf(deps, request);
    const end = (sessionId: string) => `/settings/sessions/${sessionId}/end`;
    return {
      title: 'Sessions',
      beside: html`<a href="/settings/people">People</a>`,
      said: query.ended === undefined ? null : 'The session has ended.',
      main: html`
${
  data.length === 0
    ? html`<section class="card empty"><h2>No one is signed in</h2><p>You used the sandbox link, which creates no session.</p></section>`
    : html`<section class="card flush" aria-label="Sessions">${sessionTable(visit, data, { own, end, of: 'people' })}</section>`
}
<p class="hint">A session ends 12 hours after its last use, and at most 7 days after its start. A session that you end here is rejected on its next request. If you do not recognise a session, end it and create a new link for that user: ending the session does not change the password or passkey used to open it.</p>`,
    };
  });
  addClick(routes, '/settings/sessions/:sessionId/end', 'endSession', async ({ visit, request }) => {
    await performFor(deps, visit, endSession, { sessionId: pathPart(request, 'sessionId') });
    return '/settings/sessions?ended=1';
  });
}

const NOBODY = html`<section class="card empty"><h2>No users yet</h2><p>You used the sandbox link. Invite users, who then choose how to sign in.</p></section>`;

function columnsFor(visit: Visit, now: UnixMs): Column<PersonView>[] {
  return [
    ['Login', linkPerson],
    ['Name', ({ name }) => outside(name, 100)],
    ['Role', ({ role }) => role],
    ['Projects', ({ projects }) => projectNames(visit, projects)],
    ['Signs in with', signsInWith],
    ['Last seen', (person) => lastSeen(person, now)],
  ];
}

const linkPerson = ({ personId, login }: Pick<PersonView, 'personId' | 'login'>) =>
  rowLink(`/settings/people/${personId}`, outside(login, 100));

/** The person's page shows the rest. */
const MAX_NAMED = 3;

function projectNames({ projects: known }: Visit, projects: readonly string[] | null, most = MAX_NAMED): Html | string {
  if (projects === null) return 'all';
  const names = projects.slice(0, most).map((projectId, index) => {
    const name = known.find((each) => each.projectId === projectId)?.name ?? projectId;
    return html`${index === 0 ? null : ', '}${outside(name, 100)}`;
  });
  return html`${names}${projects.length > most ? ` and ${projects.length - most} more` : null}`;
}

/** Returns a text such as `2 passkeys, password and app, 8 recovery codes`. */
function signsInWith({ passkeys, hasPassword, recoveryCodes }: PersonView): string {
  const parts = [
    ...(passkeys === 0 ? [] : [many(passkeys, 'passkey')]),
    ...(hasPassword ? ['password and app'] : []),
    ...(recoveryCodes === 0 ? [] : [many(recoveryCodes, 'recovery code')]),
  ];
  return parts.length === 0 ? 'not set up yet' : parts.join(', ');
}

function lastSeen({ seenAt, invitedUntil }: PersonView, now: UnixMs): Html {
  const seen = seenAt === null ? html`never` : time(seenAt);
  return invitedUntil === null ? seen : html`${seen} ${linkBadge(invitedUntil, now)}`;
}

function linkBadge(until: string, now: UnixMs): Html {
  return Date.parse(until) > now
    ? html`${badge('invited', 'CONFIRMING')} until ${time(until)}`
    : badge('link expired', 'EXPIRED');
}

/** Shows an invitation's link, which can't be shown again. */
function linkPage({ login, role, link, expiresAt }: InvitedView): Page {
  return {
    title: `The link for ${login}`,
    main: html`<section class="card form"><p><strong>Send this link only to that person</strong>, over a private channel: the first person who opens it becomes ${ltr(login)}, ${role}. The link will not be shown again, works only once, and expires at ${time(expiresAt)} UTC.</p>
<pre>${ltr(link)}</pre>
<div class="actions">${copyButton(link, 'Copy invitation link')}<a href="/settings/people">People</a></div></section>`,
  };
}

/** Adds the forms that invite people and change them. */
function addPeopleForms(routes: Routes, deps: ConsoleDeps): void {
  addForm(routes, deps, {
    ...byOperation(deps, invitePerson, ({ login = '', name, ...filled }, projects: readonly ListedProjectView[]) => {
      const { role, projectIds } = readRightsFields(filled, projects);
      return { login, name, role, projectIds };
    }),
    path: '/settings/people/new',
    find: async ({ visit }) => visit.projects,
    show: (_visit, projects) => ({
      ...{ title: 'Invite a user', button: 'Create link', back: '/settings/people' },
      consequence: html`<p>Quittance creates a single-use link that expires after 15 minutes. The person who opens the link chooses how to sign in, and gets the role that you choose here.</p>`,
      fields: [
        line('login', 'Login', {
          hint: 'An e-mail address or a short name. Quittance never sends e-mail to this address.',
          more: html` maxlength="100" autocapitalize="off" spellcheck="false" required`,
        }),
        line('name', 'Name (optional)', { more: html` maxlength="100"` }),
        ...rightsFields(projects, { role: 'viewer', projects: null }),
      ],
    }),
    done: (_visit, _projects, invited) => linkPage(invited),
  });
  addForm(routes, deps, {
    ...byOperation(deps, changeRole, (filled, { person, projects }: Found) => ({
      ...readRightsFields(filled, projects),
      person: person.personId,
    })),
    path: '/settings/people/:personId/role',
    find: (asked) => findPerson(deps, asked),
    show: (visit, { person, sessions, projects }) => ({
      ...{ title: `The role of ${person.login}`, button: 'Change role', back: pathOf(person) },
      consequence: html`<p>${ltr(person.login)} has the role ${person.role} ${person.projects === null ? 'in all projects' : html`in these projects: ${projectNames(visit, person.projects)}`}. ${ends(sessions)} The user can sign in again as before.</p>`,
      fields: rightsFields(projects, person),
    }),
    done: (_visit, { person }) => ({ goTo: `${pathOf(person)}?changed=1` }),
  });
  addForm(routes, deps, {
    ...byOperation(deps, resetPerson, (_filled, { person }: Found) => ({ person: person.personId })),
    path: '/settings/people/:personId/reset',
    find: (asked) => findPerson(deps, asked),
    show: (_visit, { person, sessions }) => ({
      ...{ title: `A new link for ${person.login}`, button: 'Reset and create link', back: pathOf(person) },
      consequence: html`<p>Use this if the user has lost their sign-in method, or if someone else may have it. This immediately removes: ${signsInWith(person)}. ${ends(sessions)} Any earlier link stops working.</p><p>The new link works only once, and expires after 15 minutes. The person who opens the link sets up a new sign-in method. The role and projects stay the same.</p>`,
    }),
    done: (_visit, _found, invited) => linkPage(invited),
  });
  addForm(routes, deps, {
    ...byOperation(deps, removePerson, (_filled, { person }: Found) => ({ person: person.personId })),
    path: '/settings/people/:personId/remove',
    find: (asked) => findPerson(deps, asked),
    show: (_visit, { person, sessions }) => ({
      ...{ title: `Remove ${person.login}`, button: 'Remove this user', back: pathOf(person) },
      consequence: html`<p>${ltr(person.login)} can no longer sign in with: ${signsInWith(person)}. ${ends(sessions)}</p><p>This user's actions stay in the audit log. To undo this, invite the user again.</p>`,
    }),
    done: () => ({ goTo: '/settings/people?removed=1' }),
  });
}

/** A person with their live sessions. */
type Found = { person: PersonView; sessions: readonly SessionView[]; projects: readonly ListedProjectView[] };

/** Finds the person named in the path. Throws `NOT_FOUND`. */
async function findPerson(deps: ConsoleDeps, { visit, request }: Asked): Promise<Found> {
  const personId = pathPart(request, 'personId');
  const { data: people } = await performFor(deps, visit, listPeople, {});
  const person = entryOf(people, (each) => each.personId === personId, `there is no user ${clip(personId)}`);
  const { data: sessions } = await performFor(deps, visit, listSessions, { person: personId });
  return { person, sessions, projects: visit.projects };
}

const pathOf = ({ personId }: PersonView) => `/settings/people/${personId}`;

function ends({ length }: readonly SessionView[]): Html {
  if (length === 0) return html`There are no active sessions.`;
  return html`<strong>${many(length, 'session ends', 'sessions end')} immediately</strong>, even in the middle of a form.`;
}

/** In the order of the choice. */
const ROLE_WORDS: Readonly<Record<Role, string>> = {
  viewer: 'viewer: can read and export',
  operator: 'operator: can also resolve received payments',
  owner: 'owner: can do everything, in all projects',
};

const SCOPES = [
  ['all', 'all projects, including future projects'],
  ['some', 'only the projects selected below'],
] as const;

/** The fields for a role and the projects that it covers. If there's only one project, there is nothing to choose. */
export function rightsFields(
  projects: readonly ListedProjectView[],
  { role, projects: own }: Pick<PersonView, 'role' | 'projects'>,
): readonly FormField[] {
  const roles = choice('role', 'Role', Object.entries(ROLE_WORDS), role);
  if (projects.length < 2) return [roles];
  return [
    roles,
    choice('scope', 'Projects', SCOPES, own === null ? 'all' : 'some'),
    ...projects.map(({ projectId, name, network: hint }) =>
      check(projectId, name, { hint, isOn: own?.includes(projectId) === true }),
    ),
  ];
}

/** Reads these fields. Ticking no project doesn't give access to all. Throws `INVALID_ARGUMENT`. */
export function readRightsFields(filled: Fields, projects: readonly ListedProjectView[]) {
  const projectIds = projects.flatMap(({ projectId }) => (filled[projectId] === undefined ? [] : [projectId]));
  const { role = '', scope } = filled;
  if (projects.length < 2) return { role, projectIds: [], allProjects: undefined };
  if (scope !== 'all' && scope !== 'some') throw new FieldError('scope', 'must be "all" or "some"');
  if (scope === 'some' && projectIds.length === 0)
    throw new FieldError('scope', 'is limited to selected projects, but no project is selected');
  if (scope === 'all' && projectIds.length > 0)
    throw new FieldError(
      'scope',
      'is set to all, but some projects are selected: choose all projects or selected projects',
    );
  return { role, projectIds, allProjects: scope === 'all' };
}

/** `own` is the visitor's session. `end` returns the path for ending a session. `of` names the people, if the page doesn't. */
type ShownSessions = { own: string | null; end(sessionId: string): string; of?: 'people' };

/** Shows sessions, most recently used first, each with a button that ends it. */
function sessionTable(visit: Visit, sessions: readonly SessionView[], { own, end, of }: ShownSessions): Html {
  const button = ({ sessionId, login }: SessionView) =>
    oneClick(visit, end(sessionId), html`End<span class="unseen"> the session ${sessionId} of ${login}</span>`);
  const columns: Column<SessionView>[] = [
    ['Last seen', ({ sessionId, seenAt }) => (sessionId === own ? badge('This session', 'PAID') : time(seenAt))],
    ['Since', ({ createdAt, proof }) => html`${time(createdAt)} <small class="hint">by ${PROOFS[proof]}</small>`],
    [
      'From',
      ({ origin, userAgent }) => html`${browserOf(userAgent)} <small class="hint">${outside(origin, 200)}</small>`,
    ],
    ['Actions', button],
  ];
  if (of === 'people') columns.unshift(['Who', linkPerson]);
  return table('Sessions, most recently used first', columns, sessions);
}

const PROOFS: Record<SessionView['proof'], string> = {
  passkey: 'passkey',
  totp: 'password and code',
  'recovery-code': 'password and recovery code',
};

/** Most browsers' headers contain the names of other browsers as well, so the order matters: the first match counts. */
const BROWSERS = [
  [/\bEdg(A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\b(Firefox|FxiOS)\//, 'Firefox'],
  [/\b(Chrome|CriOS)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
] as const;
const SYSTEMS = [
  [/\b(iPhone|iPad)\b/, 'iOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
] as const;

/** `Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0` → `Firefox, Linux`. An unknown browser is shown unchanged. */
function browserOf(userAgent: string | null): Html | string {
  if (userAgent === null) return 'an unknown browser';
  const name = BROWSERS.find(([sign]) => sign.test(userAgent))?.[1];
  if (name === undefined) return outside(userAgent, 40);
  const system = SYSTEMS.find(([sign]) => sign.test(userAgent))?.[1];
  return html`<span title="${userAgent}">${system === undefined ? name : `${name}, ${system}`}</span>`;
}

/** Returns the `ses_…` of the visitor's session; `null` for a sandbox's owner, who has no session. */
async function ownSessionOf({ findSession }: ConsoleDeps, request: FastifyRequest): Promise<string | null> {
  const session = await findSession(request);
  return session && encodeId('ses', session.id);
}

/** Adds the pages for the visitor's own account. */
function addMeRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/me', 'listOwnSessions', ['project', 'done'], async ({ visit, request, query: { done } }) => {
    const session = await deps.findSession(request);
    if (session === null) return visit.actor.id === null ? signedOutPage() : { goTo: '/sign-in' };
    const { data: passkeys } = await performFor(deps, visit, listOwnPasskeys, {});
    const { data: sessions } = await performFor(deps, visit, listOwnSessions, {});
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
${
  passkeys.length === 0
    ? null
    : html`<section class="card flush" aria-labelledby="passkeys"><h2 id="passkeys">Your passkeys</h2>${table('Your passkeys, oldest first', PASSKEYS, passkeys)}</section>
<div class="actions">${ADD}</div>`
}
<section class="card flush" aria-labelledby="sessions"><h2 id="sessions">Where you are signed in</h2>${sessionTable(visit, sessions, { own, end: (sessionId) => `/settings/me/sessions/${sessionId}/end` })}</section>
${sessions.length < 2 ? null : html`<div class="actions">${oneClick(visit, OTHERS_PATH, `End all other sessions (${sessions.length - 1})`)}</div>`}
<section class="card form" aria-labelledby="renew"><h2 id="renew">Change your password, app or recovery codes</h2><p>An owner can create a new link for you to set up your sign-in again: ${role === 'owner' ? html`<a href="/settings/people/${encodeId('usr', person.id)}/reset">create one for yourself</a>, or ask another owner` : 'ask an owner'}. The server administrator can also create a link.</p></section>`,
    };
  });
  addPasskeyForms(routes, deps);
  addClick(routes, OTHERS_PATH, 'endOtherSessions', async ({ visit, request }) => {
    const keep = (await ownSessionOf(deps, request)) ?? '';
    await performFor(deps, visit, endOtherSessions, { keep });
    return '/settings/me?done=others-ended';
  });
  addClick(routes, '/settings/me/sessions/:sessionId/end', 'endOwnSession', async ({ visit, request }) => {
    await performFor(deps, visit, endOwnSession, { sessionId: pathPart(request, 'sessionId') });
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
      if (session === null) throw notFound`only users who have signed in can have passkeys`;
      const options = await requestPasskey(deps.people(), session);
      if (options !== null) return options;
      throw conflict`browsers create passkeys only for host names, but this console uses an IP address: set QUITTANCE_CONSOLE_URL to a host name`;
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
      const { data } = await performFor(deps, visit, listOwnPasskeys, {});
      const passkey = entryOf(data, (each) => each.passkeyId === passkeyId, 'you have no passkey with this id');
      return { passkey, others: data.length - 1 };
    },
    show: (_visit, { passkey, others }) => ({
      ...{ title: 'Remove a passkey', button: 'Remove', back: ME },
      consequence: html`<p>${outside(passkey.name, 100)} will no longer sign you in. You keep ${many(others, 'other passkey')}, and a password if you have one. Sessions opened with this passkey continue: end sessions that you do not recognise.</p><p class="hint">Your device still offers the passkey until you delete it on the device.</p>`,
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
