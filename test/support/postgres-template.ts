import pg from 'pg';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { migrate, readMigrations } from '../../src/core/store/db/migrate.ts';
import { grantRuntimeRole } from '../../src/core/store/db/runtime-role.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';

export const TEMPLATE = 'quittance_template';

/** Creates the database that all test databases are copied from, with the grants of the service's role. */
export async function createTemplate(owner: PostgresConnection, runtime: PostgresConnection): Promise<void> {
  await withClient(owner, async (client) => {
    // These iterations make a stolen password hash slow to guess, but would cost each of about a thousand connections three milliseconds.
    const [{ has: canChoose } = {}] = (
      await client.query<{ has: boolean }>(`select current_setting('scram_iterations', true) is not null as has`)
    ).rows;
    if (canChoose === true) await client.query('set scram_iterations = 1');
    for (const { user, password } of [owner, runtime]) await client.query(`alter role ${user} password '${password}'`);
    await client.query(`create database ${TEMPLATE}`);
  });
  await migrateTemplate({ ...owner, database: TEMPLATE });
  // Blocks further connections, because a database with a connection can't be copied.
  await withClient(owner, (client) => client.query(`alter database ${TEMPLATE} with allow_connections false`));
}

async function migrateTemplate(connection: PostgresConnection): Promise<void> {
  const options = { connection, poolSize: 1, applicationName: 'test template' };
  const database = openDatabase({
    ...options,
    onError: (error) => {
      throw error;
    },
  });
  try {
    // The migrations may differ from the record until it's regenerated: test/store/schema-record.ts.
    await migrate(database, { migrations: await readMigrations() });
    await database.transaction(grantRuntimeRole);
  } finally {
    await database.close();
  }
}

/** Runs work on a new connection. */
export async function withClient<T>(
  connection: PostgresConnection,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
