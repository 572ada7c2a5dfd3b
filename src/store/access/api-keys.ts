import type { Network } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { listColumns, type Row, statement, text } from '../db/statement.ts';

const listed = {
  id: 'uuid',
  name: 'text',
  allowedCidrs: 'text[]?',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz?',
  revokedAt: 'timestamptz?',
  lastUsedAt: 'timestamptz?',
} as const;

export type ListedApiKey = Row<typeof listed>;

const insert = statement(
  'api-key-insert',
  {},
  `insert into api_keys (id, project_id, network, name, secret_sha256, allowed_cidrs, expires_at)
   select $1, p.id, p.network, $3, $4, $5, $6 from projects p where p.id = $2
   on conflict (id) do nothing`,
);

/** Stores a key by its SHA-256; does nothing if a key with this id exists. */
export async function insertApiKey(
  db: Sql,
  key: {
    id: string;
    projectId: string;
    name: string;
    secretSha256: Buffer;
    allowedCidrs: string[] | null;
    expiresAt: UnixMs | null;
  },
): Promise<void> {
  const expiresAt = key.expiresAt === null ? null : new Date(key.expiresAt);
  await db.run(insert, [key.id, key.projectId, key.name, key.secretSha256, key.allowedCidrs, expiresAt]);
}

const keyColumns = {
  id: 'uuid',
  projectId: 'uuid',
  network: text<Network>(),
  secretSha256: 'bytea',
  allowedCidrs: 'text[]?',
  expiresAt: 'timestamptz?',
  policy: text<Policy>(),
  maxSurchargeMicro: 'int8',
} as const;

const SELECT = `select k.id, k.project_id, k.network, k.secret_sha256, k.allowed_cidrs, k.expires_at, p.policy, p.max_surcharge_micro
   from api_keys k join projects p on p.id = k.project_id`;

const select = statement(
  'api-key-authenticate',
  keyColumns,
  `${SELECT} where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $2)`,
);

/** A key that is neither revoked nor expired, with what a request of its project needs to know. */
export async function findValidApiKey(db: Sql, id: string, now: UnixMs) {
  const [row] = await db.run(select, [id, new Date(now)]);
  return row ?? null;
}

const selectNewest = statement(
  'api-key-newest',
  keyColumns,
  `${SELECT} where k.revoked_at is null and (k.expires_at is null or k.expires_at > $1)
     and extract(epoch from now() - k.created_at) < $2::float8
   order by coalesce(k.last_used_at, k.created_at) desc limit $3`,
);

/** The valid keys that were used or made last, of those that are not older. */
export async function findNewestApiKeys(
  db: Sql,
  now: UnixMs,
  { oldestSeconds, limit }: { oldestSeconds: number; limit: number },
) {
  return db.run(selectNewest, [new Date(now), oldestSeconds, limit]);
}

const touch = statement(
  'api-key-touch',
  {},
  `update api_keys set last_used_at = $2
   where id = any($1::uuid[]) and (last_used_at is null or last_used_at < $2::timestamptz - interval '1 minute')`,
);

/** Notes that keys were used, to the minute. */
export async function touchApiKeys(db: Sql, ids: string[], now: UnixMs): Promise<void> {
  await db.run(touch, [ids, new Date(now)]);
}

const list = statement(
  'api-key-list',
  listed,
  `select ${listColumns(listed)} from api_keys where project_id = $1 order by created_at, id limit 1000`,
);

export function listApiKeys(db: Sql, projectId: string): Promise<ListedApiKey[]> {
  return db.run(list, [projectId]);
}

const revoke = statement(
  'api-key-revoke',
  { revokedAt: 'timestamptz?' },
  'update api_keys set revoked_at = coalesce(revoked_at, $2) where id = $1 returning revoked_at',
);

/** Revokes a key at once and for ever; `false` if there is none with this id. */
export async function revokeApiKey(db: Sql, id: string, now: UnixMs): Promise<boolean> {
  return (await db.run(revoke, [id, new Date(now)])).length === 1;
}
