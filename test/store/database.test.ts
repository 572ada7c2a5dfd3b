import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { inBackupSession, openDatabase, type Sql } from '../../src/core/store/db/database.ts';
import { migrate, readMigrations } from '../../src/core/store/db/migrate.ts';
import { type Shape, unlistedStatement } from '../../src/core/store/db/statement.ts';
import { databaseOfTest, openTestDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';

const statement = <const Fields extends Shape>(shape: Fields, text: string) => unlistedStatement('', shape, text);
const backendPid = statement({ pid: 'int4' }, 'select pg_backend_pid() as pid');
const terminate = statement({ done: 'bool' }, 'select pg_terminate_backend($1::int4) as done');
const countBackends = statement({ count: 'int8' }, 'select count(*) from pg_stat_activity where pid = $1::int4');

test('a connection that is lost between two statements of a transaction fails that transaction and nothing else', async () => {
  const { db } = await databaseOfTest(2);
  const work = db.transaction(async (tx) => {
    const [backend] = await tx.run(backendPid, []);
    await db.run(terminate, [backend?.pid ?? 0]);
    // The server's message reaches a connection that is running no statement.
    await eventually(
      () => db.run(countBackends, [backend?.pid ?? 0]),
      ([row]) => row?.count === 0n,
    );
    await tx.run(backendPid, []);
  });
  await expect(work).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  expect(await db.run(backendPid, [])).toHaveLength(1);
});

test('a migration may take far longer than a statement, and reads what is committed whatever the database prefers', async () => {
  const { db } = await databaseOfTest(1, 'owner');
  const text = `do $$ begin
    if current_setting('statement_timeout') <> '1h' then raise exception 'only %', current_setting('statement_timeout'); end if;
    if current_setting('transaction_isolation') <> 'read committed' then raise exception 'not read committed'; end if;
  end $$`;
  await db.script("set default_transaction_isolation = 'repeatable read'");
  const known = await readMigrations();
  const next = { version: known.length + 1, name: 'next.sql', sha256: 'x', text };
  const begun: string[][] = [];
  const applied = await migrate(db, { migrations: [...known, next], onBegin: (names) => begun.push(names) });
  expect(applied).toEqual(['next.sql']);
  expect(begun).toEqual([['next.sql']]);
});

test('a snapshot shows one moment however long it reads, whatever the database prefers, and takes no write', async () => {
  const { db } = await databaseOfTest(2, 'owner');
  const count = statement({ count: 'int8' }, 'select count(*) from moments');
  const insert = statement({ moment: 'int4' }, 'insert into moments values (1) returning moment');
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
  // Judging its results may take long.
  expect(await db.snapshot((tx) => tx.run(patience, ['1min']))).toEqual([{ isSet: true }]);
  expect(await db.transaction((tx) => tx.run(patience, ['5s']))).toEqual([{ isSet: true }]);
  await expect(db.snapshot((tx) => tx.run(insert, []))).rejects.toThrow(/read-only transaction/);
  expect(await db.run(count, [])).toEqual([{ count: 1n }]);
});

test('an address comes from its account and its text together, or not at all', async () => {
  const { db } = await databaseOfTest();
  const usdt =
    '018f4c1e-0000-7000-8000-000000000000 a614f803b6fd780986a42c78ec9c7f77e6ded13c 018f4c1e-0000-7000-8000-000000000001 -';
  const read = (text: string) => db.run(statement({ address: 'address' }, `select ${text} as address`), []);
  const sound = [{ address: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' }];
  expect(await read(`'mainnet ${usdt} TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'`)).toEqual(sound);
  for (const text of ['TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t ', '']) {
    await expect(read(`'mainnet ${usdt} ${text}'`)).rejects.toMatchObject({ code: 'ADDRESS_DAMAGED' });
  }
  await expect(read('null::text')).rejects.toMatchObject({ code: 'ADDRESS_DAMAGED' });
  expect(await db.run(statement({ address: 'address?' }, 'select null::text as address'), [])).toEqual([
    { address: null },
  ]);
});

test('a transaction in which the failure of a statement was caught fails and writes nothing, whatever failed and in whichever kind of transaction', async () => {
  const { database, db } = await databaseOfTest(2, 'owner');
  const insert = statement({}, 'insert into written values ($1::int4)');
  const count = statement({ count: 'int8' }, 'select count(*) from written');
  const failing: Record<string, (tx: Sql) => Promise<unknown>> = {
    'a constraint': (tx) => tx.run(insert, [0]),
    'a value': (tx) => tx.run(insert, ['none']),
    'a calculation': (tx) => tx.run(statement({}, 'select 1 / $1::int4'), [0]),
    'a name': (tx) => tx.run(statement({}, 'select nothing from written'), []),
    'a definition': (tx) => tx.script('create table written ()'),
    'a script of many': (tx) =>
      tx.script('insert into written values (900); select 1 / 0; insert into written values (901)'),
    'a setting': (tx) => tx.script("set local lock_timeout = 'soon'"),
    'a time limit': (tx) => tx.script("set local statement_timeout = '1ms'; select pg_sleep(1)"),
    'a lock': (tx) => tx.script("set local lock_timeout = '1ms'; lock table held"),
    'a deadlock of its own': (tx) => tx.script(`do $$ begin raise exception 'no' using errcode = '40P01'; end $$`),
  };
  const transactions = {
    transaction: (work: (tx: Sql) => Promise<void>) => db.transaction(work),
    'backup session': (work: (tx: Sql) => Promise<void>) =>
      inBackupSession(database.owner, 'isolation level read committed', work),
  };
  const holder = openTestDatabase({ connection: database.owner });
  let letGo: () => void = () => undefined;
  try {
    await db.script('create table written (number int4 primary key check (number > 0)); create table held ()');
    let isHeld: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      isHeld = resolve;
    });
    const release = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const holding = holder.transaction(async (tx) => {
      await tx.script('set local idle_in_transaction_session_timeout = 0; lock table held');
      isHeld();
      await release;
    });
    await held;
    let next = 0;
    const step = fc.constantFrom('write', ...Object.keys(failing));
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...(Object.keys(transactions) as (keyof typeof transactions)[])),
        fc.array(step, { minLength: 1, maxLength: 4 }),
        async (kind, steps) => {
          const [before] = await db.run(count, []);
          const work = transactions[kind](async (tx) => {
            for (const name of steps) {
              const fail = failing[name];
              if (fail === undefined) await tx.run(insert, [++next]).catch(() => undefined);
              else await expect(fail(tx)).rejects.toThrow();
            }
          });
          const isWhole = steps.every((name) => name === 'write');
          if (isWhole) await work;
          else
            await expect(work).rejects.toMatchObject({
              code: 'DATABASE_UNAVAILABLE',
              retryable: true,
              message: expect.stringMatching(
                /^the database rolled back the transaction .+ had failed: .+ Nothing was written/s,
              ),
            });
          const [after] = await db.run(count, []);
          expect(Number(after?.count) - Number(before?.count)).toBe(isWhole ? steps.length : 0);
        },
      ),
      { numRuns: 60, examples: Object.keys(failing).map((name) => ['transaction', ['write', name]]) },
    );
    await expect(db.snapshot((tx) => tx.run(insert, [++next]).catch(() => undefined))).rejects.toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
    });
    letGo();
    await holding;
  } finally {
    letGo();
    await holder.close();
  }
});

