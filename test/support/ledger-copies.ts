import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { type Database, openDatabase } from '../../src/core/store/db/database.ts';
import { type BackupMade, type Protection, writeBackup } from '../../src/faces/operator/backup/create-backup.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

/** `db` and `client` connect as the owner. */
export type LedgerDatabase = TestDatabase & { db: Database; client: pg.Client };

/** Creates a migrated, empty database for one test, with a plain connection besides ours. */
export async function newLedger(): Promise<LedgerDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const client = new pg.Client(database.owner);
  client.on('error', () => undefined); // A test may end the connection.
  await client.connect();
  const options = { poolSize: 4, applicationName: 'test', onError: () => undefined };
  const db = openDatabase({ ...options, connection: database.owner });
  onTestFinished(async () => {
    await db.close();
    await client.end();
  });
  return { ...database, db, client };
}

/** Creates a directory for one test. */
export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-backup-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes a backup of a test's database as the service's user. */
export async function backUp({ connection }: TestDatabase, path: string, protection?: Protection): Promise<BackupMade> {
  const more = protection === undefined ? {} : { protection };
  return writeBackup({ connection, path, release: 'test', now: unixMs(Date.now()), ...more });
}
