import { NIL_UUID } from '../../domain/ids.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Encrypted } from '../../runtime/key-ring.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, changesOf, commandOf, rowsOf } from '../db/rows-of.ts';
import { count, listColumns, maybe, type Row, text } from '../db/statement.ts';

const columns = {
  id: 'uuid',
  endpointId: 'uuid',
  masterKeyId: 'text',
  sealed: 'bytea',
  createdAt: 'timestamptz',
  endsAt: 'timestamptz?',
} as const;

const COLUMNS = listColumns(columns);

/** An encrypted secret. `endsAt` is null for an endpoint's current secret. */
export type StoredSecret = Row<typeof columns>;

/** Stores an endpoint's current secret. If there was another current secret, its end must already be set. */
export const insertWebhookSecret = commandOf(
  'webhook-secret-insert',
  `insert into webhook_secrets (id, project_id, endpoint_id, master_key_id, sealed, created_at)
   select $1, w.project_id, w.id, $3, $4, $5 from webhook_endpoints w where w.id = $2`,
  ({ id, endpointId, masterKeyId, sealed, createdAt }: Omit<StoredSecret, 'endsAt'>) => [
    id,
    endpointId,
    masterKeyId,
    sealed,
    new Date(createdAt),
  ],
);

/**
 * Returns the secrets that sign the endpoints' webhooks at `now`: for each endpoint the current one, followed by those that have an end.
 */
export const findActiveSecrets = rowsOf(
  'webhook-secrets-active',
  columns,
  `select ${COLUMNS} from webhook_secrets
   where endpoint_id = any($1::uuid[]) and (ends_at is null or ends_at > $2)
   order by endpoint_id, ends_at desc nulls first limit 10000`,
  (endpointIds: readonly string[], now: UnixMs) => [endpointIds, new Date(now)],
);

/** Returns the current secrets of the next 1,000 enabled endpoints after the id `after`. `secret` is `null` if an endpoint has none. */
export const findCurrentSecrets = rowsOf(
  'webhook-secrets-current',
  { endpointId: 'uuid', projectId: 'uuid', network: text<Network>(), secret: maybe(columns) },
  `select w.id as endpoint_id, w.project_id, w.network, s.id as secret_id, s.endpoint_id as secret_endpoint_id,
     s.master_key_id as secret_master_key_id, s.sealed as secret_sealed, s.created_at as secret_created_at, s.ends_at as secret_ends_at
   from webhook_endpoints w left join webhook_secrets s on s.endpoint_id = w.id and s.ends_at is null
   where w.disabled_at is null and w.id > $1 order by w.id limit 1000`,
  (after: string) => [after],
);

/** Returns an endpoint's newest 16 secrets, including expired ones, because a receiver may still use one of them. */
export const findNewestSecrets = rowsOf(
  'webhook-secrets-newest',
  columns,
  `select ${COLUMNS} from webhook_secrets where endpoint_id = $1 order by created_at desc, id desc limit 16`,
  (endpointId: string) => [endpointId],
);

/** Sets an earlier end for all secrets of an endpoint that would otherwise be used for longer. Returns how many there were. */
export const endWebhookSecrets = changesOf(
  'webhook-secrets-end',
  `update webhook_secrets set ends_at = $2
   where endpoint_id = $1 and (ends_at is null or ends_at > $2)`,
  (endpointId: string, endsAt: UnixMs) => [endpointId, new Date(endsAt)],
);

/** Returns up to 500 secrets after the id `after` that are encrypted with another master key, locked until the transaction ends. */
export const lockSecretsUnderOtherKeys = rowsOf(
  'webhook-secrets-under-other-keys',
  columns,
  `select ${COLUMNS} from webhook_secrets
   where master_key_id <> $1 and id > $2 order by id limit 500 for update`,
  (keyId: string, after: string) => [keyId, after],
);

/** Replaces a stored secret with the same secret, encrypted with another key. */
export const reencryptWebhookSecret = commandOf(
  'webhook-secret-reseal',
  'update webhook_secrets set master_key_id = $2, sealed = $3 where id = $1',
  (id: string, { masterKeyId, sealed }: Encrypted) => [id, masterKeyId, sealed],
);

