import { createHash, hash, timingSafeEqual } from 'node:crypto';
import { formatAdminKey, readAdminKey } from '../../../core/domain/api-key.ts';
import { AppError, type FieldProblem } from '../../../core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { say } from '../../../core/domain/message.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { Type } from '../../../core/runtime/type.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { answerOf, commandOf, rowOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { sealColumn, sealOf } from '../../../core/store/db/seal.ts';
import { SEALED_ADMIN_KEY } from '../../../core/store/db/sealed-tables.ts';
import { text as column, isAsSealed, listColumns, type Row } from '../../../core/store/db/statement.ts';
import { type Actor, ROLES } from '../actor.ts';
import { refuseBeyond } from '../authorize.ts';
import { columnsText, fieldsText } from '../command-words.ts';
import { choice, id, list, listOf, maybe, of, type Shown, schemaOf, show, text, texts, time } from '../fields.ts';
import { clip, gatherProblems } from '../input/problems.ts';
import { noSuch, readChoice, readId } from '../input/readers.ts';
import { type OperationDeps, operation } from '../operation.ts';
import { argument, line, lines, needed, oneOf } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { selectProject } from '../select.ts';
import { KEY_STATUSES, keyStatusOf, readNewKey } from './keys.ts';

const row = {
  id: 'uuid',
  name: 'text',
  role: column<'viewer' | 'operator' | 'owner'>(),
  projects: 'text[]?',
  allowedCidrs: 'text[]?',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz?',
  revokedAt: 'timestamptz?',
  lastUsedAt: 'timestamptz?',
} as const;

const COLUMNS = listColumns(row, '', { projects: 'projects::text[]' });

/** An admin API key. `projects` contains the UUIDs of the projects that the key may see, or is `null` for all. */
type ListedAdminKey = Row<typeof row>;

type NewAdminKey = Pick<ListedAdminKey, 'id' | 'name' | 'role' | 'projects' | 'allowedCidrs' | 'expiresAt'> & {
  secretSha256: Buffer;
};

/** Stores the SHA-256 hash of a key. */
export const insertAdminKey = commandOf(
  'admin-key-insert',
  `insert into admin_keys (id, name, secret_sha256, role, projects, allowed_cidrs, expires_at, mac)
   values ($1, $2, $3, $4, $5, $6, $7, $8)`,
  (key: NewAdminKey) => [
    ...[key.id, key.name, key.secretSha256, key.role, key.projects, key.allowedCidrs],
    ...[key.expiresAt === null ? null : new Date(key.expiresAt), sealOf(SEALED_ADMIN_KEY, key)],
  ],
);

/** Returns a key that is neither revoked nor expired. Ignores a row that was inserted without the master key. */
const findValidAdminKey = answerOf(
  'admin-key-authenticate',
  { ...row, secretSha256: 'bytea', isSound: isAsSealed(SEALED_ADMIN_KEY) },
  `select ${COLUMNS}, secret_sha256, ${sealColumn(SEALED_ADMIN_KEY, '')} as is_sound from admin_keys
   where id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)`,
  (id: string, now: UnixMs) => [id, new Date(now)],
  (rows) => rows.filter(({ isSound }) => isSound)[0] ?? null,
);

/** Records when a key was last used, to the minute. */
const touchAdminKey = commandOf(
  'admin-key-touch',
  `update admin_keys set last_used_at = $2
   where id = $1 and (last_used_at is null or last_used_at < $2::timestamptz - interval '1 minute')`,
  (id: string, now: UnixMs) => [id, new Date(now)],
);

/** Returns the oldest 1,000 keys. */
const listAdminKeys = rowsOf(
  'admin-key-list',
  { ...row, isSound: isAsSealed(SEALED_ADMIN_KEY) },
  `select ${COLUMNS}, ${sealColumn(SEALED_ADMIN_KEY, '')} as is_sound from admin_keys order by created_at, id limit 1000`,
);

/**
 * Revokes a key permanently and removes its seal. `isNew` means that it hadn't been revoked before. Returns `null` if the id is unknown.
 */
