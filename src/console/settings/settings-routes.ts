import type { ConsoleDeps } from '../page/console-deps.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Routes } from '../page/routes.ts';
import { chooseProject } from '../page/visit.ts';
import { addAdminKeyRoutes } from './admin-key-routes.ts';
import { addChannelRoutes } from './channel-routes.ts';
import { addKeyRoutes } from './key-routes.ts';
import { addProjectRoutes } from './project.ts';
import { settingsPage } from './settings-page.ts';

/** What there is to set, the projects, the keys, and who is told. */
export function addSettingsRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings', 'showProject', async ({ visit, request }) => {
    const { project } = readQuery(request, ['project']);
    return settingsPage(deps, visit, chooseProject(visit, project));
  });
  addProjectRoutes(routes, deps);
  addKeyRoutes(routes, deps);
  addAdminKeyRoutes(routes, deps);
  addChannelRoutes(routes, deps);
}
