import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allStatements } from '../../src/core/store/db/statement.ts';
import { runSql } from '../contract/sql.ts';
import { importStatements } from '../support/import-statements.ts';
import { databaseOfFile } from '../support/postgres.ts';

/** OIDs of the column types, from PostgreSQL's pg_type catalogue. */
const OIDS: Record<string, number> = {
  uuid: 2950,
  text: 25,
  address: 25,
  'text[]': 1009,
  'int8[]': 1016,
  int4: 23,
  int8: 20,
  numeric: 1700,
  bool: 16,
  bytea: 17,
  timestamptz: 1184,
};

await importStatements();

const { database } = await databaseOfFile();
const client = new pg.Client(database.connectionString) as pg.Client & { connection: pg.Connection };
beforeAll(() => client.connect());
afterAll(() => client.end());

test('every statement has a name of its own', () => {
  const names = allStatements.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThan(40);
  // A statement without a name isn't prepared, but planned each time.
  for (const name of names) expect(name).toMatch(/^[a-z]+(?:-[a-z0-9]+)+$/);
});

test.each(allStatements)(
  '$name is accepted by PostgreSQL and returns the columns that it declares',
  async (statement) => {
    const fields = await describeStatement(statement.text);
    const declared = Object.entries(statement.columns).map(([name, type]) => ({
      name,
      oid: OIDS[type.replace('?', '')],
    }));
    expect(fields.map(({ name, oid }) => ({ name, oid }))).toEqual(declared);
  },
);

test('no statement gives the text of an address without its account, by which it is examined', async () => {
  const { rows } = await client.query(
    `select attrelid::int as table, attnum::int as column from pg_attribute where attrelid = 'addresses'::regclass and attname = 'address'`,
  );
  const bare: string[] = [];
  // The signed text itself is selected: it's compared with the manifest, and not shown to anyone.
  for (const { name, text } of allStatements.filter((each) => each.name !== 'address-all-texts')) {
    const fields = await describeStatement(text);
    if (fields.some(({ from }) => from.table === rows[0].table && from.column === rows[0].column)) bare.push(name);
    // In expressions, only `addressColumn` may select it.
    if (/\b(?:a|addresses)\.address as\b/.test(text.replaceAll(/\|\| ' ' \|\| (?:a|addresses)\.address as/g, '')))
      bare.push(name);
  }
  expect(bare).toEqual([]);
});

test('open alarms are counted by indexes, however many are closed', async () => {
  await runSql(
    database,
    `insert into alarms (id, network, kind, subject, detail, raised_at, resolved_at, closed_mac)
     select gen_random_uuid(), 'devnet', 'blind', n::text, '', now(), now(), decode(repeat('00', 24), 'hex')
     from generate_series(1, 5000) n`,
  );
  await runSql(database, 'analyze alarms');
  const { text = '' } = allStatements.find(({ name }) => name === 'alarms-count') ?? {};
  const rows = await runSql(database, `explain ${text.replace('$1', "'devnet'")}`);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toMatch(/alarms_open/);
  expect(plan).toMatch(/alarms_unclosed/);
});

type Field = { name: string; oid: number; from: { table: number; column: number } };

/** Describes a statement with the wire protocol's Parse and Describe, without executing it. */
function describeStatement(text: string): Promise<Field[]> {
  return new Promise((resolve, reject) => {
    let fields: pg.FieldDef[] = [];
    let failure: Error | undefined;
    const description = {
      submit: (connection: pg.Connection) => {
        connection.parse({ name: '', text, types: [] }, true);
        connection.describe({ type: 'S', name: '' }, true);
        connection.sync();
      },
      handleRowDescription: (message: { fields: pg.FieldDef[] }) => {
        fields = message.fields;
      },
      handleError: (error: Error) => {
        failure = error;
        reject(error);
      },
      handleReadyForQuery: () => {
        if (failure === undefined)
          resolve(
            fields.map(({ name, dataTypeID: oid, tableID: table, columnID: column }) => ({
              name,
              oid,
              from: { table, column },
            })),
          );
      },
    };
    client.query(description as unknown as pg.Submittable);
  });
}
