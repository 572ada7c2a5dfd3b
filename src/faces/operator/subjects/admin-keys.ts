import { createHash, hash, timingSafeEqual } from 'node:crypto';
import { formatAdminKey, readAdminKey } from '../../../core/domain/api-key.ts';
import { AppError, type FieldProblem } from '../../../core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { say } from '../../../core/domain/message.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { Type } from '../../../core/runtime/type.ts';
import {
  findValidAdminKey,
  insertAdminKey,
  listAdminKeys,
  revokeAdminKey,
  touchAdminKey,
} from '../../../core/store/access/admin-keys.ts';
import type { Sql } from '../../../core/store/db/database.ts';
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
import { keyStatusOf, readNewKey } from './keys.ts';

/** `projects` lists the projects that the key can access, or is `null` if it can access all. */
const made = {
  ...{ adminKeyId: of('id', id('adm')), name: text, role: choice(ROLES), projects: maybe(list(id('prj'))) },
  ...{ expiresAt: maybe(time), allowedIps: of('allowedCidrs', maybe(texts)) },
};
const listed = {
  ...{ ...made, status: choice(['active', 'expired', 'revoked']) },
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
