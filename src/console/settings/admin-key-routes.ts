import { AppError } from '../../domain/errors.ts';
import type { Role } from '../../operator/actor.ts';
import { clip } from '../../operator/input/clip.ts';
import { perform } from '../../operator/operation.ts';
import {
  type AdminKeyView,
  createAdminKeyOperation,
  listAdminKeysOperation,
  revokeAdminKeyOperation,
} from '../../operator/subjects/admin-keys.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { html } from '../../web/html.ts';
import { addForm, byOperation } from '../forms/add-form.ts';
import type { Form } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Routes } from '../page/routes.ts';
import { describeRevocation, KEY_FIELDS, keyTable, madeKeyPage, readKeyFields, terminalLines } from './key-pieces.ts';
import { readRightsFields, rightsFields } from './people.ts';

const PAGE = '/settings/admin-keys';

/** The keys of the admin API. */
export function addAdminKeyRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get(PAGE, 'listAdminKeys', async ({ visit, request }) => {
    const { revoked, all } = readQuery(request, ['project', 'revoked', 'all']);
    return listPage((await perform(listAdminKeysOperation, deps, visit.actor, {})).data, {
      isRevoked: revoked !== undefined,
      isAll: all !== undefined,
    });
  });
  addForm(routes, deps, creation(deps));
  addForm(routes, deps, revocation(deps));
}

function listPage(keys: readonly AdminKeyView[], { isRevoked, isAll }: { isRevoked: boolean; isAll: boolean }): Page {
  const list =
    keys.length === 0
      ? html`<section class="card empty"><h2>No admin key yet</h2><p>With one, programs and the command line of another machine do what people do here, within a role. They need no password of the database.</p><p><a class="button" href="${PAGE}/new">Make the first one</a></p></section>`
      : keyTable(keys, {
          all: isAll ? null : `${PAGE}?all=yes`,
          rights: ({ role, projects }) => (projects === null ? role : `${role}, ${projects.length} of the projects`),
          revoke: ({ adminKeyId }) => `${PAGE}/${adminKeyId}/revoke`,
        });
  return {
    title: 'Admin keys',
    ...(keys.length === 0 ? {} : { beside: html`<a class="button" href="${PAGE}/new">New admin key</a>` }),
    main: html`${isRevoked ? html`<p class="good" role="status">The key is revoked.</p>` : null}${list}`,
  };
}

type Creation = ReturnType<typeof createAdminKeyOperation.read>;
type Projects = readonly ListedProjectView[];

function creation(
  deps: ConsoleDeps,
): Form<Projects, Creation, Awaited<ReturnType<typeof createAdminKeyOperation.run>>> {
  return {
    ...byOperation(deps, createAdminKeyOperation, (filled, projects: Projects) => {
      const { role, projectIds } = readRightsFields(filled, projects);
      // What is no role is refused where it is read.
      return {
        ...readKeyFields(filled),
        role: role as Role,
        projects: projectIds.length === 0 ? undefined : projectIds,
      };
    }),
    path: `${PAGE}/new`,
    find: async ({ visit }) => visit.projects,
    show: (_visit, projects) => ({
      ...{ title: 'New admin key', about: null, button: 'Make the key', back: PAGE },
      fields: [...KEY_FIELDS, ...rightsFields(projects, { role: 'viewer', projects: null })],
      consequence: html`<p>Whoever has it does what its role may, without a second factor: bound it by role, projects, addresses and time. It is shown once.</p>`,
    }),
    done: (_visit, _projects, { adminKeyId: id, adminKey: secret, ...made }) =>
      madeKeyPage({
        about: null,
        key: { ...made, id, secret },
        steps: terminalLines(
          'QUITTANCE_ADMIN_KEY',
          `curl -sS -H "Authorization: Bearer $QUITTANCE_ADMIN_KEY" ${deps.consoleUrl()}/admin/v1/projects`,
        ),
        back: PAGE,
      }),
  };
}

function revocation(deps: ConsoleDeps): Form<AdminKeyView, { uuid: string }, unknown> {
  return {
    ...byOperation(deps, revokeAdminKeyOperation, (_filled, { adminKeyId }: AdminKeyView) => ({ adminKeyId })),
    path: `${PAGE}/:adminKeyId/revoke`,
    find: async ({ visit, request }) => {
      const { adminKeyId = '' } = request.params as { adminKeyId?: string };
      const key = (await perform(listAdminKeysOperation, deps, visit.actor, {})).data.find(
        (each) => each.adminKeyId === adminKeyId,
      );
      if (key === undefined) throw new AppError('NOT_FOUND', `there is no admin key ${clip(adminKeyId)}`);
      return key;
    },
    show: (_visit, key) => ({
      ...{ title: 'Revoke an admin key', about: null, fields: [], button: 'Revoke it for ever', back: PAGE },
      consequence: describeRevocation(key, deps.now(), null),
    }),
    done: () => ({ goTo: `${PAGE}?revoked=1` }),
  };
}
