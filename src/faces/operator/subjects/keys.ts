import { createHash } from 'node:crypto';
import { formatApiKey, readApiKey, SCOPES, type Scope, scopesOf } from '../../../core/domain/api-key.ts';
import { AppError, type FieldProblem, invalidArgument } from '../../../core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import type { Network } from '../../../core/domain/network.ts';
import { type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { warnUnwatched } from '../../../core/payments/watched-networks.ts';
import { Type } from '../../../core/runtime/type.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { commandOf, rowOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { sealColumn, sealOf } from '../../../core/store/db/seal.ts';
import { SEALED_API_KEY } from '../../../core/store/db/sealed-tables.ts';
import { isAsSealed, listColumns, type Row } from '../../../core/store/db/statement.ts';
import { maySee } from '../actor.ts';
import { refuseBeyond } from '../authorize.ts';
import { columnsText, fieldsText } from '../command-words.ts';
import { choice, id, listOf, maybe, of, Said, type Shown, schemaOf, show, text, texts, time } from '../fields.ts';
import { clip, fieldProblem, nameProblem } from '../input/problems.ts';
import { noSuch, parseCidr, parseMoment, readId } from '../input/readers.ts';
import { operation } from '../operation.ts';
import { argument, line, lines, projectId } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { selectProject } from '../select.ts';

const columns = {
  id: 'uuid',
  name: 'text',
  allowedCidrs: 'text[]?',
  scopes: 'text[]?',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz?',
  revokedAt: 'timestamptz?',
  lastUsedAt: 'timestamptz?',
} as const;

/** Stores a key by its SHA-256. Does nothing if a key with this id exists. */
export const insertApiKey = commandOf(
  'api-key-insert',
  `insert into api_keys (id, project_id, network, name, secret_sha256, allowed_cidrs, expires_at, scopes, mac)
   select $1, p.id, p.network, $3, $4, $5, $6, $7, $8 from projects p where p.id = $2
   on conflict (id) do nothing`,
  ({ scopes = null, ...key }: NewApiKey) => [
    key.id,
    key.projectId,
    key.name,
    key.secretSha256,
    key.allowedCidrs,
    key.expiresAt === null ? null : new Date(key.expiresAt),
    scopes,
    sealOf(SEALED_API_KEY, { ...key, scopes }),
  ],
);

type NewApiKey = Pick<Row<typeof columns>, 'id' | 'name' | 'allowedCidrs' | 'expiresAt'> & {
  projectId: string;
  secretSha256: Buffer;
  /** If this is missing, the key gets the default scopes. */
  scopes?: readonly Scope[] | null;
};

export const listApiKeys = rowsOf(
  'api-key-list',
  { ...columns, isSound: isAsSealed(SEALED_API_KEY) },
  `select ${listColumns(columns)}, ${sealColumn(SEALED_API_KEY, '')} as is_sound from api_keys where project_id = $1 order by created_at, id limit 1000`,
  (projectId: string) => [projectId],
);

/**
 * Revokes a key permanently. The key loses its seal, so it stays invalid even if `revoked_at` is reset. `isNew` means that the key hadn't
 * been revoked before. Returns `null` if the id is unknown.
 */
export const revokeApiKey = rowOf(
  'api-key-revoke',
  { projectId: 'uuid', name: 'text', isNew: 'bool' },
  `update api_keys k set revoked_at = coalesce(k.revoked_at, $2), mac = null
   from (select id, revoked_at from api_keys where id = $1 for update) before where k.id = before.id
   returning k.project_id, k.name, before.revoked_at is null as is_new`,
  (id: string, now: UnixMs) => [id, new Date(now)],
);

/** `invalid`: Quittance accepts no request with the key, because its row has no valid seal. */
export const KEY_STATUSES = ['active', 'expired', 'revoked', 'invalid'] as const;

const name = { keyId: of('id', id('key')), name: text };
const rights = {
  expiresAt: maybe(time),
  allowedIps: of('allowedCidrs', maybe(texts)),
  scopes: { ...texts, show: (scopes: readonly Scope[] | null): string[] => [...scopesOf(scopes)] },
};
const listed = {
  ...name,
  status: choice(KEY_STATUSES),
  createdAt: time,
  expiresAt: rights.expiresAt,
  revokedAt: maybe(time),
  lastUsedAt: maybe(time),
  allowedIps: rights.allowedIps,
  scopes: rights.scopes,
};
export type KeyView = Shown<typeof listed>;

export const listKeys = operation({
  action: 'listKeys',
  summary: "List a project's keys, without their secrets",
  route: 'GET /keys',
  command: 'key list',
  does: 'list keys, without their secrets',
  output: listOf(listed),
  input: Type.Object({ projectId: projectId() }),
  run: async ({ db, now }: { db: Sql; now(): UnixMs }, actor, { projectId }) => {
    const project = await selectProject(db, actor, projectId);
    const at = now();
    return {
      data: (await listApiKeys(db, project.id)).map((key) => show(listed, { ...key, status: keyStatusOf(key, at) })),
    };
  },
  print: ({ data }) => ({
    text: columnsText(data, [
      ['KEY', 'keyId'],
      ['STATUS', 'status'],
      ['CREATED', 'createdAt'],
      ['LAST USED', 'lastUsedAt', 'never'],
      ['EXPIRES', 'expiresAt', 'never'],
      ['ALLOWED IPS', 'allowedIps', 'all'],
      ['SCOPES', 'scopes'],
      ['NAME', 'name'],
    ]),
    next: data.length === 0 && say`no key yet: create a key with "${{ command: 'key create' }}"`,
  }),
});

/** Also used for admin API keys. */
export function keyStatusOf(
  { revokedAt, expiresAt, isSound }: { revokedAt: UnixMs | null; expiresAt: UnixMs | null; isSound: boolean },
  now: UnixMs,
): KeyView['status'] {
  if (revokedAt !== null) return 'revoked';
  if (!isSound) return 'invalid';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active';
}

type NewKey = {
  name: string;
  expiresAt: UnixMs | null;
  allowedCidrs: string[] | null;
  scopes?: readonly Scope[] | null;
};

/**
 * Reads a new key's properties and reports all problems at once. `expires` is a duration (`90d`) or a date. `allowedIps` are addresses or
 * CIDR blocks. `scopes` define what the key may do; by default, everything that keys could always do. Throws `INVALID_ARGUMENT`.
 */
export function readNewKey(
  input: {
    name: string;
    expires?: string | undefined;
    allowedIps?: readonly string[] | undefined;
    scopes?: readonly string[] | undefined;
  },
  now: UnixMs,
): NewKey {
  const problems: FieldProblem[] = [];
  const add = (field: string, reason: string | null) => {
    if (reason !== null) problems.push(fieldProblem(field, reason));
  };
  const name = input.name.trim();
  add('name', nameProblem(name));
  const expiresMs = input.expires === undefined ? null : parseMoment(input.expires, now);
  if (input.expires !== undefined) {
    const shown = clip(input.expires);
    if (expiresMs === null) add('expires', `is ${shown}: use a duration (12h, 90d) or a date (2027-01-31, UTC)`);
    else if (expiresMs <= now) add('expires', `is ${shown}, which is in the past: use a future time`);
  }
  const allowedCidrs = (input.allowedIps ?? []).flatMap((text) => {
    const parsed = parseCidr(text.trim());
    if (parsed.kind === 'ok') return [parsed.cidr];
    add('allowedIps', parsed.reason);
    return [];
  });
  const named = input.scopes?.map((text) => text.trim()) ?? [];
  const unknown = named.find((name) => !SCOPES.some((scope) => scope === name));
  const choice = `choose from ${SCOPES.join(', ')}`;
  if (unknown !== undefined) add('scopes', `has ${clip(unknown)}, which is not a scope: ${choice}`);
  else if (input.scopes?.length === 0) add('scopes', `is empty: ${choice}`);
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'the key was not created', { problems });
  return {
    name,
    expiresAt: expiresMs === null ? null : unixMs(expiresMs),
    allowedCidrs: allowedCidrs.length === 0 ? null : allowedCidrs,
    scopes: input.scopes === undefined ? null : scopesOf(named),
  };
}

