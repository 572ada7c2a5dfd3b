import { createHash, randomBytes } from 'node:crypto';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import type { Client } from 'pg';
import { formatApiKey } from '../../src/core/domain/api-key.ts';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import type { Policy } from '../../src/core/domain/policy.ts';
import { type Database, openDatabase } from '../../src/core/store/db/database.ts';
import { migrate } from '../../src/core/store/db/migrate.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { insertAddresses } from '../../src/core/store/ledger/addresses.ts';
import { insertProject } from '../../src/core/store/ledger/projects.ts';
import { insertWebhookEndpoint } from '../../src/core/store/outbox/webhook-endpoints.ts';
import { insertApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { onServer } from '../databases.ts';
import { benchSeals } from '../master-key.ts';
import { MAX_SURCHARGE_MICRO } from '../prices.ts';

/** A project with a key, a webhook endpoint and addresses. `addressIds` are in the order of their positions. */
export type GrowthShop = { projectId: string; keyId: string; policy: Policy; addressIds: string[] };

/** The default number of connections in the service's pool, plus one for an observer. */
const POOL_SIZE = 17;

/** Creates a new database with the schema, and opens it as the service does. */
export async function createDatabase(
  server: PostgresConnection,
  name: string,
): Promise<{ db: Database; connection: PostgresConnection }> {
  await onServer(server, (client) => client.query(`create database ${name}`));
  const connection = { ...server, database: name };
  const db = openPool(connection);
  await migrate(db);
  return { db, connection };
}

export function openPool(connection: PostgresConnection): Database {
  // Idle connections may end with the server; statements report their own errors.
  return openDatabase({
    connection,
    poolSize: POOL_SIZE,
    applicationName: 'bench',
    onError: () => {},
    seals: benchSeals(),
  });
}

export async function createGrowthShop(db: Database, policy: Policy, addressCount: number): Promise<GrowthShop> {
  const [projectId, keyId] = [uuid(), uuid()];
  const project = {
    id: projectId,
    name: 'Benchmark',
    network: 'devnet',
    policy,
    invoiceLifetimeMs: 30 * 60_000,
  } as const;
  const limits = { maxSurchargeMicro: MAX_SURCHARGE_MICRO, maxUnpaid: null, maxUnpaidPerMinute: null };
  await insertProject(db, { ...project, ...limits });
  const secretSha256 = createHash('sha256')
    .update(formatApiKey('devnet', keyId, randomBytes(32)))
    .digest();
  await insertApiKey(db, { id: keyId, projectId, name: 'bench', secretSha256, allowedCidrs: null, expiresAt: null });
  const endpoint = { id: uuid(), projectId, url: 'https://shop.example/webhooks' };
  await insertWebhookEndpoint(db, endpoint);
  const entries = Array.from({ length: addressCount }, () => {
    const account = randomBytes(20).toString('hex') as AccountHex;
    return { id: uuid(), account, address: accountToAddress(account), index: null };
  });
  await insertAddresses(db, { projectId, policy: null, accountKeyId: null, entries });
  return { projectId, keyId, policy, addressIds: entries.map(({ id }) => id) };
}

function uuid(): string {
  return uuidV7(Date.now(), randomBytes(10));
}

const SELECT_INDEXES = `
  select x.indexrelid::regclass::text as name, pg_get_indexdef(x.indexrelid) as definition, c.conname as constraint,
    pg_get_constraintdef(c.oid) as promise, x.indrelid::regclass::text as table
  from pg_index x left join pg_constraint c on c.conindid = x.indexrelid and c.contype in ('u', 'p')
  where x.indrelid in ('invoices'::regclass, 'transfers'::regclass)
    and not exists (select from pg_constraint f where f.contype = 'f' and f.conindid = x.indexrelid)`;

/**
 * Fills tables with `work` while they have no indexes. Creates the indexes afterwards from sorted keys, except those that a foreign key
 * needs. Disables triggers and foreign keys, because the rows satisfy them by construction.
 */
export async function fillQuickly(
  connection: PostgresConnection,
  work: (client: Client) => Promise<void>,
  onProgress: (text: string) => void = () => {},
): Promise<void> {
  await onServer(connection, async (client) => {
    await client.query(
      "set synchronous_commit = 'off'; set maintenance_work_mem = '1GB'; set session_replication_role = 'replica'",
    );
    const { rows: indexes } = await client.query<
      Record<'name' | 'definition' | 'table', string> & Record<'constraint' | 'promise', string | null>
    >(SELECT_INDEXES);
    for (const { name, constraint, table } of indexes) {
      await client.query(
        constraint === null ? `drop index ${name}` : `alter table ${table} drop constraint ${constraint}`,
      );
    }
    await work(client);
    for (const { name, definition, constraint, promise, table } of indexes) {
      onProgress(`making ${name}`);
      await client.query(
        constraint === null ? definition : `alter table ${table} add constraint ${constraint} ${promise}`,
      );
    }
    await client.query("set session_replication_role = 'origin'");
    await client.query('vacuum analyze');
    await client.query('checkpoint');
  });
}
