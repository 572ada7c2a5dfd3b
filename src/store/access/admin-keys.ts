import type { UnixMs } from '../../domain/time.ts';
import { commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { listColumns, type Row, text } from '../db/statement.ts';

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

/** A key of the admin API. `projects`: UUIDs of those that it may see, `null` for all. */
type ListedAdminKey = Row<typeof listed>;

type NewAdminKey = Pick<ListedAdminKey, 'id' | 'name' | 'role' | 'projects' | 'allowedCidrs' | 'expiresAt'> & {
  secretSha256: Uint8Array;
};

/** Stores a key by its SHA-256. */
export const insertAdminKey = commandOf(
  'admin-key-insert',
  `insert into admin_keys (id, name, secret_sha256, role, projects, allowed_cidrs, expires_at) values ($1, $2, $3, $4, $5, $6, $7)`,
  (key: NewAdminKey) => [
    ...[key.id, key.name, Buffer.from(key.secretSha256), key.role, key.projects, key.allowedCidrs],
    key.expiresAt === null ? null : new Date(key.expiresAt),
  ],
);

/** A key that is neither revoked nor expired. */
export const findValidAdminKey = rowOf(
  'admin-key-authenticate',
  { ...listed, secretSha256: 'bytea' },
  `select ${COLUMNS}, secret_sha256 from admin_keys
   where id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)`,
  (id: string, now: UnixMs) => [id, new Date(now)],
);

/** Notes that a key was used, to the minute. */
export const touchAdminKey = commandOf(
  'admin-key-touch',
  `update admin_keys set last_used_at = $2
   where id = $1 and (last_used_at is null or last_used_at < $2::timestamptz - interval '1 minute')`,
  (id: string, now: UnixMs) => [id, new Date(now)],
);

/** The oldest 1,000. */
export const listAdminKeys = rowsOf(
  'admin-key-list',
  listed,
  `select ${COLUMNS} from admin_keys order by created_at, id limit 1000`,
  () => [],
);

/** Revokes a key at once and for ever. `isNew`: it was not revoked before. `null` if there is none with this id. */
export const revokeAdminKey = rowOf(
  'admin-key-revoke',
  { name: 'text', isNew: 'bool' },
  `update admin_keys k set revoked_at = coalesce(k.revoked_at, $2)
   from (select id, revoked_at from admin_keys where id = $1 for update) before where k.id = before.id
   returning k.name, before.revoked_at is null as is_new`,
  (id: string, now: UnixMs) => [id, new Date(now)],
);