/** A new key with its secret, which is shown only once. `warning` says why no invoice can be created with it yet. */
const made = { keyId: name.keyId, projectId: id('prj'), network: text, name: text, apiKey: text, ...rights };
export type CreatedKeyView = Shown<typeof made> & { warning?: Text };

/** `networks` are the networks with nodes configured here. */
type CreateDeps = { db: Database; networks: readonly Network[]; now(): UnixMs; random(bytes: number): Uint8Array };

export const createKey = operation({
  action: 'createKey',
  summary: 'Create a secret key and show it once',
  route: 'POST /keys',
  command: 'key create',
  output: schemaOf(made, { warning: Type.Optional(Said) }),
  input: Type.Object({
    projectId: projectId(),
    name: line('<name>', 'name, 1 to 100 characters', { default: 'default' }),
    expires: line('<when>', 'a duration (12h, 90d) or a date (2027-01-31, UTC) (default: never expires)'),
    allowedIps: lines('<cidr…>', 'IP addresses or CIDR blocks that may use the key (default: all)'),
    scopes: lines('<scope…>', 'permissions: create, read, events, webhooks (default: all except webhooks)'),
  }),
  read: ({ projectId, name = 'default', ...given }, now) => ({ ...readNewKey({ ...given, name }, now), projectId }),
  run: async ({ db, networks, now, random }: CreateDeps, actor, { projectId, ...key }): Promise<CreatedKeyView> => {
    const project = await selectProject(db, actor, projectId);
    refuseBeyond(actor, key);
    const uuid = uuidV7(now(), random(10));
    const apiKey = formatApiKey(project.network, uuid, random(32));
    const secretSha256 = createHash('sha256').update(apiKey).digest();
    const view = show(made, { ...key, id: uuid, projectId: project.id, network: project.network, apiKey });
    await db.transaction(async (tx) => {
      await insertApiKey(tx, { id: uuid, projectId: project.id, secretSha256, ...key });
      const { keyId: subject, name, expiresAt, allowedIps, scopes } = view;
      const detail = { name, expiresAt, allowedIps, scopes };
      await recordAction(tx, actor, now(), 'key.created', { projectId: project.id, subject, detail });
    });
    const warning = await warnUnwatched(db, project.network, networks);
    return { ...view, ...(warning !== null && { warning }) };
  },
  print: ({ warning, ...key }) => ({
    text: fieldsText(key, [
      ['key', 'keyId'],
      ['project', 'projectId'],
      ['network', 'network'],
      ['name', 'name'],
      ['expires', 'expiresAt', 'never'],
      ['allowed IPs', 'allowedIps', 'all'],
      ['scopes', 'scopes'],
      ['secret key', 'apiKey'],
    ]),
    next: [
      warning !== undefined && say`warning: ${warning}`,
      'copy the secret key now, because it is not shown again: your server sends it in the X-Api-Key header',
    ],
  }),
});