export const revokeAdminKey = rowOf(
  'admin-key-revoke',
  { name: 'text', isNew: 'bool' },
  `update admin_keys k set revoked_at = coalesce(k.revoked_at, $2), mac = null
   from (select id, revoked_at from admin_keys where id = $1 for update) before where k.id = before.id
   returning k.name, before.revoked_at is null as is_new`,
  (id: string, now: UnixMs) => [id, new Date(now)],
);

/** `projects` lists the projects that the key can access, or is `null` if it can access all. */
const made = {
  ...{ adminKeyId: of('id', id('adm')), name: text, role: choice(ROLES), projects: maybe(list(id('prj'))) },
  ...{ expiresAt: maybe(time), allowedIps: of('allowedCidrs', maybe(texts)) },
};
const listed = {
  ...{ ...made, status: choice(KEY_STATUSES) },
  ...{ createdAt: time, revokedAt: maybe(time), lastUsedAt: maybe(time) },
};
export type AdminKeyView = Shown<typeof listed>;

export const listAdminKeysOperation = operation({
  action: 'listAdminKeys',
  summary: 'List the admin API keys, without their secrets',
  route: 'GET /admin-keys',
  command: 'admin-key list',
  does: 'list keys, without their secrets',
  ...{ input: Type.Object({}), output: listOf(listed) },
  run: async ({ db, now }: { db: Sql; now(): UnixMs }) => {
    const at = now();
    return { data: (await listAdminKeys(db)).map((key) => show(listed, { ...key, status: keyStatusOf(key, at) })) };
  },
  print: ({ data }) => ({
    text: columnsText(data, [
      ['KEY', 'adminKeyId'],
      ['STATUS', 'status'],
      ['ROLE', 'role'],
      ['PROJECTS', 'projects', 'all'],
      ['CREATED', 'createdAt'],
      ['LAST USED', 'lastUsedAt', 'never'],
      ['EXPIRES', 'expiresAt', 'never'],
      ['ALLOWED IPS', 'allowedIps', 'all'],
      ['NAME', 'name'],
    ]),
    next: data.length === 0 && say`no admin key yet: create a key with "${{ command: 'admin-key create' }}"`,
  }),
});

/** The maximum number of projects that the database schema allows. */
const MAX_PROJECTS = 100;

type CreateDeps = Pick<OperationDeps, 'db' | 'now' | 'random'>;

export const createAdminKeyOperation = operation({
  action: 'createAdminKey',
  summary: 'Create an admin API key and show it once',
  route: 'POST /admin-keys',
  command: 'admin-key create',
  does: 'create a key and show it once',
  output: schemaOf({ ...made, adminKey: text }),
  input: Type.Object({
    name: needed(
      '<name>',
      'name of the person or program that uses the key, 1 to 100 characters; recorded with every action',
    ),
    role: oneOf(ROLES, '<role>', 'role of the key'),
    projects: lines(
      '<prj_…>',
      'only these projects, comma-separated (default: all)',
      'ids (prj_…) of the projects that the key may see (default: all)',
    ),
    expires: line('<when>', 'a duration (12h, 90d) or a date (2027-01-31, UTC) (default: never expires)'),
    allowedIps: lines('<cidr…>', 'IP addresses or CIDR blocks that may use the key (default: all)'),
  }),
  read: ({ role: name, projects, ...asked }, now) => {
    const problems: FieldProblem[] = [];
    const role = gatherProblems(problems, () => readChoice('role', name, ROLES));
    const key = gatherProblems(problems, () => readNewKey(asked, now));
    const wanted = [...new Set(projects ?? [])];
    if (wanted.length > MAX_PROJECTS) {
      problems.push({
        subject: 'projects',
        message: `choose at most ${MAX_PROJECTS} projects, or leave this out to allow all projects`,
      });
    }
    if (problems.length === 0 && role && key) return { ...key, role, projects: wanted.length === 0 ? null : wanted };
    throw new AppError('INVALID_ARGUMENT', 'the key was not created', { problems });
  },
  run: async ({ db, now, random }: CreateDeps, actor, { projects: names, ...wanted }) => {
    const projects: string[] = [];
    for (const projectId of names ?? []) projects.push((await selectProject(db, actor, projectId)).id);
    const key = { ...wanted, projects: names === null ? null : projects };
    refuseBeyond(actor, key);
    const keyId = uuidV7(now(), random(10));
    const adminKey = formatAdminKey(keyId, random(32));
    const secretSha256 = createHash('sha256').update(adminKey).digest();
    const { adminKeyId, ...detail } = show(made, { ...key, id: keyId });
    await db.transaction(async (tx) => {
      await insertAdminKey(tx, { ...key, id: keyId, secretSha256 });
      await recordAction(tx, actor, now(), 'admin-key.created', { subject: adminKeyId, detail });
    });
    return { adminKeyId, ...detail, adminKey };
  },
  print: (key) => ({
    text: fieldsText(key, [
      ['key', 'adminKeyId'],
      ['name', 'name'],
      ['role', 'role'],
      ['projects', 'projects', 'all'],
      ['expires', 'expiresAt', 'never'],
      ['allowed IPs', 'allowedIps', 'all'],
      ['admin key', 'adminKey'],
    ]),
    next: say`copy the key now, because it is not shown again: set QUITTANCE_ADMIN_KEY to this key where you use ${{ field: 'server' }} (docs/reference/admin-api.md)`,
  }),
});

