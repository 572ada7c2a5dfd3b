import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { count, listColumns, maybe, type Row, statement, text } from '../db/statement.ts';

const columns = {
  id: 'uuid',
  endpointId: 'uuid',
  masterKeyId: 'text',
  sealed: 'bytea',
  createdAt: 'timestamptz',
  endsAt: 'timestamptz?',
} as const;

const COLUMNS = listColumns(columns);

/** A sealed secret. `endsAt` is null for the current one of its endpoint. */
export type StoredSecret = Row<typeof columns>;

const insert = statement(
  'webhook-secret-insert',
  {},
  `insert into webhook_secrets (id, project_id, endpoint_id, master_key_id, sealed, created_at)
   select $1, w.project_id, w.id, $3, $4, $5 from webhook_endpoints w where w.id = $2`,
);

/** Stores the current secret of an endpoint. A current one that is there must have been given its end before. */
export async function insertWebhookSecret(
  tx: Sql,
  secret: { id: string; endpointId: string; keyId: string; sealed: Buffer; createdAt: UnixMs },
): Promise<void> {
  const { id, endpointId, keyId, sealed, createdAt } = secret;
  await tx.run(insert, [id, endpointId, keyId, sealed, new Date(createdAt)]);
}

const selectActive = statement(
  'webhook-secrets-active',
  columns,
  `select ${COLUMNS} from webhook_secrets
   where endpoint_id = any($1::uuid[]) and (ends_at is null or ends_at > $2)
   order by endpoint_id, ends_at desc nulls first limit 10000`,
);

/** The secrets with which the endpoints' webhooks are signed at `now`: of each endpoint the current one, then those that end. */
export async function findActiveSecrets(db: Sql, endpointIds: readonly string[], now: UnixMs): Promise<StoredSecret[]> {
  return db.run(selectActive, [endpointIds, new Date(now)]);
}

const selectCurrent = statement(
  'webhook-secrets-current',
  { endpointId: 'uuid', projectId: 'uuid', network: text<Network>(), secret: maybe(columns) },
  `select w.id as endpoint_id, w.project_id, w.network, s.id as secret_id, s.endpoint_id as secret_endpoint_id,
     s.master_key_id as secret_master_key_id, s.sealed as secret_sealed, s.created_at as secret_created_at, s.ends_at as secret_ends_at
   from webhook_endpoints w left join webhook_secrets s on s.endpoint_id = w.id and s.ends_at is null
   where w.disabled_at is null and w.id > $1 order by w.id limit 1000`,
);

/** The secrets that 1,000 enabled endpoints behind the id `after` sign with now; `secret` is `null` where there is none. */
export function findCurrentSecrets(db: Sql, after: string) {
  return db.run(selectCurrent, [after]);
}

const selectNewest = statement(
  'webhook-secrets-newest',
  columns,
  `select ${COLUMNS} from webhook_secrets where endpoint_id = $1 order by created_at desc, id desc limit 16`,
);

/** The newest 16 secrets of an endpoint, those that have ended too: for a receiver may still hold one of them. */
export async function findNewestSecrets(db: Sql, endpointId: string): Promise<StoredSecret[]> {
  return db.run(selectNewest, [endpointId]);
}

const end = statement(
  'webhook-secrets-end',
  { id: 'uuid' },
  `update webhook_secrets set ends_at = $2
   where endpoint_id = $1 and (ends_at is null or ends_at > $2) returning id`,
);

/** Gives every secret of an endpoint that would sign longer its end. Returns how many there were. */
export async function endWebhookSecrets(tx: Sql, endpointId: string, endsAt: UnixMs): Promise<number> {
  return (await tx.run(end, [endpointId, new Date(endsAt)])).length;
}

const selectUnderOtherKeys = statement(
  'webhook-secrets-under-other-keys',
  columns,
  `select ${COLUMNS} from webhook_secrets
   where master_key_id <> $1 and id > $2 order by id limit 500 for update`,
);

