import { openKeyRing } from '../../runtime/open-key-ring.ts';
import { Type } from '../../runtime/type.ts';
import { Flag, Line, Lines, ProjectId } from '../input/given.ts';
import { operation } from '../operation.ts';
import { createKey, readNewKey } from './create-key.ts';
import { openEncryptionKeys } from './encryption-keys.ts';
import { listKeys } from './list-keys.ts';
import { readKeyId, revokeKey } from './revoke-key.ts';
import { rotateReceiptKey } from './rotate-receipt-key.ts';
import { showMasterKeys } from './show-master-keys.ts';
import { CreatedKeyView, KeyListView, MasterKeysView, RevokedKeyView, RotatedReceiptKeyView } from './views.ts';

export const listKeysOperation = operation({
  action: 'listKeys',
  summary: 'The keys of a project, without their secrets',
  ...{ method: 'GET', path: '/keys', input: Type.Object({ projectId: ProjectId }), output: KeyListView },
  read: ({ projectId }) => ({ projectId }),
  run: listKeys,
});

export const createKeyOperation = operation({
  action: 'createKey',
  summary: 'Make a secret key and show it, once',
  ...{ method: 'POST', path: '/keys', output: CreatedKeyView },
  input: Type.Object({ projectId: ProjectId, name: Line, expires: Line, allowedIps: Lines, scopes: Lines }),
  read: ({ projectId, name = 'default', ...given }, now) => ({ ...readNewKey({ ...given, name }, now), projectId }),
  run: createKey,
});

export const revokeKeyOperation = operation({
  action: 'revokeKey',
  summary: 'Revoke a key at once and for ever',
  ...{ method: 'POST', path: '/keys/:keyId/revoke', output: RevokedKeyView },
  input: Type.Object({ keyId: Type.String() }),
  read: ({ keyId }) => ({ uuid: readKeyId(keyId) }),
  run: revokeKey,
});

export const showMasterKeysOperation = operation({
  action: 'showMasterKeys',
  summary: 'The master keys that the service has, by their ids, and how many secrets each has sealed',
  ...{ method: 'GET', path: '/master-keys', input: Type.Object({}), output: MasterKeysView },
  read: () => ({}),
  run: async (deps, actor) => {
    const keyRing = await openKeyRing(deps.config, { mayCreate: false, warn: deps.note });
    const shown = await showMasterKeys({ ...deps, keyRing }, actor);
    return { ...shown, isEmbedded: deps.config.databaseUrl === null };
  },
});

export const rotateReceiptKeyOperation = operation({
  action: 'rotateReceiptKey',
  summary: 'Make a new key that signs receipts',
  ...{ method: 'POST', path: '/receipt-keys/rotate', output: RotatedReceiptKeyView },
  input: Type.Object({ isKeyLost: Flag }),
  read: ({ isKeyLost = false }) => ({ isKeyLost }),
  run: async (deps, actor, { isKeyLost }) => {
    const keyRing = await openEncryptionKeys(deps, { isKeyLost });
    return rotateReceiptKey({ ...deps, keyRing }, actor);
  },
});
