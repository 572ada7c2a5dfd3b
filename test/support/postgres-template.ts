import pg from 'pg';
import { openDatabase } from '../../src/store/database.ts';
import type { PostgresConnection } from '../../src/store/embedded-connection.ts';
import { migrate } from '../../src/store/migrate.ts';

export const TEMPLATE = 'quittance_template';

/** Makes the database that every test database is a copy of. */
export async function createTemplate(connection: PostgresConnection): Promise<void> {
  await withClient(connection, async (client) => {
    // Each of some thousand connections would spend three milliseconds on what makes a stolen hash of the password slow to guess.
    await client.query('set scram_iterations = 1');
    await client.query(`alter role ${connection.user} password '${connection.password}'`);
    await client.query(`create database ${TEMPLATE}`);
  });
  await migrateTemplate({ ...connection, database: TEMPLATE });
  // Nobody may connect any more: a database with a connection cannot be copied.
  await withClient(connection, (client) => client.query(`alter database ${TEMPLATE} with allow_connections false`));
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
    await migrate(database);
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
