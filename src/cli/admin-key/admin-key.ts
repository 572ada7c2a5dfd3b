import {
  createAdminKeyOperation,
  listAdminKeysOperation,
  revokeAdminKeyOperation,
} from '../../operator/admin-keys/operations.ts';
import type { AdminKeyView } from '../../operator/admin-keys/views.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import { formatFields, type Result, type Terminal } from '../terminal/terminal.ts';

export async function printNewAdminKey(
  terminal: Terminal,
  input: Parameters<typeof createAdminKeyOperation.read>[0],
): Promise<Result> {
  const data = await runOperation(terminal, createAdminKeyOperation, input);
  return {
    data,
    text: formatFields([
      ['key', data.adminKeyId],
      ['name', data.name],
      ['role', data.role],
      ['projects', data.projects?.join(', ') ?? 'all'],
      ['expires', data.expiresAt ?? 'never'],
      ['allowed IPs', data.allowedIps?.join(', ') ?? 'all'],
      ['admin key', data.adminKey],
    ]),
    next: 'the key is shown only now: set QUITTANCE_ADMIN_KEY to it where --server is used (docs/admin-api.md)',
  };
}

const KEYS: readonly Column<AdminKeyView>[] = [
  ['KEY', ({ adminKeyId }) => adminKeyId],
  ['STATUS', ({ status }) => status],
  ['ROLE', ({ role }) => role],
  ['PROJECTS', ({ projects }) => projects?.join(',') ?? 'all'],
  ['CREATED', ({ createdAt }) => createdAt],
  ['LAST USED', ({ lastUsedAt }) => lastUsedAt ?? 'never'],
  ['EXPIRES', ({ expiresAt }) => expiresAt ?? 'never'],
  ['ALLOWED IPS', ({ allowedIps }) => allowedIps?.join(',') ?? 'all'],
  ['NAME', ({ name }) => name],
];

export async function printAdminKeys(terminal: Terminal): Promise<Result> {
  const data = await runOperation(terminal, listAdminKeysOperation, {});
  return {
    data,
    text: tableOf(KEYS, data.data),
    ...(data.data.length === 0 ? { next: 'no admin key yet: make one with "quittance admin-key create"' } : {}),
  };
}

export async function printRevokedAdminKey(terminal: Terminal, adminKeyId: string): Promise<Result> {
  const data = await runOperation(terminal, revokeAdminKeyOperation, { adminKeyId });
  return { data, text: `revoked ${data.adminKeyId}` };
}
