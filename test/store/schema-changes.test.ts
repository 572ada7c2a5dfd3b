import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Database } from '../../src/core/store/db/database.ts';
import { closeLedger } from '../../src/core/store/db/ledger-identity.ts';
import { migrate, readMigrations } from '../../src/core/store/db/migrate.ts';
import {
  findSchemaChanges,
  nameChange,
  readSchemaObjects,
  SCHEMA_FILE,
} from '../../src/core/store/db/schema-changes.ts';
import { databaseOfTest, openTestDatabase, type TestDatabase } from '../support/postgres.ts';

let db: Database;
let client: pg.Client;
let own: Pick<TestDatabase, 'owner'>;
beforeEach(async () => {
  const made = await databaseOfTest(1, 'owner');
  own = { owner: made.database.owner };
  ({ db, client } = made);
});

test('a database that was migrated from nothing is what migrations/schema.json says: else run "npm run schema:record"', async () => {
  const objects = await db.snapshot(readSchemaObjects);
  const found = Object.fromEntries([...objects].map(([name, { definition }]) => [name, definition]));
  expect(found).toEqual(JSON.parse(await readFile(SCHEMA_FILE, 'utf8')));
  expect(objects.size).toBeGreaterThan(500);
});

test('what PostgreSQL says of an object makes one of which it says the same: a dump and pg_upgrade make them from that', async () => {
  const triggers = `select 'trigger ' || tgname as name, pg_get_triggerdef(oid) as text,
    format('drop trigger %I on %s; %s', tgname, tgrelid::regclass, pg_get_triggerdef(oid)) as again from pg_trigger where not tgisinternal`;
  const checks = `select format('check %s %s', conrelid::regclass, conname) as name, pg_get_constraintdef(oid) as text,
    format('alter table %1$s drop constraint %2$I, add constraint %2$I %3$s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as again
    from pg_constraint where contype = 'c' and conrelid <> 0 and coninhcount = 0 and connamespace = 'public'::regnamespace`;
  const indexes = `select 'index ' || indexrelid::regclass as name, pg_get_indexdef(indexrelid) as text,
    format('drop index %s; %s', indexrelid::regclass, pg_get_indexdef(indexrelid)) as again from pg_index x
    where indrelid in (select oid from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition)
      and not exists (select from pg_constraint where conindid = indexrelid)`;
  const bodies = `select 'function ' || oid::regprocedure as name, pg_get_functiondef(oid) as text, pg_get_functiondef(oid) as again
    from pg_proc where pronamespace = 'public'::regnamespace`;
  const all = `${triggers} union all ${checks} union all ${indexes} union all ${bodies} order by 1`;
  const { rows: before } = await client.query<{ name: string; text: string; again: string }>(all);
  expect(before.length).toBeGreaterThan(200);
  await client.query('begin');
  for (const { again } of before) await client.query(again);
  const { rows: after } = await client.query<{ name: string; text: string }>(all);
  await client.query('rollback');
  expect(after.map(({ name, text }) => [name, text])).toEqual(before.map(({ name, text }) => [name, text]));
});

const PLANTED = `create function planted() returns trigger language plpgsql as $$ begin return new; end $$`;

/** Changes that an owner of the tables can make, and what a start reports. */
const CHANGES: [what: string, sql: string, named: string[]][] = [
  [
    'a constraint that was dropped, with the triggers disabled',
    'alter table invoices drop constraint invoices_reservation; alter table invoices disable trigger user',
    ['constraint invoices.invoices_reservation is missing', 'trigger invoices.invoices_paid_is_final is disabled'],
  ],
  [
    'a trigger that was dropped',
    'drop trigger transfers_are_kept on transfers',
    ['trigger transfers.transfers_are_kept is missing'],
  ],
  [
    'a trigger of replicas alone',
    'alter table invoices enable replica trigger invoices_paid_is_final',
    ['trigger invoices.invoices_paid_is_final was changed'],
  ],
  [
    'a trigger function that does nothing any more',
    'create or replace function keep_paid_invoices() returns trigger language plpgsql as $$ begin return new; end $$',
    ['function keep_paid_invoices() was changed'],
  ],
  [
    'an address function that takes every text',
    `create or replace function tron_address(account bytea) returns text language sql immutable as $$ select 'T' $$`,
    ['function tron_address(bytea) was changed'],
  ],
  [
    'a function of the owner that was replaced',
    `create or replace function lock_transfers(ids uuid[]) returns setof uuid language sql security definer as 'select unnest(ids)'`,
    ['function lock_transfers(uuid[]) was changed'],
  ],
  [
    'a planted trigger',
    `${PLANTED}; create trigger helpful before insert on invoices for each row execute function planted()`,
    ['trigger invoices.helpful was added', 'function planted() was added'],
  ],
  [
    'foreign keys that are not checked',
    'alter table invoices disable trigger all',
    ['constraint invoices.invoices_project_id_network_address_id_fkey is disabled'],
  ],
  [
    'a constraint that says less',
    `alter table invoices drop constraint invoices_paid_by_transfer, add constraint invoices_paid_by_transfer check (true)`,
    ['constraint invoices.invoices_paid_by_transfer was changed'],
  ],
  [
    'a constraint that was added',
    `alter table addresses add constraint mine check (address <> 'T')`,
    ['constraint addresses.mine was added'],
  ],
  ['a unique index that is gone', 'drop index transfers_pay_once', ['index transfers.transfers_pay_once is missing']],
  [
    'a unique index that was added',
    'create unique index one_per_amount on invoices (payable_micro)',
    ['index invoices.one_per_amount was added'],
  ],
  [
    'an index over an expression',
    'create index by_length on invoices (length(external_id))',
    ['index invoices.by_length was added'],
  ],
  [
    'a column that may be null, and one that was added',
    'alter table invoices alter column checkout_token drop not null, add column note text',
    ['column invoices.checkout_token was changed', 'column invoices.note was added'],
  ],
  [
    'another default',
    `alter table projects alter column max_surcharge_micro set default 100`,
    ['column projects.max_surcharge_micro was changed'],
  ],
  [
    'a rule',
    'create rule quiet as on insert to operator_actions do instead nothing',
    ['rule operator_actions.quiet was added'],
  ],
  [
    'row security',
    'alter table transfers enable row level security; create policy few on transfers using (amount_micro > 5)',
    ['table transfers was changed', 'policy transfers.few was added'],
  ],
  ['a table whose rows count with ours', 'create table more () inherits (addresses)', ['table addresses was changed']],
  ['a table that a crash empties', 'alter table sightings set unlogged', ['table sightings was changed']],
  [
    'a view in the place of a table',
    'alter table logos rename to pictures; create view logos as select * from pictures',
    ['table logos was changed'],
  ],
];

