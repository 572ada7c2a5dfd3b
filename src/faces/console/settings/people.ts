import type { FastifyRequest } from 'fastify';
import { AppError } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { ROLES } from '../../operator/actor.ts';
import { clip, FieldError } from '../../operator/input/problems.ts';
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
import { endSession, listSessions, type SessionView } from '../../operator/subjects/sessions.ts';
import { type Html, html } from '../../web/html.ts';
import { addClick, addForm, byOperation, type FormField, oneClick } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { copyButton, facts, ltr, outside, table, time } from '../page/pieces.ts';
import type { Asked, Routes } from '../page/routes.ts';
import { type Fields, readQuery, type Visit } from '../page/visit.ts';

/** Adds the pages for the people who may sign in, and for their sessions. */
export function addPeopleRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/people', 'listPeople', async ({ visit, request }) => {
    const { removed } = readQuery(request, ['project', 'removed']);
    const said = removed === undefined ? null : html`The user was removed and signed out.`;
    const { data: people } = await listPeople.run(deps, visit.actor, {});
    return {
      title: 'People',
      beside: html`<a class="button" href="/settings/people/new">Invite a user</a>`,
      main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}
${people.length === 0 ? NOBODY : html`<section class="card flush" aria-label="People">${table('People, oldest first', columnsFor(visit, deps.now()), people)}</section>`}
<p class="hint">A viewer can read and export, an operator can also resolve received payments, and an owner can do everything. <a href="/settings/sessions">Active sessions</a></p>`,
    };
  });
  addPeopleForms(routes, deps);
  routes.get('/settings/people/:personId', 'listPeople', async (asked) => {
    const { changed } = readQuery(asked.request, ['project', 'changed']);
    const said = changed === undefined ? null : html`The role was changed, and the user was signed out.`;
    const own = await ownSessionOf(deps, asked.request);
    return personPage(asked.visit, { ...(await findPerson(deps, asked)), own, now: deps.now(), said });
  });
  routes.get('/settings/sessions', 'listSessions', async ({ visit, request }) => {
    const { ended } = readQuery(request, ['project', 'ended']);
    const { data } = await listSessions.run(deps, visit.actor, {});
    const said = ended === undefined ? null : html`The session has ended.`;
    const own = await ownSessionOf(deps, request);
    const end = (sessionId: string) => `/settings/sessions/${sessionId}/end`;
    return {
      title: 'Sessions',
      beside: html`<a href="/settings/people">People</a>`,
      main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}
${
  data.length === 0
    ? html`<section class="card empty"><h2>No one is signed in</h2><p>You used the sandbox link, which creates no session.</p></section>`
    : html`<section class="card flush" aria-label="Sessions">${sessionTable(visit, data, { own, end, of: 'people' })}</section>`
}
<p class="hint">A session ends 12 hours after its last use, and at most 7 days after its start. A session that you end here is rejected on its next request. If you do not recognise a session, end it and create a new link for that user: ending the session does not change the password or passkey used to open it.</p>`,
    };
  });
  addClick(routes, '/settings/sessions/:sessionId/end', 'endSession', async ({ visit, request }) => {
    const { sessionId = '' } = request.params as { sessionId?: string };
    await endSession.run(deps, visit.actor, { sessionId });
    return '/settings/sessions?ended=1';
  });
}

/** `now` is used to decide whether a link has expired. `said` reports the action that was just taken. */
type Now = { now: UnixMs; said: Html | null };

const NOBODY = html`<section class="card empty"><h2>No users yet</h2><p>You used the sandbox link. Invite users, who then choose how to sign in.</p></section>`;

function columnsFor(visit: Visit, now: UnixMs) {
  return [
    [
      'Login',
      ({ personId, login }: PersonView) =>
        html`<a class="row" href="/settings/people/${personId}">${outside(login, 100)}</a>`,
    ],
    ['Name', ({ name }: PersonView) => outside(name, 100)],
    ['Role', ({ role }: PersonView) => role],
    ['Projects', ({ projects }: PersonView) => projectNames(visit, projects)],
    ['Signs in with', (person: PersonView) => signsInWith(person)],
    ['Last seen', (person: PersonView) => lastSeen(person, now)],
  ] as const;
}

