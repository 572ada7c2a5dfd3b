import pg from 'pg';
import { openDatabase } from '../../src/store/db/database.ts';
import { migrate, readMigrations } from '../../src/store/db/migrate.ts';
import { grantRuntimeRole } from '../../src/store/db/runtime-role.ts';
import type { PostgresConnection } from '../../src/store/embedded/connection.ts';

export const TEMPLATE = 'quittance_template';

/** Makes the database that every test database is a copy of, with the grants of the role as which the service works. */
export async function createTemplate(owner: PostgresConnection, runtime: PostgresConnection): Promise<void> {
  await withClient(owner, async (client) => {
    // Each of some thousand connections would spend three milliseconds on what makes a stolen hash of the password slow to guess.
    const [{ has: canChoose } = {}] = (
      await client.query<{ has: boolean }>(`select current_setting('scram_iterations', true) is not null as has`)
    ).rows;
    if (canChoose === true) await client.query('set scram_iterations = 1');
    for (const { user, password } of [owner, runtime]) await client.query(`alter role ${user} password '${password}'`);
    await client.query(`create database ${TEMPLATE}`);
  });
  await migrateTemplate({ ...owner, database: TEMPLATE });
  // Nobody may connect any more: a database with a connection cannot be copied.
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
    // What they make may differ from the record, until that is made anew: test/store/schema-record.ts.
    await migrate(database, { migrations: await readMigrations() });
    await database.transaction(grantRuntimeRole);
  } finally {
    await database.close();
  }
}

/** Runs one piece of work on a connection of its own. */
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