describe('a start refuses', () => {
  test.each(CHANGES)('%s, and names it', async (_what, sql, named) => {
    await client.query(sql);
    const error = await migrate(db).then(
      () => null,
      (refusal: Error) => refusal,
    );
    expect(error).toMatchObject({ code: 'SCHEMA_CHANGED' });
    for (const change of named) expect(error?.message).toContain(change);
  });

  test('a setting of the user or the database that switches all triggers off', async () => {
    const name = (await client.query('select current_database() as name')).rows[0].name;
    const isNamed = { message: expect.stringContaining('setting session_replication_role was changed') };
    expect(await migrate(db)).toEqual([]);
    await client.query(`alter database ${name} set session_replication_role = 'replica'`);
    await expect(migrate(db)).rejects.toMatchObject(isNamed);
    await client.query(`alter database ${name} reset session_replication_role`);
    expect(await migrate(db)).toEqual([]);
    const user = (await client.query('select current_user as name')).rows[0].name;
    await client.query(`alter role ${user} in database ${name} set session_replication_role = 'replica'`);
    await expect(migrate(db)).rejects.toMatchObject(isNamed);
  });

  test('before a migration of it is committed, so that the release of before goes on', async () => {
    const migrations = await readMigrations();
    await client.query('drop schema public cascade; create schema public');
    await migrate(db, { migrations: migrations.slice(0, -1) });
    await client.query('drop trigger invoices_are_kept on invoices');
    await expect(migrate(db)).rejects.toMatchObject({ code: 'SCHEMA_CHANGED' });
    const { rows } = await client.query('select count(*)::int as count from schema_migrations');
    expect(rows).toEqual([{ count: migrations.length - 1 }]);
  });
});

describe('a start takes', () => {
  test('tables, views, functions and plain indexes of an operator', async () => {
    await client.query(
      `create table notes (invoice_id uuid, note text); create view open_invoices as select * from invoices;
       create index invoices_of_a_day on invoices (created_at); create function mine() returns int language sql as 'select 1';
       create function lookup() returns int language sql security definer as 'select 1';
       create schema reports; create table reports.sums (sum bigint)`,
    );
    expect(await migrate(db)).toEqual([]);
  });

  test('other settings of how PostgreSQL writes names', async () => {
    const name = (await client.query('select current_database() as name')).rows[0].name;
    await client.query(`alter database ${name} set quote_all_identifiers = on`);
    expect(await migrate(db)).toEqual([]);
  });

  test('a ledger in a schema of another name, migrated under such settings', async () => {
    const name = (await client.query('select current_database() as name')).rows[0].name;
    await client.query(
      `drop schema public cascade; create schema "Shop 1";
       alter database ${name} set search_path = "Shop 1"; alter database ${name} set quote_all_identifiers = on`,
    );
    const fresh = openTestDatabase({ connection: own.owner });
    onTestFinished(() => fresh.close());
    expect(await migrate(fresh)).toHaveLength((await readMigrations()).length);
    expect(await migrate(fresh)).toEqual([]);
  });

  test('what a "reindex concurrently" leaves that was interrupted', async () => {
    const reader = new pg.Client(own.owner);
    await reader.connect();
    await reader.query('begin; select from invoices');
    await client.query(`set lock_timeout = '200ms'`);
    await expect(client.query('reindex table concurrently invoices')).rejects.toThrow(/lock timeout/);
    await reader.end();
    const { rows } = await client.query(`select from pg_index where not indisvalid and indisunique`);
    expect(rows.length).toBeGreaterThan(0);
    expect(await migrate(db)).toEqual([]);
  });
});

describe('a ledger that its final backup closed', () => {
  const changes = async () => (await db.snapshot(findSchemaChanges)).map(nameChange);
  const TRIGGER = 'trigger invoices.invoices_of_a_closed_ledger';

  test('is as it should be', async () => {
    await client.query('insert into ledger_identity (id, database_oid) values (gen_random_uuid(), 1)');
    await db.transaction(closeLedger);
    expect(await changes()).toEqual([]);
  });

  test('is not closed by its trigger alone', async () => {
    await client.query('insert into ledger_identity (id, database_oid) values (gen_random_uuid(), 1)');
    await client.query('alter table invoices enable trigger invoices_of_a_closed_ledger');
    expect(await changes()).toEqual([`${TRIGGER} is enabled`]);
  });

  test('is not closed by its mark alone', async () => {
    await client.query(
      'insert into ledger_identity (id, database_oid, closed_at) values (gen_random_uuid(), 1, now())',
    );
    expect(await changes()).toEqual([`${TRIGGER} is disabled`]);
  });
});