export const revokeAdminKeyOperation = operation({
  action: 'revokeAdminKey',
  summary: 'Revoke an admin API key immediately and permanently',
  route: 'POST /admin-keys/:adminKeyId/revoke',
  command: 'admin-key revoke',
  does: 'revoke a key immediately and permanently',
  output: Type.Object({ adminKeyId: Type.String(), status: Type.Literal('revoked') }),
  input: Type.Object({ adminKeyId: argument('<adminKeyId>', 'adm_…') }),
  /** The error doesn't repeat the text, because someone may have entered a secret key by mistake. */
  read: ({ adminKeyId }) => ({
    uuid: readId('adm', adminKeyId, adminKeyId.startsWith('qa_') ? 'this' : clip(adminKeyId)),
  }),
  run: async ({ db, now }: Pick<OperationDeps, 'db' | 'now'>, actor, { uuid }) => {
    const adminKeyId = encodeId('adm', uuid);
    await db.transaction(async (tx) => {
      const key = await revokeAdminKey(tx, uuid, now());
      if (key === null) throw noSuch('adm', adminKeyId);
      if (!key.isNew) return;
      await recordAction(tx, actor, now(), 'admin-key.revoked', { subject: adminKeyId, detail: { name: key.name } });
    });
    return { adminKeyId, status: 'revoked' };
  },
  print: ({ adminKeyId }) => ({ text: `revoked ${adminKeyId}` }),
});

/** The origin and id of a request. `isAllowed` tells whether the client's address is in a list of CIDRs. */
type Asking = Pick<Actor, 'origin' | 'requestId'> & { isAllowed(cidrs: readonly string[]): boolean };

/**
 * Finds the actor for an admin key. Returns the same `null` whether the key is unknown, wrong, expired, revoked, or used from a different
 * address. Reads the key on each request so that a revoked key is refused immediately.
 */
export async function authenticateAdminKey(
  { db, now }: { db: Sql; now(): UnixMs },
  secret: string,
  { isAllowed, ...asking }: Asking,
): Promise<Actor | null> {
  const [keyId, at] = [readAdminKey(secret), now()];
  const key = keyId === null ? null : await findValidAdminKey(db, keyId, at);
  if (keyId === null || key === null || !timingSafeEqual(hash('sha256', secret, 'buffer'), key.secretSha256))
    return null;
  if (key.allowedCidrs !== null && !isAllowed(key.allowedCidrs)) return null;
  await touchAdminKey(db, keyId, at);
  const { name, role, projects, expiresAt, allowedCidrs } = key;
  return { kind: 'admin', name, role, id: keyId, projects, limits: { expiresAt, allowedCidrs }, ...asking };
}

export const operations = [createAdminKeyOperation, listAdminKeysOperation, revokeAdminKeyOperation];
