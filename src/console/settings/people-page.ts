import type { UnixMs } from '../../domain/time.ts';
import type { InvitedView, PersonView } from '../../operator/subjects/people.ts';
import type { SessionView } from '../../operator/subjects/sessions.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { copyButton, facts, ltr, outside, table, time } from '../page/pieces.ts';
import type { Visit } from '../page/visit.ts';
import { sessionTable } from './session-table.ts';

/** `now`: by which a link has run out. `said`: what was just done. */
type Now = { now: UnixMs; said: Html | null };

/** Who may come in here, and what may each do? */
export function peoplePage(visit: Visit, people: readonly PersonView[], { now, said }: Now): Page {
  return {
    title: 'People',
    beside: html`<a class="button" href="/settings/people/new">Invite somebody</a>`,
    main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}
${people.length === 0 ? NOBODY : html`<section class="card flush" aria-label="People">${table('People, the oldest first', columnsFor(visit, now), people)}</section>`}
<p class="hint">A viewer reads and exports, an operator also decides about money that came, an owner does everything. <a href="/settings/sessions">Who is signed in</a></p>`,
  };
}

const NOBODY = html`<section class="card empty"><h2>Nobody yet</h2><p>You came by the link of the sandbox. Invite somebody: each chooses what to sign in with.</p></section>`;

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

/** More are told by the person's page. */
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

/** `2 passkeys, password and app, 8 recovery codes`. */
export function signsInWith({ passkeys, hasPassword, recoveryCodes }: PersonView): string {
  const parts = [
    ...(passkeys === 0 ? [] : [passkeys === 1 ? '1 passkey' : `${passkeys} passkeys`]),
    ...(hasPassword ? ['password and app'] : []),
    ...(recoveryCodes === 0 ? [] : [recoveryCodes === 1 ? '1 recovery code' : `${recoveryCodes} recovery codes`]),
  ];
  return parts.length === 0 ? 'nothing yet' : parts.join(', ');
}

function lastSeen({ seenAt, invitedUntil }: PersonView, now: UnixMs): Html {
  const seen = seenAt === null ? html`never` : time(seenAt);
  return invitedUntil === null ? seen : html`${seen} ${linkBadge(invitedUntil, now)}`;
}

function linkBadge(until: string, now: UnixMs): Html {
  return Date.parse(until) > now
    ? html`<span class="badge" data-state="CONFIRMING">invited</span> until ${time(until)}`
    : html`<span class="badge" data-state="EXPIRED">link ran out</span>`;
}

type Shown = Now & { person: PersonView; sessions: readonly SessionView[]; own: string | null };

/** One person, and what an owner can do about it. */
export function personPage(visit: Visit, { person, sessions, own, now, said }: Shown): Page {
  const { personId, login, name, role, projects, createdAt, seenAt, invitedUntil } = person;
  const at = `/settings/people/${personId}`;
  return {
    title: login,
    beside: html`<a href="/settings/people">People</a>`,
    main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}
<section class="card" aria-labelledby="facts"><h2 id="facts">Facts</h2>${facts([
      ['Name', outside(name, 100)],
      ['Role', role],
      ['Projects', projectNames(visit, projects, 1000)],
      ['Signs in with', signsInWith(person)],
      ['Last seen', seenAt === null ? 'never' : html`${time(seenAt)} UTC`],
      ['Link', invitedUntil && linkBadge(invitedUntil, now)],
      ['Invited', html`${time(createdAt)} UTC`],
      ['Id', ltr(personId)],
    ])}
<div class="actions"><a class="button quiet" href="${at}/role">Change the role</a><a class="button quiet" href="${at}/reset">Make a new link</a><a class="button quiet" href="${at}/remove">Remove</a><a href="/settings/audit?${new URLSearchParams({ by: login }).toString()}">What this person did</a></div></section>
${
  sessions.length === 0
    ? html`<p class="hint">Not signed in now.</p>`
    : html`<section class="card flush" aria-labelledby="sessions"><h2 id="sessions">Signed in</h2>${sessionTable(visit, sessions, { own, end: (id) => `/settings/sessions/${id}/end` })}</section>`
}`,
  };
}

/** The link of an invitation, which nobody can show again. */
export function linkPage({ login, role, link, expiresAt }: InvitedView): Page {
  return {
    title: `The link of ${login}`,
    main: html`<section class="card form"><p><strong>Give it to that person alone</strong>, by a way that nobody else reads: whoever opens it first becomes ${ltr(login)}, ${role}. It is shown only now, works once, and until ${time(expiresAt)} UTC.</p>
<pre>${ltr(link)}</pre>
<div class="actions">${copyButton(link, 'Copy link of the invitation')}<a href="/settings/people">People</a></div></section>`,
  };
}
