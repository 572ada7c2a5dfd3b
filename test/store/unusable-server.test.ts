import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { runSql } from '../contract/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';

const terminate = {
  name: '',
  columns: { done: 'bool' },
  text: 'select pg_terminate_backend($1::int4) as done',
} as const;
const backendPid = { name: '', columns: { pid: 'int4' }, text: 'select pg_backend_pid() as pid' } as const;

let database: TestDatabase;
let db: Database;
beforeEach(async () => {
  database = await createTestDatabase();
  db = openDatabase({
    connection: database.connection,
    poolSize: 1,
    applicationName: 'test',
    onError: () => undefined,
  });
});
afterEach(async () => {
  await db.close();
  await database.drop();
});

/** What a standby looks like to whoever connects to it. */
function setReadOnly(value: 'on' | 'off'): Promise<unknown> {
  const { database: name } = database.connection;
  return runSql(
    database,
    `set transaction read write; alter database ${name} set default_transaction_read_only = ${value}`,
  );
}

test('a server that only reads gets no connection of the pool, and one that writes again does', async () => {
  await setReadOnly('on');
  await expect(db.run(backendPid, [])).rejects.toMatchObject({
    code: 'DATABASE_UNAVAILABLE',
    message: expect.stringContaining('it only reads'),
  });
  await expect(db.transaction((tx) => tx.run(backendPid, []))).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  expect(db.stats()).toMatchObject({ total: 0, waiting: 0 });
  await setReadOnly('off');
  expect(await db.run(backendPid, [])).toHaveLength(1);
});

/** What a server on a timeline looks like to whoever connects to it; `null` for one that does not tell. */
async function setTimeline(timeline: number | null): Promise<void> {
  const body =
    timeline === null
      ? `begin raise exception 'not offered' using errcode = '0A000'; end`
      : `begin return '${timeline.toString(16).padStart(8, '0').toUpperCase()}000000010000002A'; end`;
  await runSql(database, 'create schema if not exists told');
  await runSql(
    database,
    `create or replace function told.pg_walfile_name(lsn pg_lsn) returns text language plpgsql as $$ ${body} $$`,
  );
  await runSql(database, `alter database ${database.connection.database} set search_path = told, pg_catalog, public`);
}

/** A connection that is opened for this, and closed by the server. */
async function connect(): Promise<void> {
  const [backend] = await db.run(backendPid, []);
  await expect(db.run(terminate, [backend?.pid ?? 0])).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
}

test('a server whose history went back gets no connection of a process that has met the newer one', async () => {
  // This one is on timeline 1.
  await connect();
  await setTimeline(0);
  await expect(connect()).rejects.toThrow('it is on timeline 0, and this process has met timeline 1,');
  for (const timeline of [9, 9, 10, 17]) {
    await setTimeline(timeline);
    await connect();
  }
  await setTimeline(16);
  await expect(connect()).rejects.toMatchObject({
    code: 'DATABASE_UNAVAILABLE',
    message: expect.stringContaining(
      'its history went back: it is on timeline 16, and this process has met timeline 17',
    ),
  });
  expect(db.stats()).toMatchObject({ total: 0, waiting: 0 });
  await setTimeline(18);
  await connect();
});

test('a server that does not tell its timeline is taken as it is', async () => {
  await setTimeline(7);
  await connect();
  await setTimeline(null);
  await connect();
});

test('a transaction that a server refuses because it only reads leaves no connection to it in the pool', async () => {
  const [before] = await db.run(backendPid, []);
  const work = db.transaction(async (tx) => {
    await tx.script('set transaction read only');
    await tx.script('create table written (id integer)');
  });
  await expect(work).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  const [after] = await db.run(backendPid, []);
  expect(after?.pid).not.toBe(before?.pid);
});

test('a transaction that fails for a reason of its own keeps its connection', async () => {
  const [before] = await db.run(backendPid, []);
  const work = db.transaction(async (tx) => {
    await tx.script('select 1 / 0');
  });
  await expect(work).rejects.toMatchObject({ code: '22012' });
  expect(await db.run(backendPid, [])).toEqual([before]);
});

test('a database that takes no connections for a while is away, and not broken', async () => {
  const setConnectable = (value: boolean) =>
    withClient(inject('postgres'), (client) =>
      client.query(`alter database ${database.connection.database} allow_connections ${value}`),
    );
  await setConnectable(false);
  await expect(db.run(backendPid, [])).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  await setConnectable(true);
  expect(await db.run(backendPid, [])).toHaveLength(1);
});
