import { AppError } from '../../domain/errors.ts';
import { requestBackup } from '../../operator/backup/request-backup.ts';
import { showEnvironment } from '../../operator/system/show-environment.ts';
import { showSystem } from '../../operator/system/show-system.ts';
import { html } from '../../web/html.ts';
import { addForm } from '../forms/add-form.ts';
import type { Form } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Routes } from '../page/routes.ts';
import { doctorPage } from './doctor-page.ts';
import { hasBackups, systemPage } from './system-page.ts';

/** What runs here, by which settings, and what is wrong around it. */
export function addSystemRoutes(routes: Routes, deps: ConsoleDeps): void {
  const { get } = routes;
  get('/settings/system', 'showSystem', async ({ visit, request }) => {
    readQuery(request, ['project']);
    const system = await showSystem(deps, visit.actor);
    return systemPage(visit, system, (await showEnvironment(deps, visit.actor)).data);
  });
  get('/settings/doctor', 'runDoctor', async ({ visit, request }) => {
    readQuery(request, ['project']);
    return doctorPage(await deps.examine(visit.actor));
  });
  addForm(routes, deps, backupForm(deps));
}

/** The backup is made by the process that has the directory, so neither this process nor the request waits for it. */
function backupForm(deps: ConsoleDeps): Form<null, null, unknown> {
  return {
    action: 'requestBackup',
    path: '/settings/system/backup',
    find: async ({ visit }) => {
      const { data } = await showEnvironment(deps, visit.actor);
      if (hasBackups(data)) return null;
      throw new AppError(
        'CONFLICT',
        'no directory for backups is set here: QUITTANCE_BACKUP_DIR names one at the start',
      );
    },
    show: () => ({
      ...{ title: 'Back up now', about: null, fields: [], button: 'Make a backup', back: '/settings/system' },
      consequence: html`<p>The process that follows the network writes the whole ledger to the directory of its backups, restores it to a scratch database and compares the two. Orders and payments go on meanwhile. The oldest backups beyond the number to keep are deleted then.</p>`,
    }),
    read: () => null,
    run: (actor) => requestBackup(deps, actor),
    done: () => ({ goTo: '/settings/system' }),
  };
}
