import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { type Migration, migrate, readMigrations } from '../../src/store/migrate.ts';
import { fillLedger, readColumns, readRows } from '../support/full-ledger.ts';
import { createTestDatabase } from '../support/postgres.ts';

const migrations = await readMigrations();

/** A database with the migrations up to `version`, filled as by a service of that release. */
async function databaseOf(version: number): Promise<{ db: Database; client: pg.Client }> {
  const database = await createTestDatabase();
  const client = new pg.Client(database.connection);
  await client.connect();
  const options = { poolSize: 2, applicationName: 'upgrade', onError: () => undefined };
  const db = openDatabase({ ...options, connection: database.connection });
  onTestFinished(async () => {
    await db.close();
    await client.end();
    await database.drop();
  });
  await client.query('drop schema public cascade; create schema public');
  await migrate(db, { migrations: migrations.slice(0, version) });
  await fillLedger(client, version);
  return { db, client };
}

/** What a migration fills or empties on purpose: column by column, as the release notes say. */
const CHANGED: Record<string, string[]> = { schema_migrations: ['version', 'name', 'sha256', 'applied_at'] };

/** Written by a service at its start. */
const BY_SERVICES = 'ledger_identity';

describe('the data of each release', () => {
  const releases = migrations.slice(0, -1).map(({ version, name }) => [version, name] as const);

  test.each(releases)(
    'that ended with migration %i (%s) are the same after an upgrade to this one',
    async (version) => {
      const { db, client } = await databaseOf(version);
      const before = await readColumns(client);
      const kept = new Map([...before].filter(([table]) => CHANGED[table] === undefined));
      const rows = await readRows(client, kept);
      for (const [table, found] of Object.entries(rows)) {
        if (table !== BY_SERVICES) expect(found, table).not.toEqual([]);
      }

      expect(await migrate(db)).toEqual(migrations.slice(version).map(({ name }) => name));

      expect(await readRows(client, kept)).toEqual(rows);
      expect(await refused(client, 'update invoices set payable_micro = payable_micro + 1')).toMatch(/never changed/);
      expect(await refused(client, 'delete from transfers')).toMatch(/never deleted/);
      expect(await refused(client, "update invoices set status = 'PENDING', paid_transfer_id = null")).toMatch(
        /never left/,
      );
    },
  );

  test('has rows of every table, so that nothing is missing from these tests', async () => {
    const { client } = await databaseOf(migrations.length);
    const columns = await readColumns(client);
    columns.delete(BY_SERVICES);
    for (const [table, rows] of Object.entries(await readRows(client, columns))) expect(rows, table).not.toEqual([]);
  });
});

async function refused(client: pg.Client, text: string): Promise<string> {
  return client.query(text).then(
    () => 'done',
    (error: Error) => error.message,
  );
}

describe('a database that is upgraded while the former release runs on it', () => {
  test('events that existed before get positions in the order of their times, and the next one follows', async () => {
    const { db, client } = await databaseOf(3);
    await migrate(db);
    const { rows } = await client.query(
      'select position::int, body is not null as kept from events order by created_at',
    );
    expect(rows.map(({ position }) => position)).toEqual([1, 2, 3, 4, 5]);
    expect((await client.query('select last_position::int as last from event_streams')).rows).toEqual([{ last: 5 }]);
  });

  test('a migration that fails leaves the schema and the data of before', async () => {
    const { db, client } = await databaseOf(migrations.length - 1);
    const before = await readRows(client, await readColumns(client));
    const broken: Migration = {
      version: migrations.length + 1,
      name: 'broken.sql',
      text: 'alter table invoices add column more text; select 1 / 0',
      sha256: 'x',
    };
    await expect(migrate(db, { migrations: [...migrations, broken] })).rejects.toThrow(/division by zero/);
    expect(await readRows(client, await readColumns(client))).toEqual(before);
  });
});
