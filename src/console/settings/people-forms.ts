import { AppError } from '../../domain/errors.ts';
import { clip } from '../../operator/input/clip.ts';
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
import { listSessions, type SessionView } from '../../operator/subjects/sessions.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm, byOperation } from '../forms/add-form.ts';
import type { Form } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { ltr } from '../page/pieces.ts';
import type { Asked, Routes } from '../page/routes.ts';
import { linkPage, projectNames, signsInWith } from './people-page.ts';
import { readRightsFields, rightsFields } from './rights-fields.ts';

/** Inviting somebody, and what an owner can change about a person. */
export function addPeopleForms(routes: Routes, deps: ConsoleDeps): void {
  addForm(routes, deps, inviteForm(deps));
  addForm(routes, deps, roleForm(deps));
  addForm(routes, deps, resetForm(deps));
  addForm(routes, deps, removeForm(deps));
}

/** A person with its live sessions. */
export type Found = { person: PersonView; sessions: readonly SessionView[]; projects: readonly ListedProjectView[] };

/** The person that a path names. Errors: `NOT_FOUND`. */
export async function findPerson(deps: ConsoleDeps, { visit, request }: Asked): Promise<Found> {
  const { personId = '' } = request.params as { personId?: string };
  const { data: people } = await listPeople.run(deps, visit.actor, {});
  const person = people.find((each) => each.personId === personId);
  if (person === undefined) throw new AppError('NOT_FOUND', `there is no person ${clip(personId)}`);
  const { data: sessions } = await listSessions.run(deps, visit.actor, { person: personId });
  return { person, sessions, projects: visit.projects };
}

const pathOf = ({ personId }: PersonView) => `/settings/people/${personId}`;

function inviteForm(
  deps: ConsoleDeps,
): Form<readonly ListedProjectView[], ReturnType<typeof invitePerson.read>, InvitedView> {
  return {
    ...byOperation(deps, invitePerson, ({ login = '', name, ...filled }, projects) => {
      const { role, projectIds } = readRightsFields(filled, projects);
      return { login, name, role, projectIds };
    }),
    path: '/settings/people/new',
    find: async ({ visit }) => visit.projects,
    show: (_visit, projects) => ({
      ...{ title: 'Invite somebody', about: null, button: 'Make the link', back: '/settings/people' },
      consequence: html`<p>Makes a link that works once, within 15 minutes. Whoever opens it chooses what to sign in with, and may then do what the role says.</p>`,
      fields: [
        {
          name: 'login',
          label: 'Login',
          kind: 'line',
          hint: 'An e-mail address or a short name. It is never written to.',
          more: html` maxlength="100" autocapitalize="off" spellcheck="false" required`,
        },
        { name: 'name', label: 'Name (optional)', kind: 'line', more: html` maxlength="100"` },
        ...rightsFields(projects, { role: 'viewer', projects: null }),
      ],
    }),
    done: (_visit, _projects, invited) => linkPage(invited),
  };
}

function roleForm(deps: ConsoleDeps): Form<Found, ReturnType<typeof changeRole.read>, unknown> {
  return {
    ...byOperation(deps, changeRole, (filled, { person, projects }: Found) => ({
      ...readRightsFields(filled, projects),
      person: person.personId,
    })),
    path: '/settings/people/:personId/role',
    find: (asked) => findPerson(deps, asked),
    show: (visit, { person, sessions, projects }) => ({
      ...{ title: `The role of ${person.login}`, about: null, button: 'Change the role', back: pathOf(person) },
      consequence: html`<p>${ltr(person.login)} is ${person.role}, for the projects: ${projectNames(visit, person.projects)}. ${ends(sessions)} The person signs in again with what it has.</p>`,
      fields: rightsFields(projects, person),
    }),
    done: (_visit, { person }) => ({ goTo: `${pathOf(person)}?changed=1` }),
  };
}

function resetForm(deps: ConsoleDeps): Form<Found, { person: string }, InvitedView> {
  return {
    ...byOperation(deps, resetPerson, (_filled, { person }: Found) => ({ person: person.personId })),
    path: '/settings/people/:personId/reset',
    find: (asked) => findPerson(deps, asked),
    show: (_visit, { person, sessions }) => ({
      ...{
        title: `A new link for ${person.login}`,
        about: null,
        button: 'Take it away and make a link',
        back: pathOf(person),
        fields: [],
      },
      consequence: html`<p>For who lost what they sign in with, or may not be the only one who has it. It takes away at once: ${signsInWith(person)}. ${ends(sessions)} A former link ends.</p><p>The new link works once, within 15 minutes; whoever opens it chooses anew what to sign in with. Role and projects stay.</p>`,
    }),
    done: (_visit, _found, invited) => linkPage(invited),
  };
}

function removeForm(deps: ConsoleDeps): Form<Found, { person: string }, unknown> {
  return {
    ...byOperation(deps, removePerson, (_filled, { person }: Found) => ({ person: person.personId })),
    path: '/settings/people/:personId/remove',
    find: (asked) => findPerson(deps, asked),
    show: (_visit, { person, sessions }) => ({
      ...{
        title: `Remove ${person.login}`,
        about: null,
        button: 'Remove this person',
        back: pathOf(person),
        fields: [],
      },
      consequence: html`<p>${ltr(person.login)} signs in no more, with: ${signsInWith(person)}. ${ends(sessions)}</p><p>What the person did stays in the audit log. There is no way back but a new invitation.</p>`,
    }),
    done: () => ({ goTo: '/settings/people?removed=1' }),
  };
}

function ends({ length }: readonly SessionView[]): Html {
  if (length === 0) return html`No session is open.`;
  return html`<strong>${length === 1 ? '1 session ends' : `${length} sessions end`} at once</strong>, also in the middle of a form.`;
}
