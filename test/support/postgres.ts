import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, inject, onTestFinished } from 'vitest';
import { type Database, openDatabase } from '../../src/core/store/db/database.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { TEMPLATE, withClient } from './postgres-template.ts';

/**
 * The migrated, empty database of one test file. `connection` is the service's, which owns nothing and deletes nothing; `owner` is for
 * changes that a test makes behind the program's back. `drop` closes remaining connections.
 */
export type TestDatabase = {
  connectionString: string;
  connection: PostgresConnection;
  ownerString: string;
  owner: PostgresConnection;
  drop(): Promise<void>;
};

/**
 * Opens a pool on a test's database, which may be dropped while it's open: the service's, or with `{ connection: database.owner }` the
 * owner's.
 */
export function openTestDatabase({ connection }: Pick<TestDatabase, 'connection'>, poolSize = 1): Database {
  return openDatabase({ connection, poolSize, applicationName: 'test', onError: () => undefined });
}

/** `db` is a pool, and `client` a connection of the owner. */
type OwnDatabase = { database: TestDatabase; db: Database; client: pg.Client };

/** Creates a database with a pool of the service for all tests of a file, at whose top it must be called. */
export const databaseOfFile = (poolSize?: number): Promise<OwnDatabase> => createUntil(afterAll, poolSize);

/** Creates a database with a pool of the service or the owner for the current test. */
export const databaseOfTest = (poolSize?: number, user?: 'service' | 'owner'): Promise<OwnDatabase> =>
  createUntil(onTestFinished, poolSize, user);

async function createUntil(
  end: (drop: () => Promise<void>) => void,
  poolSize?: number,
  user: 'service' | 'owner' = 'service',
): Promise<OwnDatabase> {
  const database = await createTestDatabase();
  const db = openTestDatabase({ connection: user === 'owner' ? database.owner : database.connection }, poolSize);
  const client = new pg.Client(database.owner);
  end(async () => {
    try {
      await db.close();
      await client.end();
    } finally {
      await database.drop();
    }
  });
  await client.connect();
  return { database, db, client };
}

/** Creates it on the run's server, or on another server that has the template. */
export async function createTestDatabase(
  { owner: server, connection: { user, password } } = {
    ...{ owner: inject('postgres'), connection: inject('runtimeUser') },
  },
): Promise<TestDatabase> {
  const database = `test_${randomUUID().replaceAll('-', '')}`;
  await withClient(server, async (client) => {
    await retryWhileBusy(() => client.query(`create database ${database} template ${TEMPLATE} strategy file_copy`));
    // Grants on the template database itself aren't copied.
    await client.query(`revoke temporary on database ${database} from public`);
  });
  const owner = { ...server, database };
  const connection = { ...owner, user, password };
  return {
    connectionString: connectionString(connection),
    connection,
    ownerString: connectionString(owner),
    owner,
    async drop() {
      await withClient(server, (client) => client.query(`drop database if exists ${database} with (force)`));
    },
  };
}

/** A URL has the directory of a Unix socket as its host: postgres://user:password@%2Ftmp%2Fquittance-a1B2c3:5432/database */
function connectionString({ host, port, user, password, database }: PostgresConnection): string {
  return `postgres://${user}:${encodeURIComponent(password)}@${encodeURIComponent(host)}:${port}/${database}`;
}

/** "source database is being accessed by other users" (object_in_use): a background worker is briefly connected to the template. */
const OBJECT_IN_USE = '55006';
const MAX_ATTEMPTS = 100;

async function retryWhileBusy(create: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await create();
      return;
    } catch (error) {
      const isBusy = error instanceof Error && 'code' in error && error.code === OBJECT_IN_USE;
      if (!isBusy || attempt === MAX_ATTEMPTS) throw error;
      await delay(50);
    }
  }
}