/** For each master key, counts the secrets that are encrypted with it, and how many of these are used for signing at `now`. */
export const countSecretsByKey = answerOf(
  'webhook-secrets-by-key',
  { masterKeyId: 'text', total: count, signing: count },
  `select master_key_id, count(*) as total, count(*) filter (where ends_at is null or ends_at > $1) as signing
   from webhook_secrets group by master_key_id order by master_key_id limit 1000`,
  (now: UnixMs) => [new Date(now)],
  (rows) => new Map(rows.map(({ masterKeyId, ...counts }) => [masterKeyId, counts])),
);

/**
 * Returns up to a thousand secrets that are used for signing at `now`, belong to enabled endpoints, and aren't encrypted with any of these
 * master keys.
 */
export const findSecretsUnderOtherKeys = rowsOf(
  'webhook-secrets-unopenable',
  { endpointId: 'uuid', masterKeyId: 'text' },
  `select s.endpoint_id, s.master_key_id from webhook_secrets s join webhook_endpoints w on w.id = s.endpoint_id
   where s.master_key_id <> all($1::text[]) and (s.ends_at is null or s.ends_at > $2) and w.disabled_at is null
   order by s.created_at limit 1000`,
  (keyIds: readonly string[], now: UnixMs) => [keyIds, new Date(now)],
);

/** The number of the advisory lock for encrypting secrets. */
const ENCRYPTION = 5_140_912_377_401_882_913n;

/** Prevents master key rotations until the transaction ends. Several transactions can encrypt secrets at the same time. */
export const joinEncryption = commandOf(
  'webhook-sealing-join',
  `select from pg_advisory_xact_lock_shared(${ENCRYPTION})`,
);

/** Waits for transactions that are encrypting secrets, and keeps new ones waiting until this transaction ends. */
export const stopEncryption = commandOf('webhook-sealing-stop', `select from pg_advisory_xact_lock(${ENCRYPTION})`);

/**
 * Encrypts rows again in batches, each in a transaction. `lock` returns the next rows after an id. `reencryptRow` returns whether the row
 * could be decrypted, and `lost` holds the rows that couldn't.
 */
export async function reencryptInBatches<Locked extends { id: string }>(
  inTransaction: <Output>(work: (tx: Sql) => Promise<Output>) => Promise<Output>,
  lock: (tx: Sql, after: string) => Promise<readonly Locked[]>,
  reencryptRow: (tx: Sql, row: Locked) => Promise<boolean>,
): Promise<{ resealed: number; lost: Locked[] }> {
  const done = { resealed: 0, lost: [] as Locked[] };
  for (let after: string | null = NIL_UUID; after !== null; ) {
    const from: string = after;
    const { rows, lost } = await inTransaction(async (tx) => {
      const [rows, lost] = [await lock(tx, from), [] as Locked[]];
      for (const row of rows) if (!(await reencryptRow(tx, row))) lost.push(row);
      return { rows, lost };
    });
    done.resealed += rows.length - lost.length;
    done.lost.push(...lost);
    after = rows.at(-1)?.id ?? null;
  }
  return done;
}

/**
 * Returns up to 500 endpoints whose secret was stored as plain text by a release before 0004. In later releases, a constraint prevents
 * this.
 */
export const lockPlainSecrets = answerOf(
  'webhook-secrets-plain',
  { endpointId: 'uuid', secret: 'text?' },
  `select id as endpoint_id, secret from webhook_endpoints where secret is not null order by id limit 500 for update`,
  () => [],
  (rows) => rows.map(({ endpointId, secret }) => ({ endpointId, secret: secret ?? '' })),
);

/** Erases the plain text of an endpoint's secret. */
export const clearPlainSecret = commandOf(
  'webhook-secret-clear-plain',
  'update webhook_endpoints set secret = null where id = $1',
  (endpointId: string) => [endpointId],
);
