import { showEnvironment } from '../../operator/system/show-environment.ts';
import { showSystem } from '../../operator/system/show-system.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Routes } from '../page/routes.ts';
import { doctorPage } from './doctor-page.ts';
import { systemPage } from './system-page.ts';

/** What runs here, by which settings, and what is wrong around it. */
export function addSystemRoutes({ get }: Routes, deps: ConsoleDeps): void {
  get('/settings/system', 'showSystem', async ({ visit, request }) => {
    readQuery(request, ['project']);
    const system = await showSystem(deps, visit.actor);
    return systemPage(system, (await showEnvironment(deps, visit.actor)).data);
  });
  get('/settings/doctor', 'runDoctor', async ({ visit, request }) => {
    readQuery(request, ['project']);
    return doctorPage(await deps.examine(visit.actor));
  });
}
