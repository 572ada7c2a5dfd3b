import type { UnixMs } from '../../domain/time.ts';
import { answerOf, commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_ADMIN_KEY } from '../db/sealed-tables.ts';
import { isAsSealed, listColumns, type Row, text } from '../db/statement.ts';

const listed = {
  id: 'uuid',
  name: 'text',
  role: text<'viewer' | 'operator' | 'owner'>(),
  projects: 'text[]?',
  allowedCidrs: 'text[]?',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz?',
  revokedAt: 'timestamptz?',
  lastUsedAt: 'timestamptz?',
} as const;

const COLUMNS = listColumns(listed, '', { projects: 'projects::text[]' });

/** An admin API key. `projects` contains the UUIDs of the projects that the key may see, or is `null` for all. */
type ListedAdminKey = Row<typeof listed>;

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
export const findValidAdminKey = answerOf(
  'admin-key-authenticate',
  { ...listed, secretSha256: 'bytea', isSound: isAsSealed(SEALED_ADMIN_KEY) },
  `select ${COLUMNS}, secret_sha256, ${sealColumn(SEALED_ADMIN_KEY, '')} as is_sound from admin_keys
   where id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)`,
  (id: string, now: UnixMs) => [id, new Date(now)],
  (rows) => rows.filter(({ isSound }) => isSound)[0] ?? null,
);

/** Records when a key was last used, to the minute. */
export const touchAdminKey = commandOf(
  'admin-key-touch',
  `update admin_keys set last_used_at = $2
   where id = $1 and (last_used_at is null or last_used_at < $2::timestamptz - interval '1 minute')`,
  (id: string, now: UnixMs) => [id, new Date(now)],
);

/** Returns the oldest 1,000 keys. */
export const listAdminKeys = rowsOf(
  'admin-key-list',
  listed,
  `select ${COLUMNS} from admin_keys order by created_at, id limit 1000`,
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