test('times and isolation are the same whatever the database prefers, also of a statement outside a transaction', async () => {
  const { database, db, client } = await databaseOfTest();
  await client.query(
    `alter database ${database.owner.database} set datestyle = 'German';
       alter database ${database.owner.database} set default_transaction_isolation = 'serializable'`,
  );
  const read = statement(
    { at: 'timestamptz', isolation: 'text' },
    `select timestamptz '2026-09-01 12:00+00' as at, current_setting('transaction_isolation') as isolation`,
  );
  const found = [{ at: Date.parse('2026-09-01T12:00Z'), isolation: 'read committed' }];
  expect(await db.run(read, [])).toEqual(found);
  expect(await db.transaction((tx) => tx.run(read, []))).toEqual(found);
  expect(await db.session((session) => session.run(read, []))).toEqual(found);
});

test('a statement that is too large for a limit is no shortage, unlike one that finds the disk full', async () => {
  const { database } = await databaseOfTest();
  const told: string[] = [];
  const db = openDatabase({
    ...{ connection: database.connection, poolSize: 1, applicationName: 'test', onError: () => undefined },
    onShortage: (what) => told.push(what),
  });
  onTestFinished(() => db.close());
  const fail = (code: string) =>
    expect(db.script(`do $$ begin raise exception using errcode = '${code}'; end $$`)).rejects.toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
    });
  await fail('53400');
  expect(told).toEqual([]);
  await fail('53100');
  expect(told).toEqual(['the database disk is full']);
});
