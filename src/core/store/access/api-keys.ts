import { shopOrigins } from '../../domain/brand/embed-origins.ts';
import type { Network } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import type { Scope } from '../../domain/scope.ts';
import type { UnixMs } from '../../domain/time.ts';
import { answerOf, commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_API_KEY, SEALED_PROJECT } from '../db/sealed-tables.ts';
import { count, isAsSealed, listColumns, type Row, text } from '../db/statement.ts';

const listed = {
  id: 'uuid',
  name: 'text',
  allowedCidrs: 'text[]?',
  scopes: 'text[]?',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz?',
  revokedAt: 'timestamptz?',
  lastUsedAt: 'timestamptz?',
} as const;

type ListedApiKey = Row<typeof listed>;

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

type NewApiKey = Pick<ListedApiKey, 'id' | 'name' | 'allowedCidrs' | 'expiresAt'> & {
  projectId: string;
  secretSha256: Buffer;
  /** Without this, the key gets the default scopes. */
  scopes?: readonly Scope[] | null;
};

const keyColumns = {
  id: 'uuid',
  projectId: 'uuid',
  name: 'text',
  network: text<Network>(),
  secretSha256: 'bytea',
  allowedCidrs: 'text[]?',
  expiresAt: 'timestamptz?',
  scopes: 'text[]?',
  policy: text<Policy>(),
  maxSurchargeMicro: 'int8',
  invoiceLifetimeMs: count,
  returnUrl: 'text?',
  embedOrigins: 'text?',
  archivedAt: 'timestamptz?',
  isSound: isAsSealed(SEALED_API_KEY),
  isProjectSound: isAsSealed(SEALED_PROJECT, { isOfOther: true }),
} as const;

const soundOf = (rows: readonly Row<typeof keyColumns>[]) =>
  rows
    .filter((key) => key.isSound && key.isProjectSound)
    .map(({ returnUrl, embedOrigins, ...key }) => ({ ...key, returnOrigins: shopOrigins(returnUrl, embedOrigins) }));

const SELECT = `select k.id, k.project_id, k.name, k.network, k.secret_sha256, k.allowed_cidrs, k.expires_at, k.scopes, p.policy, p.max_surcharge_micro,
     p.invoice_lifetime_ms, p.return_url, p.embed_origins, p.archived_at, ${sealColumn(SEALED_API_KEY, 'k.')} as is_sound, ${sealColumn(SEALED_PROJECT, 'p.')} as is_project_sound
   from api_keys k join projects p on p.id = k.project_id`;

/**
 * Returns a key that is neither revoked nor expired, with the project settings that a request needs. Ignores a row that was inserted
 * without the master key.
 */
export const findValidApiKey = answerOf(
  'api-key-authenticate',
  keyColumns,
  `${SELECT} where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $2)`,
  (id: string, now: UnixMs) => [id, new Date(now)],
  (rows) => soundOf(rows)[0] ?? null,
);

/** Returns the valid keys that were used or created most recently, unless that was too long ago. */
export const findNewestApiKeys = answerOf(
  'api-key-newest',
  keyColumns,
  `${SELECT} where k.revoked_at is null and (k.expires_at is null or k.expires_at > $1)
     and extract(epoch from now() - k.created_at) < $2::float8
   order by coalesce(k.last_used_at, k.created_at) desc limit $3`,
  (now: UnixMs, { oldestSeconds, limit }: { oldestSeconds: number; limit: number }) => [
    new Date(now),
    oldestSeconds,
    limit,
  ],
  soundOf,
);

/** Records when keys were last used, to the minute. */
export const touchApiKeys = commandOf(
  'api-key-touch',
  `update api_keys set last_used_at = $2
   where id = any($1::uuid[]) and (last_used_at is null or last_used_at < $2::timestamptz - interval '1 minute')`,
  (ids: string[], now: UnixMs) => [ids, new Date(now)],
);

export const listApiKeys = rowsOf(
  'api-key-list',
  listed,
  `select ${listColumns(listed)} from api_keys where project_id = $1 order by created_at, id limit 1000`,
  (projectId: string) => [projectId],
);

/**
 * Revokes a key permanently. Without its seal the key stays invalid, even if `revoked_at` is reset. `isNew` means that it hadn't been
 * revoked before. Returns `null` if the id is unknown.
 */
export const revokeApiKey = rowOf(
  'api-key-revoke',
  { projectId: 'uuid', name: 'text', isNew: 'bool' },
  `update api_keys k set revoked_at = coalesce(k.revoked_at, $2), mac = null
   from (select id, revoked_at from api_keys where id = $1 for update) before where k.id = before.id
   returning k.project_id, k.name, before.revoked_at is null as is_new`,
  (id: string, now: UnixMs) => [id, new Date(now)],
);
