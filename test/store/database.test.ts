import { expect, test } from 'vitest';
import { migrate, readMigrations } from '../../src/store/db/migrate.ts';
import { type Shape, unlistedStatement } from '../../src/store/db/statement.ts';
import { createTestDatabase, openTestDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';

const statement = <const Fields extends Shape>(shape: Fields, text: string) => unlistedStatement('', shape, text);
const backendPid = statement({ pid: 'int4' }, 'select pg_backend_pid() as pid');
const terminate = statement({ done: 'bool' }, 'select pg_terminate_backend($1::int4) as done');
const countBackends = statement({ count: 'int8' }, 'select count(*) from pg_stat_activity where pid = $1::int4');

test('a connection that is lost between two statements of a transaction fails that transaction and nothing else', async () => {
  const database = await createTestDatabase();
  const db = openTestDatabase(database, 2);
  try {
    const work = db.transaction(async (tx) => {
      const [backend] = await tx.run(backendPid, []);
      await db.run(terminate, [backend?.pid ?? 0]);
      // The server's farewell reaches a connection on which no statement is under way.
      await eventually(
        () => db.run(countBackends, [backend?.pid ?? 0]),
        ([row]) => row?.count === 0n,
      );
      await tx.run(backendPid, []);
    });
    await expect(work).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    expect(await db.run(backendPid, [])).toHaveLength(1);
  } finally {
    await db.close();
    await database.drop();
  }
});

test('a migration may take far longer than a statement, and reads what is committed whatever the database prefers', async () => {
  const database = await createTestDatabase();
  const db = openTestDatabase({ connection: database.owner });
  const text = `do $$ begin
    if current_setting('statement_timeout') <> '1h' then raise exception 'only %', current_setting('statement_timeout'); end if;
    if current_setting('transaction_isolation') <> 'read committed' then raise exception 'not read committed'; end if;
  end $$`;
  try {
    await db.script("set default_transaction_isolation = 'repeatable read'");
    const known = await readMigrations();
    const next = { version: known.length + 1, name: 'next.sql', sha256: 'x', text };
    const begun: string[][] = [];
    const applied = await migrate(db, { migrations: [...known, next], onBegin: (names) => begun.push(names) });
    expect(applied).toEqual(['next.sql']);
    expect(begun).toEqual([['next.sql']]);
  } finally {
    await db.close();
    await database.drop();
  }
});

test('a snapshot shows one moment however long it reads, whatever the database prefers, and takes no write', async () => {
  const database = await createTestDatabase();
  const db = openTestDatabase({ connection: database.owner }, 2);
  const count = statement({ count: 'int8' }, 'select count(*) from moments');
  const insert = statement({ moment: 'int4' }, 'insert into moments values (1) returning moment');
  try {
    await db.script('create table moments (moment int4)');
    const counts = await db.snapshot(async (tx) => {
      const before = await tx.run(count, []);
      await db.run(insert, []);
      return [before, await tx.run(count, []), await db.run(count, [])];
    });
    expect(counts).toEqual([[{ count: 0n }], [{ count: 0n }], [{ count: 1n }]]);
    const patience = statement(
      { isSet: 'bool' },
      `select current_setting('idle_in_transaction_session_timeout') = $1 as is_set`,
    );
    // What it has read may take long to judge.
    expect(await db.snapshot((tx) => tx.run(patience, ['1min']))).toEqual([{ isSet: true }]);
    expect(await db.transaction((tx) => tx.run(patience, ['5s']))).toEqual([{ isSet: true }]);
    await expect(db.snapshot((tx) => tx.run(insert, []))).rejects.toThrow(/read-only transaction/);
    expect(await db.run(count, [])).toEqual([{ count: 1n }]);
  } finally {
    await db.close();
    await database.drop();
  }
});

test('an address comes from its account and its text together, or not at all', async () => {
  const database = await createTestDatabase();
  const db = openTestDatabase(database);
  const usdt =
    '018f4c1e-0000-7000-8000-000000000000 a614f803b6fd780986a42c78ec9c7f77e6ded13c 018f4c1e-0000-7000-8000-000000000001 -';
  const read = (text: string) => db.run(statement({ address: 'address' }, `select ${text} as address`), []);
  try {
    const sound = [{ address: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' }];
    expect(await read(`'mainnet ${usdt} TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'`)).toEqual(sound);
    for (const text of ['TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t ', '']) {
      await expect(read(`'mainnet ${usdt} ${text}'`)).rejects.toMatchObject({ code: 'ADDRESS_DAMAGED' });
    }
    await expect(read('null::text')).rejects.toMatchObject({ code: 'ADDRESS_DAMAGED' });
    expect(await db.run(statement({ address: 'address?' }, 'select null::text as address'), [])).toEqual([
      { address: null },
    ]);
  } finally {
    await db.close();
    await database.drop();
  }
});
