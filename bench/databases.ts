import pg from 'pg';
import { openDatabase } from '../src/core/store/db/database.ts';
import { migrate } from '../src/core/store/db/migrate.ts';
import type { PostgresConnection } from '../src/core/store/embedded/connection.ts';
import { benchSeals } from './master-key.ts';
import { type Shop, seedInvoices, seedShop } from './seed.ts';

/** `fresh` starts without invoices; `full` has the requested number. */
export const TABLES = ['fresh', 'full'] as const;
export type Tables = (typeof TABLES)[number];

/**
 * `default` is the result of `npm start`: all roles in one process, on a chain that makes a full block every three seconds. `api` is a
 * process with only that role. `bare` is a server without checks on the service's own table. `plain` is the same on a table with only a
 * primary key and two unique indexes.
 */
export const SIDES = ['default', 'api', 'bare', 'plain'] as const;
export type Side = (typeof SIDES)[number];

/** The table in which a side creates and reads. */
export const tableOf = (side: Side) => (side === 'plain' ? 'plain_invoices' : 'invoices');

/** Creates a database for each side and each kind of tables, in one server. All of them are copies of the same two databases. */
export async function createDatabases(
  server: PostgresConnection,
  invoiceCount: number,
): Promise<{ shop: Shop; connectionOf(side: Side, tables: Tables): PostgresConnection }> {
  await onServer(server, (client) => client.query('create database template_fresh'));
  const shop = await migrateAndSeed({ ...server, database: 'template_fresh' });
  // Copying files is faster than logging each page. It makes a checkpoint, after which the copies are as durable as any database.
  const copy = async (source: string, target: string) => {
    await onServer(server, (client) => client.query(`create database ${target} template ${source} strategy file_copy`));
    await onServer({ ...server, database: target }, (client) => client.query(OWN_LEDGER));
  };
  const connectionOf = (side: Side, tables: Tables) => ({ ...server, database: `${side}_${tables}` });
  await copy('template_fresh', 'template_full');
  await onServer({ ...server, database: 'template_full' }, (client) => seedInvoices(client, shop, invoiceCount));
  for (const tables of TABLES) {
    for (const side of SIDES) await copy(`template_${tables}`, `${side}_${tables}`);
    await onServer(connectionOf('plain', tables), makePlainTable);
  }
  return { shop, connectionOf };
}

/** The service would refuse it as a copy. */
const OWN_LEDGER = `set session_replication_role = replica;
  update ledger_identity set database_oid = (select oid from pg_database where datname = current_database())`;

async function makePlainTable(client: pg.Client): Promise<void> {
  await client.query(`create table plain_invoices as select ${PLAIN_COLUMNS} from invoices`);
  await client.query(`alter table plain_invoices alter status set default 'NEW', add primary key (id),
    add unique (project_id, idempotency_key), add unique (project_id, external_id)`);
  await client.query('vacuum analyze plain_invoices');
  await client.query('checkpoint');
}

const PLAIN_COLUMNS = `id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro, status,
  checkout_token, created_at, expires_at`;

async function migrateAndSeed(connection: PostgresConnection): Promise<Shop> {
  const onError = (error: Error) => {
    throw error;
  };
  const db = openDatabase({ connection, poolSize: 1, applicationName: 'bench', onError, seals: benchSeals() });
  try {
    await migrate(db);
    return await seedShop(db);
  } finally {
    await db.close();
  }
}

/** Runs one task on a connection of its own. */
export async function onServer<Result>(
  connection: PostgresConnection,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