/** The person's page shows the rest. */
const MAX_NAMED = 3;

export function projectNames(
  { projects: known }: Visit,
  projects: readonly string[] | null,
  most = MAX_NAMED,
): Html | string {
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
    ...(passkeys === 0 ? [] : [passkeys === 1 ? '1 passkey' : `${passkeys} passkeys`]),
    ...(hasPassword ? ['password and app'] : []),
    ...(recoveryCodes === 0 ? [] : [recoveryCodes === 1 ? '1 recovery code' : `${recoveryCodes} recovery codes`]),
  ];
  return parts.length === 0 ? 'not set up yet' : parts.join(', ');
}

function lastSeen({ seenAt, invitedUntil }: PersonView, now: UnixMs): Html {
  const seen = seenAt === null ? html`never` : time(seenAt);
  return invitedUntil === null ? seen : html`${seen} ${linkBadge(invitedUntil, now)}`;
}

function linkBadge(until: string, now: UnixMs): Html {
  return Date.parse(until) > now
    ? html`<span class="badge" data-state="CONFIRMING">invited</span> until ${time(until)}`
    : html`<span class="badge" data-state="EXPIRED">link expired</span>`;
}

type Shown = Now & { person: PersonView; sessions: readonly SessionView[]; own: string | null };

/** Shows one person, with the actions that an owner can take. */
function personPage(visit: Visit, { person, sessions, own, now, said }: Shown): Page {
  const { personId, login, name, role, projects, createdAt, seenAt, invitedUntil } = person;
  const at = `/settings/people/${personId}`;
  return {
    title: login,
    beside: html`<a href="/settings/people">People</a>`,
    main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}
<section class="card" aria-labelledby="facts"><h2 id="facts">Details</h2>${facts([
      ['Name', outside(name, 100)],
      ['Role', role],
      ['Projects', projectNames(visit, projects, 1000)],
      ['Signs in with', signsInWith(person)],
      ['Last seen', seenAt === null ? 'never' : html`${time(seenAt)} UTC`],
      ['Link', invitedUntil && linkBadge(invitedUntil, now)],
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
      ...{ title: 'Invite a user', about: null, button: 'Create link', back: '/settings/people' },
      consequence: html`<p>Quittance creates a single-use link that expires after 15 minutes. The person who opens the link chooses how to sign in, and gets the role that you choose here.</p>`,
      fields: [
        {
          name: 'login',
          label: 'Login',
          kind: 'line',
          hint: 'An e-mail address or a short name. Quittance never sends e-mail to this address.',
          more: html` maxlength="100" autocapitalize="off" spellcheck="false" required`,
        },
        { name: 'name', label: 'Name (optional)', kind: 'line', more: html` maxlength="100"` },
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
      ...{ title: `The role of ${person.login}`, about: null, button: 'Change role', back: pathOf(person) },
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
      ...{
        title: `A new link for ${person.login}`,
        about: null,
        button: 'Reset and create link',
        back: pathOf(person),
        fields: [],
      },
      consequence: html`<p>Use this if the user has lost their sign-in method, or if someone else may have it. This immediately removes: ${signsInWith(person)}. ${ends(sessions)} Any earlier link stops working.</p><p>The new link works only once, and expires after 15 minutes. The person who opens the link sets up a new sign-in method. The role and projects stay the same.</p>`,
    }),
    done: (_visit, _found, invited) => linkPage(invited),
  });
  addForm(routes, deps, {
    ...byOperation(deps, removePerson, (_filled, { person }: Found) => ({ person: person.personId })),
    path: '/settings/people/:personId/remove',
    find: (asked) => findPerson(deps, asked),
    show: (_visit, { person, sessions }) => ({
      ...{
        title: `Remove ${person.login}`,
        about: null,
        button: 'Remove this user',
        back: pathOf(person),
        fields: [],
      },
      consequence: html`<p>${ltr(person.login)} can no longer sign in with: ${signsInWith(person)}. ${ends(sessions)}</p><p>This user's actions stay in the audit log. To undo this, invite the user again.</p>`,
    }),
    done: () => ({ goTo: '/settings/people?removed=1' }),
  });
}

