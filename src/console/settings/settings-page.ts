import type { ActionName } from '../../operator/actions.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { perform } from '../../operator/operation.ts';
import { listAdminKeysOperation } from '../../operator/subjects/admin-keys.ts';
import { listAudit, readAuditFilter } from '../../operator/subjects/audit.ts';
import { listKeys } from '../../operator/subjects/keys.ts';
import { listChannels } from '../../operator/subjects/notify.ts';
import { listPeople } from '../../operator/subjects/people.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { listSessions } from '../../operator/subjects/sessions.ts';
import { type Html, html } from '../../web/html.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { duration, number } from '../page/pieces.ts';
import { urlTo, usedOf, type Visit } from '../page/visit.ts';
import { CHANNELS_PAGE } from './channels-page.ts';

type Entry = { title: string; url: string; action: ActionName; about: string; state(): Promise<Html | string> };

/** What there is to set, with the state of each. What the visitor's role may not is not there. */
export async function settingsPage(deps: ConsoleDeps, visit: Visit, project: ListedProjectView | null): Promise<Page> {
  const { actor } = visit;
  const render = async (id: string, title: string, entries: readonly Entry[]) => {
    const items: Html[] = [];
    for (const { url, state, ...entry } of entries.filter(({ action }) => isAllowed(actor, action))) {
      items.push(
        html`<li><div><p><a href="${url}">${entry.title}</a></p><p class="hint">${entry.about}</p></div><p>${await state()}</p></li>`,
      );
    }
    if (items.length === 0) return null;
    return html`<section class="card" aria-labelledby="${id}"><h2 id="${id}">${title}</h2><ul class="concerns">${items}</ul></section>`;
  };
  const own: Entry = {
    ...{ title: 'You', url: '/settings/me', action: 'listOwnSessions' },
    ...{ about: 'What you sign in with, and where you are signed in.', state: async () => actor.role },
  };
  return {
    title: 'Settings',
    about: project,
    main: html`${project === null ? null : await render('project', 'This project', ofProject(deps, visit, project))}
${await render('all', 'All projects', ofAll(deps, visit))}
${await render('own', 'Your own', [own])}`,
  };
}

function ofProject(deps: ConsoleDeps, visit: Visit, project: ListedProjectView): Entry[] {
  const { projectId, policy } = project;
  return [
    {
      ...{ title: 'Project', url: urlTo(visit, '/settings/project', project), action: 'showProject' },
      about: 'What payers see of you, how amounts are told apart, and how long invoices wait.',
      state: async () => `policy ${policy}`,
    },
    {
      ...{ title: 'API keys', url: urlTo(visit, '/settings/keys', project), action: 'listKeys' },
      about: 'With these your shop makes and reads invoices.',
      state: async () => active((await listKeys.run(deps, visit.actor, { projectId })).data),
    },
  ];
}

function archivedEntry(archived: number): Entry {
  return {
    ...{ title: 'Archived projects', url: '/settings/projects', action: 'listProjects' },
    about: 'They take no new invoices, and can be put back.',
    state: async () => number(archived),
  };
}

function ofAll(deps: ConsoleDeps, { actor, projects }: Visit): Entry[] {
  const used = usedOf(projects).length;
  const archived = projects.length - used;
  return [
    {
      ...{ title: 'New project', url: '/settings/projects/new', action: 'createProject' },
      about: 'Another shop, or another network, with its own addresses, keys and invoices.',
      state: async () => `${number(used)} ${used === 1 ? 'project' : 'projects'}`,
    },
    ...(archived === 0 ? [] : [archivedEntry(archived)]),
    {
      ...{ title: 'Admin keys', url: '/settings/admin-keys', action: 'listAdminKeys' },
      about: 'With these programs and commands do what you do here.',
      state: async () => active((await perform(listAdminKeysOperation, deps, actor, {})).data),
    },
    {
      ...{ title: 'Notifications', url: CHANNELS_PAGE, action: 'listChannels' },
      about: 'Who is told of alarms, by e-mail or a chat.',
      state: async () => describeChannels((await listChannels.run(deps, actor, {})).data),
    },
    {
      ...{ title: 'People', url: '/settings/people', action: 'listPeople' },
      about: 'Who may sign in, and what each may do.',
      state: async () => `${number((await listPeople.run(deps, actor, {})).data.length)} known`,
    },
    {
      ...{ title: 'Sessions', url: '/settings/sessions', action: 'listSessions' },
      about: 'Who is signed in, and from where.',
      state: async () => `${number((await listSessions.run(deps, actor, {})).data.length)} signed in`,
    },
    {
      ...{ title: 'Audit log', url: '/settings/audit', action: 'listAudit' },
      about: 'Who did what, and when.',
      state: async () => {
        const [newest] = (await listAudit.run(deps, actor, readAuditFilter({ limit: '1' }))).data;
        if (newest === undefined) return 'empty';
        return html`newest: ${newest.action}, ${duration(deps.now() - Date.parse(newest.at))} ago`;
      },
    },
    {
      ...{ title: 'System', url: '/settings/system', action: 'showSystem' },
      about: 'Backups, versions, and what the service was started with.',
      state: async () => 'read only',
    },
  ];
}

function describeChannels(channels: readonly { failingSince: string | null }[]): string {
  const failing = channels.filter(({ failingSince }) => failingSince !== null).length;
  const all = `${number(channels.length)} ${channels.length === 1 ? 'channel' : 'channels'}`;
  return failing === 0 ? all : `${all}, ${number(failing)} of which ${failing === 1 ? 'fails' : 'fail'}`;
}

function active(keys: readonly { status: string }[]): string {
  return `${number(keys.filter(({ status }) => status === 'active').length)} active`;
}
