import pg from 'pg';
import { openDatabase } from '../src/store/db/database.ts';
import { migrate } from '../src/store/db/migrate.ts';
import type { PostgresConnection } from '../src/store/embedded/connection.ts';
import { type Shop, seedInvoices, seedShop } from './seed.ts';

/** `fresh` starts without an invoice; `full` holds as many as the run is told. */
export const TABLES = ['fresh', 'full'] as const;
export type Tables = (typeof TABLES)[number];

export const SIDES = ['service', 'baseline'] as const;
export type Side = (typeof SIDES)[number];

/** Makes a database for each side and each kind of tables, all copies of the same two, in one server. */
export async function createDatabases(
  server: PostgresConnection,
  invoiceCount: number,
): Promise<{ shop: Shop; connectionOf(side: Side, tables: Tables): PostgresConnection }> {
  await onServer(server, (client) => client.query('create database template_fresh'));
  const shop = await migrateAndSeed({ ...server, database: 'template_fresh' });
  // Copying files is faster than logging each page; it takes a checkpoint, after which the copies are as durable as any.
  const copy = (source: string, target: string) =>
    onServer(server, (client) => client.query(`create database ${target} template ${source} strategy file_copy`));
  await copy('template_fresh', 'template_full');
  await onServer({ ...server, database: 'template_full' }, (client) => seedInvoices(client, shop, invoiceCount));
  for (const tables of TABLES) for (const side of SIDES) await copy(`template_${tables}`, `${side}_${tables}`);
  return { shop, connectionOf: (side, tables) => ({ ...server, database: `${side}_${tables}` }) };
}

async function migrateAndSeed(connection: PostgresConnection): Promise<Shop> {
  const onError = (error: Error) => {
    throw error;
  };
  const db = openDatabase({ connection, poolSize: 1, applicationName: 'bench', onError });
  try {
    await migrate(db);
    return await seedShop(db);
  } finally {
    await db.close();
  }
}

/** Runs one piece of work on a connection of its own. */
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
