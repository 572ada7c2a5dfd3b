import { writeText } from '../../operator/command-words.ts';
import { createKeyOperation, listKeysOperation, revokeKeyOperation } from '../../operator/keys/operations.ts';
import type { CreatedKeyView, KeyView } from '../../operator/keys/views.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import { formatFields, type Result, type Terminal } from '../terminal/terminal.ts';

type Project = { projectId: string | undefined };

export async function printNewKey(
  terminal: Terminal,
  input: Parameters<typeof createKeyOperation.read>[0],
): Promise<Result> {
  const data = await runOperation(terminal, createKeyOperation, input);
  return {
    data,
    text: formatFields(NEW_KEY.map(([name, cell]) => [name, cell(data)])),
    next: [
      ...(data.warning === undefined ? [] : [`warning: ${writeText(data.warning)}`]),
      'the secret key is shown only now: store it where your server reads it (header X-Api-Key)',
    ].join('\n'),
  };
}

const NEW_KEY: readonly Column<CreatedKeyView>[] = [
  ['key', ({ keyId }) => keyId],
  ['project', ({ projectId }) => projectId],
  ['network', ({ network }) => network],
  ['name', ({ name }) => name],
  ['expires', ({ expiresAt }) => expiresAt ?? 'never'],
  ['allowed IPs', ({ allowedIps }) => allowedIps?.join(', ') ?? 'all'],
  ['scopes', ({ scopes }) => scopes.join(', ')],
  ['secret key', ({ apiKey }) => apiKey],
];

export async function printKeys(terminal: Terminal, input: Project): Promise<Result> {
  const data = await runOperation(terminal, listKeysOperation, input);
  return {
    data,
    text: tableOf(KEYS, data.data),
    ...(data.data.length === 0 ? { next: 'no key yet: make one with "quittance key create"' } : {}),
  };
}

const KEYS: readonly Column<KeyView>[] = [
  ['KEY', ({ keyId }) => keyId],
  ['STATUS', ({ status }) => status],
  ['CREATED', ({ createdAt }) => createdAt],
  ['LAST USED', ({ lastUsedAt }) => lastUsedAt ?? 'never'],
  ['EXPIRES', ({ expiresAt }) => expiresAt ?? 'never'],
  ['ALLOWED IPS', ({ allowedIps }) => allowedIps?.join(',') ?? 'all'],
  ['SCOPES', ({ scopes }) => scopes.join(',')],
  ['NAME', ({ name }) => name],
];

export async function printRevokedKey(terminal: Terminal, keyId: string): Promise<Result> {
  const data = await runOperation(terminal, revokeKeyOperation, { keyId });
  return { data, text: `revoked ${data.keyId}` };
}
