import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { formatAdminKey } from '../../src/core/domain/api-key.ts';
import { createAdmission, type Database, openDatabase } from '../../src/core/store/db/database.ts';
import { claimLedger, isLossyLedger } from '../../src/core/store/db/ledger-identity.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { startConsoleOver } from '../admin/console-service.ts';
import { runSql } from '../contract/sql.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { eventually } from '../support/service.ts';

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

/** Makes the server look like a standby to its clients. */
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
    message: expect.stringContaining('it is read-only'),
  });
  await expect(db.transaction((tx) => tx.run(backendPid, []))).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  expect(db.stats()).toMatchObject({ total: 0, waiting: 0 });
  await setReadOnly('off');
  expect(await db.run(backendPid, [])).toHaveLength(1);
});

/** Makes the server's log appear to end at a position; `null` for a server that doesn't report it. */
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

/** Opens a new connection, which the server closes. */
async function connect(by = db): Promise<void> {
  const [backend] = await by.run(backendPid, []);
  await expect(by.run(terminate, [backend?.pid ?? 0])).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
}

const refusal = (timeline: number, lsn: number, known: string) => ({
  code: 'DATABASE_UNAVAILABLE',
  message: expect.stringMatching(
    new RegExp(
      `it was reset to an earlier state, .* on timeline ${timeline} at ${lsn}, .* already seen timeline ${known}\\.`,
    ),
  ),
});

test('a server whose history went back gets no connection of a process that has met the newer one', async () => {
  // This server is on timeline 1.
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
  // It's unknown whether that server was the promoted one.
  await setPosition([18, 901]);
  await expect(connect(own)).rejects.toMatchObject(refusal(18, 901, '17 at 600'));
  await setPosition([17, 599]);
  await expect(connect(own)).rejects.toMatchObject(refusal(17, 599, '17 at 600'));
  await setPosition([17, 601]);
  await connect(own);
  await setPosition([18, 602]);
  await connect(own);
});

const create = unlistedStatement(
  '',
  { checkoutToken: 'text' },
  `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
     checkout_token, created_at, expires_at)
   select gen_random_uuid(), a.project_id, a.network, a.id, $1, $1, 1, $2::int8, lpad($1, 16, '0'), now(), now() from addresses a
   on conflict do nothing
   returning checkout_token`,
);

/**
 * The events that a process sees in turn: a server's position, an invoice created there, a repeated creation, a lost invoice, a copy without
 * the mark, and the result of the next connection.
 */
type Seen =
  | readonly [timeline: number, lsn: number]
  | 'creates'
  | 'repeats'
  | 'loses one'
  | 'is another copy'
  | 'accepted'
  | RegExp;
const PROMOTIONS: readonly (readonly [string, readonly Seen[]])[] = [
  [
    'with all invoices',
    [[9, 500], 'accepted', 'creates', 'creates', [10, 501], 'accepted', 'creates', [11, 502], 'accepted'],
  ],
  [
    'that lost an invoice is refused, though it has gone further since',
    [[9, 500], 'accepted', 'creates', 'creates', 'loses one', [10, 900], /lacks 1 of the last 2 acknowledged invoices/],
  ],
  [
    'that lost all invoices is refused',
    [[9, 500], 'accepted', 'creates', 'loses one', [12, 400], /lacks 1 of the last 1 acknowledged invoices/],
  ],
  [
    'that lost only what nobody was told is accepted',
    [[9, 500], 'accepted', 'creates', [9, 900], 'accepted', [10, 600], 'accepted'],
  ],
  [
    'whose journal ends before a commit is refused',
    [[9, 900], 'accepted', 'creates', [10, 600], /lacks commits up to 900/],
  ],
  [
    'whose journal ends before a commit on an earlier timeline is refused',
    [[9, 900], 'accepted', 'creates', [10, 950], 'accepted', [11, 899], /lacks commits up to 900/],
  ],
  [
    'after one that was refused is refused, too',
    [[9, 500], 'accepted', 'creates', 'loses one', [10, 900], /lacks 1/, [11, 901], /lacks 1/, [9, 501], 'accepted'],
  ],
  [
    'is marked, though another one was marked before it',
    [
      [9, 500],
      'accepted',
      'creates',
      'loses one',
      [10, 900],
      /lacks 1/,
      [9, 501],
      'accepted',
      'is another copy',
      [10, 901],
      /lacks 1/,
      'is another copy',
      [11, 902],
      /lacks 1/,
    ],
  ],
  [
    'is refused after another one, though nothing proves that it lacks an invoice',
    [
      [9, 500],
      'accepted',
      'creates',
      [8, 900],
      /reset to an earlier state/,
      [11, 901],
      /descends from a server that was/,
      [9, 501],
      'accepted',
    ],
  ],
  [
    'is measured by commits, and not by what created nothing',
    [[9, 500], 'accepted', 'creates', [9, 900], 'accepted', 'repeats', [10, 600], 'accepted'],
  ],
  ['of which a process knows nothing is accepted', [[9, 500], 'accepted', [10, 400], 'accepted']],
];

