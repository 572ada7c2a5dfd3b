import { shopOrigins } from '../../domain/brand/brand.ts';
import type { Network } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import { answerOf, commandOf } from '../db/rows-of.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_API_KEY, SEALED_PROJECT } from '../db/sealed-tables.ts';
import { count, isAsSealed, type Row, text } from '../db/statement.ts';

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
 * Returns a key that is neither revoked nor expired, together with the project settings that a request needs. Ignores a row that was
 * inserted without the master key.
 */
export const findValidApiKey = answerOf(
  'api-key-authenticate',
  keyColumns,
  `${SELECT} where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $2)`,
  (id: string, now: UnixMs) => [id, new Date(now)],
  (rows) => soundOf(rows)[0] ?? null,
);

/** Returns the valid keys that were used or created most recently. Leaves out keys for which that was too long ago. */
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
