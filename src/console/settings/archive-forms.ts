import {
  type ArchivedProjectView,
  archiveProject,
  type ListedProjectView,
  type Settings,
  showSettings,
  unarchiveProject,
} from '../../operator/subjects/projects.ts';
import { html } from '../../web/html.ts';
import { addForm, byOperation } from '../forms/add-form.ts';
import type { Form } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { outside, table, time } from '../page/pieces.ts';
import type { Asked, Routes } from '../page/routes.ts';
import { needProject, urlTo, type Visit } from '../page/visit.ts';
import { describeOpen } from './project-page.ts';

/** Archiving a project, putting it back, and the list of archived ones. */
export function addArchiveRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/projects', 'listProjects', async ({ visit }) => archivedPage(visit));
  addForm(routes, deps, {
    ...change(deps, archiveProject),
    path: '/settings/project/archive',
    show: (visit, { view, open }) => ({
      ...{ title: 'Archive the project', about: view, fields: [], button: 'Archive it' },
      consequence: html`<p>${describeOpen(open)} What is paid is credited and told to your shop as before.</p><p>New orders are refused from then on: its API keys only read. It is left out of lists, and can be put back.</p>`,
      back: urlTo(visit, '/settings/project', view),
    }),
  });
  addForm(routes, deps, {
    ...change(deps, unarchiveProject),
    path: '/settings/project/unarchive',
    show: (visit, { view }) => ({
      ...{ title: 'Put the project back', about: view, fields: [], button: 'Put it back' },
      consequence: html`<p>Its API keys make invoices again, to its addresses in use. Are those still in your wallet?</p>`,
      back: urlTo(visit, '/settings/project', view),
    }),
  });
}

type Archiving = typeof archiveProject;
type Wanted = ReturnType<Archiving['read']>;

function change(
  deps: ConsoleDeps,
  operation: Archiving,
): Omit<Form<Settings, Wanted, ArchivedProjectView>, 'path' | 'show'> {
  return {
    ...byOperation(deps, operation, (_filled, { view }: Settings) => ({ projectId: view.projectId })),
    find: ({ visit }: Asked, project) => showSettings.run(deps, visit.actor, needProject(visit, project)),
    done: (visit, { view }) => ({ goTo: urlTo(visit, '/settings/project', view) }),
  };
}

function archivedPage(visit: Visit): Page {
  const archived = visit.projects.filter(({ archivedAt }) => archivedAt !== null);
  const link = (project: ListedProjectView) =>
    html`<a class="row" href="${urlTo(visit, '/settings/project', project)}">${outside(project.name, 100)}</a>`;
  const columns = [
    ['Project', link],
    ['Network', ({ network }: ListedProjectView) => network],
    ['Archived', ({ archivedAt }: ListedProjectView) => (archivedAt === null ? '' : time(archivedAt))],
  ] as const;
  const list =
    archived.length === 0 ? html`<p>No project is archived.</p>` : table('Archived projects', columns, archived);
  return { title: 'Archived projects', main: html`<section class="card">${list}</section>` };
}
