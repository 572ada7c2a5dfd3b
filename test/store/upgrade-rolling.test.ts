import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { migrate, readMigrations } from '../../src/core/store/db/migrate.ts';
import { createTestDatabase } from '../support/postgres.ts';

/** A release's statements to PostgreSQL, recorded by upgrade-record.ts in a checkout of that release. */
type Recorded = {
  /** The number of its newest migration. */
  version: number;
  statements: { name: string; text: string; columns: Record<string, string> }[];
  trace: { name: string; values: (string | number | boolean | null | { hex: string } | unknown[])[] }[];
};

const folder = new URL('./', import.meta.url);
const recorded = readdirSync(folder)
  .filter((name) => /^upgrade-release-\d+\.json\.gz$/.test(name))
  .map((name) => JSON.parse(gunzipSync(readFileSync(new URL(name, folder))).toString()) as Recorded);
const migrations = await readMigrations();

/** Creates an empty database with the migrations up to `version`. */
async function databaseOf(version: number): Promise<pg.Client> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const client = new pg.Client(database.owner);
  await client.connect();
  onTestFinished(() => client.end());
  if (version === migrations.length) return client;
  await client.query('drop schema public cascade; create schema public');
  const options = { poolSize: 1, applicationName: 'upgrade', onError: () => undefined };
  const db = openDatabase({ ...options, connection: database.owner });
  await migrate(db, { migrations: migrations.slice(0, version) });
  await db.close();
  return client;
}

/** Returns a statement's parameter and column types, as PostgreSQL reports them. */
async function describeStatement(client: pg.Client, text: string): Promise<unknown> {
  await client.query(`prepare described as ${text}`);
  const { rows } = await client.query(
    `select parameter_types::text[] as takes, result_types::text[] as gives from pg_prepared_statements where name = 'described'`,
  );
  await client.query('deallocate described');
  return rows[0];
}

/** The last migration of the previous release. Raise it with the first migration after a release. */
const FORMER = 8;

test('what the former release said is recorded here: see upgrade-record.ts', () => {
  expect(recorded.map(({ version }) => version)).toContain(FORMER);
});

describe.each(recorded)(
  'processes of the release that ended with migration $version go on during an upgrade',
  (release) => {
    test('every statement of theirs is understood as before', async () => {
      const [before, now] = [await databaseOf(release.version), await databaseOf(migrations.length)];
      for (const { name, text } of release.statements) {
        expect(await describeStatement(now, text), name).toEqual(await describeStatement(before, text));
      }
    });

    test('what they did in a run does the same: rows for rows, in the order in which they did it', async () => {
      const texts = new Map(release.statements.map(({ name, text }) => [name, text]));
      const run = async (client: pg.Client) => {
        const counts: string[] = [];
        // The trace doesn't contain the ends of transactions; the checks at the end of a transaction apply to all of it.
        await client.query('begin');
        for (const { name, values } of release.trace) {
          // At its next start, the previous release counts the migrations and refuses, which is intended. A new migration adds objects.
          if (name === 'schema-applied' || name === 'schema-objects') continue;
          const bound = values.map((value) => (isBytes(value) ? Buffer.from(value.hex, 'hex') : value));
          const { rowCount } = await client.query({ text: texts.get(name) ?? '', values: bound });
          counts.push(`${name} ${rowCount}`);
        }
        await client.query('commit');
        return counts;
      };
      const [before, now] = [await databaseOf(release.version), await databaseOf(migrations.length)];
      const expected = await run(before);
      expect(await run(now)).toEqual(expected);
      const sums = `select status, count(*)::int, sum(payable_micro)::text from invoices group by 1 order by 1`;
      const found = (await now.query(sums)).rows;
      expect(found).toEqual((await before.query(sums)).rows);
      expect(found).toContainEqual(expect.objectContaining({ status: 'PAID', count: 1 }));
    });
  },
);

function isBytes(value: unknown): value is { hex: string } {
  return typeof value === 'object' && value !== null && 'hex' in value;
}