describe('a promoted server', () => {
  test.each(PROMOTIONS)('%s', async (_name, steps) => {
    await runSql(
      database,
      `insert into projects (id, name, network) values ('018f4c1e-0000-7000-8000-000000000000', 'shop', 'devnet');
       insert into addresses (id, project_id, network, account, address, position)
       select gen_random_uuid(), id, network, account, tron_address(account), 1
       from projects, (values (decode(repeat('4a', 20), 'hex'))) _ (account)`,
    );
    await runSql(database, `insert into ledger_identity (id, database_oid) select gen_random_uuid(), 7`);
    let created = 0;
    let isLossy = false;
    for (const [place, step] of steps.entries()) {
      const where = `step ${place + 1}`;
      if (step === 'creates') {
        created += 1;
        expect(await db.run(create, [`order-${created}`, BigInt(created)]), where).toHaveLength(1);
      } else if (step === 'repeats') {
        expect(await db.run(create, [`order-${created}`, BigInt(created)]), where).toHaveLength(0);
      } else if (step === 'is another copy') {
        await runSql(database, `set session_replication_role = 'replica'; update ledger_identity set database_oid = 7`);
      } else if (step === 'loses one') {
        await runSql(
          database,
          `set session_replication_role = 'replica'; delete from invoices where external_id = 'order-${created}'`,
        );
      } else if (step === 'accepted') await connect();
      else if (step instanceof RegExp) {
        isLossy ||= step.source.includes('invoices') || step.source === 'lacks 1';
        await expect(db.run(backendPid, []), where).rejects.toMatchObject({
          code: 'DATABASE_UNAVAILABLE',
          message: expect.stringMatching(step),
        });
        expect(db.stats()).toMatchObject({ total: 0, waiting: 0 });
      } else {
        await setPosition([...step]);
        // Existing connections are closed, as when a primary dies.
        await runSql(
          database,
          `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
        );
        await eventually(
          () => db.stats(),
          ({ total }) => total === 0,
        );
      }
    }
    // A restarted process has seen none of this, and would issue the amounts again.
    const anew = openTestDatabase(database);
    onTestFinished(() => anew.close());
    expect(await isLossyLedger(anew)).toBe(isLossy);
    await expect(claimLedger(anew, { isSealed: false })).rejects.toMatchObject({
      code: 'DATABASE_COPIED',
      message: expect.stringMatching(isLossy ? /lacks invoices .+ restore accept --retire-addresses/ : /is a copy/),
    });
  });
});

test('what one pool of a process has met the others know', async () => {
  const admission = createAdmission(10_000);
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

test('the console of a process refuses a server that its other pools would refuse', async () => {
  const { url } = await startConsoleOver(database.connectionString);
  // This server is on timeline 1, and further than that.
  await setPosition([1, 500]);
  const key = formatAdminKey('018f4c1e-0000-7000-8000-000000000000', new Uint8Array(32));
  const ask = () => fetch(`${url}/admin/v1/projects`, { headers: { authorization: `Bearer ${key}` } });
  expect((await ask()).status).toBe(503);
  await runSql(database, `alter database ${database.connection.database} reset search_path`);
  expect((await ask()).status).toBe(401);
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
