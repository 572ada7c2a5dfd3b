import { Type } from '../../runtime/type.ts';
import { ROLES } from '../actor.ts';
import { Line, Lines } from '../input/given.ts';
import { operation } from '../operation.ts';
import { createAdminKey, readNewAdminKey } from './create-admin-key.ts';
import { listAdminKeys } from './list-admin-keys.ts';
import { readAdminKeyId, revokeAdminKey } from './revoke-admin-key.ts';
import { AdminKeyListView, CreatedAdminKeyView, RevokedAdminKeyView } from './views.ts';

export const listAdminKeysOperation = operation({
  action: 'listAdminKeys',
  summary: 'The keys of the admin API, without their secrets',
  ...{ method: 'GET', path: '/admin-keys', input: Type.Object({}), output: AdminKeyListView },
  read: () => ({}),
  run: listAdminKeys,
});

export const createAdminKeyOperation = operation({
  action: 'createAdminKey',
  summary: 'Make a key of the admin API and show it, once',
  ...{ method: 'POST', path: '/admin-keys', output: CreatedAdminKeyView },
  input: Type.Object({
    ...{ name: Type.String(), role: Type.Enum(ROLES), expires: Line, allowedIps: Lines },
    projects: Type.Optional(Type.Array(Type.String(), { description: 'prj_… that it may see; else all' })),
  }),
  read: ({ projects, ...given }, now) => readNewAdminKey({ ...given, projects }, now),
  run: createAdminKey,
});

export const revokeAdminKeyOperation = operation({
  action: 'revokeAdminKey',
  summary: 'Revoke a key of the admin API at once and for ever',
  ...{ method: 'POST', path: '/admin-keys/:adminKeyId/revoke', output: RevokedAdminKeyView },
  input: Type.Object({ adminKeyId: Type.String() }),
  read: ({ adminKeyId }) => ({ uuid: readAdminKeyId(adminKeyId) }),
  run: revokeAdminKey,
});