/** A person with their live sessions. */
type Found = { person: PersonView; sessions: readonly SessionView[]; projects: readonly ListedProjectView[] };

/** Finds the person named in the path. Throws `NOT_FOUND`. */
async function findPerson(deps: ConsoleDeps, { visit, request }: Asked): Promise<Found> {
  const { personId = '' } = request.params as { personId?: string };
  const { data: people } = await listPeople.run(deps, visit.actor, {});
  const person = people.find((each) => each.personId === personId);
  if (person === undefined) throw new AppError('NOT_FOUND', `there is no user ${clip(personId)}`);
  const { data: sessions } = await listSessions.run(deps, visit.actor, { person: personId });
  return { person, sessions, projects: visit.projects };
}

const pathOf = ({ personId }: PersonView) => `/settings/people/${personId}`;

function ends({ length }: readonly SessionView[]): Html {
  if (length === 0) return html`There are no active sessions.`;
  return html`<strong>${length === 1 ? '1 session ends' : `${length} sessions end`} immediately</strong>, even in the middle of a form.`;
}

const ROLE_WORDS = {
  viewer: 'viewer: can read and export',
  operator: 'operator: can also resolve received payments',
  owner: 'owner: can do everything, in all projects',
} as const;

const SCOPES = [
  ['all', 'all projects, including future projects'],
  ['some', 'only the projects selected below'],
] as const;

/** The fields for a role and the projects that it covers. If there's only one project, there is nothing to choose. */
export function rightsFields(
  projects: readonly ListedProjectView[],
  { role, projects: own }: Pick<PersonView, 'role' | 'projects'>,
): readonly FormField[] {
  const roles = ROLES.map((each) => [each, ROLE_WORDS[each]] as const);
  const choice: FormField = { name: 'role', label: 'Role', kind: 'select', options: roles, value: role };
  if (projects.length < 2) return [choice];
  return [
    choice,
    { name: 'scope', label: 'Projects', kind: 'select', options: SCOPES, value: own === null ? 'all' : 'some' },
    ...projects.map(({ projectId, name, network }) => ({
      ...{ name: projectId, label: name, hint: network, kind: 'check' as const },
      value: own?.includes(projectId) === true ? 'yes' : undefined,
    })),
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

/** `own` is the visitor's session. `end` returns the path for ending a session. */
type ShownSessions = { own: string | null; end(sessionId: string): string };

/** Shows sessions, most recently used first, each with a button that ends it. `of` names the people, if the page doesn't. */
export function sessionTable(
  visit: Visit,
  sessions: readonly SessionView[],
  { own, end, of }: ShownSessions & { of?: 'people' },
): Html {
  const button = ({ sessionId, login }: SessionView) =>
    oneClick(visit, end(sessionId), html`End<span class="unseen"> the session ${sessionId} of ${login}</span>`);
  const who = [
    'Who',
    ({ personId, login }: SessionView) =>
      html`<a class="row" href="/settings/people/${personId}">${outside(login, 100)}</a>`,
  ] as const;
  const columns = [
    ...(of === 'people' ? [who] : []),
    ['Last seen', ({ sessionId, seenAt }: SessionView) => (sessionId === own ? THIS_ONE : time(seenAt))],
    [
      'Since',
      ({ createdAt, proof }: SessionView) => html`${time(createdAt)} <small class="hint">by ${PROOFS[proof]}</small>`,
    ],
    [
      'From',
      ({ origin, userAgent }: SessionView) =>
        html`${browserOf(userAgent)} <small class="hint">${outside(origin, 200)}</small>`,
    ],
    ['Actions', button],
  ] as const;
  return table('Sessions, most recently used first', columns, sessions);
}

const THIS_ONE = html`<span class="badge" data-state="PAID">This session</span>`;

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
export async function ownSessionOf({ findSession }: ConsoleDeps, request: FastifyRequest): Promise<string | null> {
  const session = await findSession(request);
  return session && encodeId('ses', session.id);
}