/** Up to 500 secrets behind the id `after` that another master key seals, locked until the transaction ends. */
export async function lockSecretsUnderOtherKeys(tx: Sql, keyId: string, after: string): Promise<StoredSecret[]> {
  return tx.run(selectUnderOtherKeys, [keyId, after]);
}

const updateSealed = statement(
  'webhook-secret-reseal',
  {},
  'update webhook_secrets set master_key_id = $2, sealed = $3 where id = $1',
);

/** Replaces what is stored of a secret by the same secret sealed under another key. */
export async function reencryptWebhookSecret(tx: Sql, id: string, keyId: string, sealed: Buffer): Promise<void> {
  await tx.run(updateSealed, [id, keyId, sealed]);
}

const countByKey = statement(
  'webhook-secrets-by-key',
  { masterKeyId: 'text', total: count, signing: count },
  `select master_key_id, count(*) as total, count(*) filter (where ends_at is null or ends_at > $1) as signing
   from webhook_secrets group by master_key_id order by master_key_id limit 1000`,
);

/** How many secrets each master key seals, by the id of the key: all, and those that still sign at `now`. */
export async function countSecretsByKey(
  db: Sql,
  now: UnixMs,
): Promise<Map<string, { total: number; signing: number }>> {
  const rows = await db.run(countByKey, [new Date(now)]);
  return new Map(rows.map(({ masterKeyId, ...counts }) => [masterKeyId, counts]));
}

const selectUnopenable = statement(
  'webhook-secrets-unopenable',
  { endpointId: 'uuid', masterKeyId: 'text' },
  `select s.endpoint_id, s.master_key_id from webhook_secrets s join webhook_endpoints w on w.id = s.endpoint_id
   where s.master_key_id <> all($1::text[]) and (s.ends_at is null or s.ends_at > $2) and w.disabled_at is null
   order by s.created_at limit 1000`,
);

/** The secrets that sign at `now`, of enabled endpoints, and are sealed by none of these master keys: the first thousand. */
export function findSecretsUnderOtherKeys(db: Sql, keyIds: readonly string[], now: UnixMs) {
  return db.run(selectUnopenable, [keyIds, new Date(now)]);
}

/** Advisory locks have numbers; this one stands for the sealing of secrets. */
const ENCRYPTION = 5_140_912_377_401_882_913n;

const lockShared = statement(
  'webhook-sealing-join',
  { isLocked: 'bool' },
  `select pg_advisory_xact_lock_shared(${ENCRYPTION}) is not null as is_locked`,
);

/** Until the transaction ends, nobody counts on it that all secrets are sealed. Others may seal at the same time. */
export async function joinEncryption(tx: Sql): Promise<void> {
  await tx.run(lockShared, []);
}

const lockAlone = statement(
  'webhook-sealing-stop',
  { isLocked: 'bool' },
  `select pg_advisory_xact_lock(${ENCRYPTION}) is not null as is_locked`,
);

/** Waits for those who seal a secret; until the transaction ends, nobody else does. */
export async function stopEncryption(tx: Sql): Promise<void> {
  await tx.run(lockAlone, []);
}

const selectPlain = statement(
  'webhook-secrets-plain',
  { endpointId: 'uuid', secret: 'text?' },
  `select id as endpoint_id, secret from webhook_endpoints where secret is not null order by id limit 500 for update`,
);

/** Up to 500 endpoints whose secret a release before 0004 stored as plain text. Later ones can have none, by a constraint. */
export async function lockPlainSecrets(tx: Sql): Promise<{ endpointId: string; secret: string }[]> {
  const rows = await tx.run(selectPlain, []);
  return rows.map(({ endpointId, secret }) => ({ endpointId, secret: secret ?? '' }));
}

const clearPlain = statement(
  'webhook-secret-clear-plain',
  {},
  'update webhook_endpoints set secret = null where id = $1',
);

/** Forgets the plain text of an endpoint's secret. */
export async function clearPlainSecret(tx: Sql, endpointId: string): Promise<void> {
  await tx.run(clearPlain, [endpointId]);
}