/**
 * Decodes a `key_…`. If the text is a secret key instead of an id, the error gives the id in the key and doesn't repeat the secret. Throws
 * `INVALID_ARGUMENT`.
 */
function readKeyId(keyId: string): string {
  const secret = readApiKey(keyId);
  if (secret === null) return readId('key', keyId, keyId.startsWith('qt_') ? 'this' : clip(keyId));
  const args = [encodeId('key', secret.keyUuid)];
  throw invalidArgument`this is a secret key, not its id: run "${{ command: 'key revoke', args }}"`;
}

export const revokeKey = operation({
  action: 'revokeKey',
  summary: 'Revoke a key immediately and permanently',
  route: 'POST /keys/:keyId/revoke',
  command: 'key revoke',
  output: Type.Object({ keyId: Type.String(), status: Type.Literal('revoked') }),
  input: Type.Object({ keyId: argument('<keyId>', 'key_…') }),
  read: ({ keyId }) => ({ uuid: readKeyId(keyId) }),
  run: async ({ db, now }: { db: Database; now(): UnixMs }, actor, { uuid }) => {
    const keyId = encodeId('key', uuid);
    await db.transaction(async (tx) => {
      const key = await revokeApiKey(tx, uuid, now());
      if (key === null || !maySee(actor, key.projectId)) throw noSuch('key', keyId);
      if (key.isNew) {
        const { projectId, name } = key;
        await recordAction(tx, actor, now(), 'key.revoked', { projectId, subject: keyId, detail: { name } });
      }
    });
    return { keyId, status: 'revoked' as const };
  },
  print: ({ keyId }) => ({ text: `revoked ${keyId}` }),
});

export const operations = [createKey, listKeys, revokeKey];
