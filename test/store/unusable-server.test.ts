import { afterEach, beforeEach, expect, inject, onTestFinished, test } from 'vitest';
import { createAdmission } from '../../src/store/db/admit-server.ts';
import { type Database, openDatabase } from '../../src/store/db/database.ts';
import { unlistedStatement } from '../../src/store/db/statement.ts';
import { runSql } from '../contract/sql.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';

const terminate = unlistedStatement('', { done: 'bool' }, 'select pg_terminate_backend($1::int4) as done');
const backendPid = unlistedStatement('', { pid: 'int4' }, 'select pg_backend_pid() as pid');

let database: TestDatabase;
let db: Database;
beforeEach(async () => {
  database = await createTestDatabase();
  db = openTestDatabase(database);
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

/** What a server looks like whose journal ends there, to whoever connects to it; `null` for one that does not tell. */
async function setPosition(position: [timeline: number, lsn: number] | null): Promise<void> {
  const [timeline, lsn] = position ?? [0, 0];
  const hex = (value: number) => value.toString(16).padStart(8, '0').toUpperCase();
  const file =
    position === null
      ? `begin raise exception 'not offered' using errcode = '0A000'; end`
      : `begin return '${hex(timeline)}000000010000002A'; end`;
  await runSql(
    database,
    `create schema if not exists told; grant usage on schema told to public;
     create or replace function told.pg_walfile_name(lsn pg_lsn) returns text language plpgsql as $$ ${file} $$;
     create or replace function told.pg_current_wal_flush_lsn() returns pg_lsn language sql as $$ select '0/${hex(lsn)}'::pg_lsn $$;
     alter database ${database.connection.database} set search_path = told, pg_catalog, public`,
  );
}

/** A connection that is opened for this, and closed by the server. */
async function connect(by = db): Promise<void> {
  const [backend] = await by.run(backendPid, []);
  await expect(by.run(terminate, [backend?.pid ?? 0])).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
}

const refusal = (timeline: number, lsn: number, known: string) => ({
  code: 'DATABASE_UNAVAILABLE',
  message: expect.stringMatching(
    new RegExp(`its history went back, .* on timeline ${timeline} at ${lsn}, .* met timeline ${known}\\.`),
  ),
});

test('a server whose history went back gets no connection of a process that has met the newer one', async () => {
  // This one is on timeline 1.
  await connect();
  await setPosition([0, 900]);
  await expect(connect()).rejects.toMatchObject(refusal(0, 900, String.raw`1 at \d+`));
  await setPosition([1, 1]);
  await expect(connect()).rejects.toMatchObject(refusal(1, 1, String.raw`1 at \d+`));
  expect(db.stats()).toMatchObject({ total: 0, waiting: 0 });
});

test('promotions and restarts are followed, and after a server that went back only the one that was known', async () => {
  const own = openTestDatabase(database);
  onTestFinished(() => own.close());
  for (const position of [
    [9, 500],
    [9, 500],
    [9, 501],
    [10, 400],
    [17, 600],
  ] as const) {
    await setPosition([...position]);
    await connect(own);
  }
  await setPosition([16, 900]);
  await expect(connect(own)).rejects.toMatchObject(refusal(16, 900, '17 at 600'));
  // Who can say whether it was that one that was promoted?
  await setPosition([18, 901]);
  await expect(connect(own)).rejects.toMatchObject(refusal(18, 901, '17 at 600'));
  await setPosition([17, 599]);
  await expect(connect(own)).rejects.toMatchObject(refusal(17, 599, '17 at 600'));
  await setPosition([17, 601]);
  await connect(own);
  await setPosition([18, 602]);
  await connect(own);
});

test('what one pool of a process has met the others know', async () => {
  const admission = createAdmission(1000);
  const [one, other] = [1, 2].map(() => {
    const pool = openDatabase({
      connection: database.connection,
      poolSize: 1,
      applicationName: 'test',
      admission,
      onError: () => undefined,
    });
    onTestFinished(() => pool.close());
    return pool;
  });
  await setPosition([9, 500]);
  await connect(one);
  await setPosition([8, 500]);
  await expect(connect(other)).rejects.toMatchObject(refusal(8, 500, '9 at 500'));
});

test('a server that does not tell its position is taken as it is', async () => {
  await connect();
  await setPosition(null);
  await connect();
});

test('a transaction that a server refuses because it only reads leaves no connection to it in the pool', async () => {
  const [before] = await db.run(backendPid, []);
  const work = db.transaction(async (tx) => {
    await tx.script('set transaction read only');
    await tx.script(`update leases set holder = ''`);
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
