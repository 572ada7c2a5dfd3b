import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Database, Sql } from '../../src/core/store/db/database.ts';
import {
  type Migration,
  migrate,
  pendingMigrations,
  readMigrations,
  stepsOf,
} from '../../src/core/store/db/migrate.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';

const released = await readMigrations();
const stepped: Migration = {
  version: released.length + 1,
  name: '9001_stepped.sql',
  sha256: 'f00d',
  text: `-- What a later release might change.
alter table invoices add column remark text;
alter table invoices add constraint invoices_remark check (char_length(remark) < 100) not valid;
alter table transfers add column remark text;

-- step
alter table invoices validate constraint invoices_remark;
-- step outside a transaction
create index concurrently if not exists invoices_by_time on invoices (created_at);
-- step
create table remarks (id uuid primary key);`,
};
const whole: Migration = {
  ...stepped,
  version: stepped.version + 1,
  name: '9002_whole.sql',
  text: 'create table more ()',
};
const migrations = [...released, stepped, whole];

async function connect(connection: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client(connection);
  client.on('error', () => undefined);
  await client.connect();
  onTestFinished(() => client.end().catch(() => undefined));
  return client;
}

async function setUp(): Promise<{ database: TestDatabase; db: Database; owner: pg.Client }> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const db = openTestDatabase({ connection: database.owner });
  onTestFinished(() => db.close());
  return { database, db, owner: await connect(database.owner) };
}

/** The locks of `pg_dump` and `quittance backup`. */
async function readAll(connection: pg.ClientConfig): Promise<{ pid: number; end(): Promise<unknown> }> {
  const reader = await connect({ ...connection, application_name: 'a long export' });
  const { rows } = await reader.query(
    `select pg_backend_pid() as pid, string_agg(oid::regclass::text, ', ') as tables
     from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`,
  );
  await reader.query(
    `begin isolation level repeatable read; lock table ${rows[0].tables} in access share mode; select 1`,
  );
  return { pid: rows[0].pid, end: () => reader.query('rollback') };
}

describe('an upgrade beside a session that reads everything', () => {
  test('of 200,000 invoices lets others create them, names the session, gives up, and is done once that has ended', async () => {
    const { database, db, owner } = await setUp();
    const [project, address] = [randomUUID(), randomUUID()];
    await owner.query(`insert into projects (id, name, network) values ($1, 'shop', 'devnet')`, [project]);
    await owner.query(
      `insert into addresses (id, project_id, network, account, address, position) values ($1, $2, 'devnet', $3, tron_address($3), 1)`,
      [address, project, randomBytes(20)],
    );
    const insert = (
      rows: string,
    ) => `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id,
        requested_micro, payable_micro, checkout_token, created_at, expires_at)
      select gen_random_uuid(), '${project}', 'devnet', '${address}', n::text, n::text, 1, n, lpad(n::text, 16, '0'), now(), now()
      from ${rows} n`;
    await owner.query(
      `begin; set local session_replication_role = 'replica'; ${insert('generate_series(1, 200000)')}; commit`,
    );

    const shop = await connect(database.connection);
    // The upgrade waits for its locks for a second, and so does what queues behind it. A busy machine takes longer for everything else.
    await shop.query(`set lock_timeout = '2s'`);
    let created = 0;
    let isOver = false;
    const creating = (async () => {
      for (let n = 200_001; !isOver; n += 1) {
        await shop.query(insert(`generate_series(${n}, ${n})`));
        created += 1;
        await delay(5);
      }
    })();
    const reader = await readAll(database.owner);
    const names = new RegExp(
      `pid ${reader.pid} \\(user \\w+, application "a long export", idle in transaction, in a transaction for \\d+ s\\)`,
    );
    const before = created;
    await expect(migrate(db, { migrations, patienceMs: 3000 })).rejects.toMatchObject({
      code: 'MIGRATION_BLOCKED',
      message: expect.stringMatching(names),
    });
    expect(created).toBeGreaterThan(before);
    const told: string[] = [];
    const upgrade = migrate(db, { migrations, onBlocked: (blockers) => void told.push(blockers) });
    await eventually(
      () => told.length,
      (count) => count > 1,
    );
    await reader.end();
    expect(await upgrade).toEqual([stepped.name, whole.name]);
    isOver = true;
    await creating;
    for (const blockers of told) expect(blockers).toMatch(names);
    const { rows } = await owner.query(
      `select (select indisvalid from pg_index where indexrelid = 'invoices_by_time'::regclass) as index,
         (select convalidated from pg_constraint where conname = 'invoices_remark') as constraint`,
    );
    expect(rows).toEqual([{ index: true, constraint: true }]);
  });

  test('waits for locks no longer than a second in all, however many sessions hold it up one after the other', async () => {
    const { database, db, owner } = await setUp();
    const tables = ['logos', 'leases', 'alarms', 'requests', 'sessions', 'chain_status'];
    const slow = tables.map((table) => `alter table ${table} add column remark text`).join(';');
    const holders: pg.Client[] = [];
    for (const table of tables) {
      const holder = await connect(database.owner);
      await holder.query(`begin; lock table ${table} in access share mode`);
      holders.push(holder);
    }
    let ended = 0;
    const endedWhenBlocked: number[] = [];
    const text = `create table begun as select clock_timestamp() as at; ${slow}`;
    // Every 200 ms, the upgrade checks whether it is blocked.
    let looks = 0;
    const watched: Database = {
      ...db,
      run: (statement, parameters) => {
        if (statement.name === 'migrate-blockers') looks += 1;
        return db.run(statement, parameters);
      },
    };
    const upgrade = migrate(watched, {
      migrations: [...released, { ...stepped, text }],
      onBlocked: () => void endedWhenBlocked.push(ended),
    });
    await eventually(
      async () =>
        (
          await owner.query(
            `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
          )
        ).rowCount,
      (count) => count === 1,
    );
    for (const holder of holders) {
      const before = looks;
      await eventually(
        () => looks - before,
        (count) => count >= 2 || endedWhenBlocked.length > 0,
      );
      ended += 1;
      await holder.query('rollback');
    }
    await upgrade;
    // No session holds it up for a second, so it is blocked only if their times are added.
    expect(endedWhenBlocked[0]).toBeLessThanOrEqual(3);
    expect((await owner.query('select from begun')).rowCount).toBe(1);
  });
});

describe('an upgrade in steps', () => {
  /** Loses the connection before the statement with that number. */
  function crashing(db: Database, before: number): Database {
    let count = 0;
    const on = (sql: Sql, kill: Sql): Sql => {
      const step = async () => {
        count += 1;
        if (count === before) await kill.script('select pg_terminate_backend(pg_backend_pid())');
      };
      return {
        ...sql,
        run: (statement, parameters) => step().then(() => sql.run(statement, parameters)),
        script: (text) => step().then(() => sql.script(text)),
      };
    };
    return {
      ...db,
      session: (work) =>
        db.session((session) =>
          work({ ...on(session, session), transaction: (inner) => session.transaction((tx) => inner(on(tx, tx))) }),
        ),
    };
  }

  test('goes on where it was, wherever it was cut off, and makes the same schema', async () => {
    const { db, owner } = await setUp();
    const made = async () =>
      (
        await owner.query(
          `select (select string_agg(attrelid::regclass::text, ' ' order by 1) from pg_attribute where attname = 'remark' and not attisdropped) as columns,
             (select convalidated from pg_constraint where conname = 'invoices_remark') as validated,
             (select indisvalid from pg_index where indexrelid = to_regclass('invoices_by_time')) as index,
             to_regclass('remarks') as table, to_regclass('more') as other,
             (select string_agg(sha256, ' ' order by version) from schema_migrations where version > ${released.length}) as digests`,
        )
      ).rows;
    await migrate(db, { migrations });
    const expected = [
      {
        columns: 'invoices transfers',
        validated: true,
        index: true,
        table: 'remarks',
        other: 'more',
        digests: 'f00d f00d',
      },
    ];
    expect(await made()).toEqual(expected);
    const undo = `delete from schema_migrations where version > ${released.length};
      alter table invoices drop column remark; alter table transfers drop column remark; drop index invoices_by_time;
      drop table remarks; drop table more`;
    let isOver = false;
    for (let statement = 1; !isOver; statement += 1) {
      await owner.query(undo);
      isOver = await migrate(crashing(db, statement), { migrations }).then(
        () => true,
        (error) => {
          expect(error).toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
          return false;
        },
      );
      await migrate(db, { migrations });
      expect(await made(), `cut off before statement ${statement}`).toEqual(expected);
      expect(await migrate(db, { migrations })).toEqual([]);
      if (isOver) expect(statement).toBeGreaterThan(12);
    }
  });

  test('builds an index anew whose building was interrupted, and is no newer schema to a process that serves meanwhile', async () => {
    const { database, db, owner } = await setUp();
    await migrate(db, {
      migrations: [...released, { ...stepped, text: stepped.text.split('-- step outside')[0] ?? '' }],
    });
    await owner.query(`delete from schema_migrations where version > ${released.length}; alter table invoices drop column remark;
      alter table transfers drop column remark`);
    const text = stepsOf(stepped.text)
      .filter(({ isOutside }) => isOutside)
      .map((step) => step.text)
      .join('\n');
    const only = [...released, { ...stepped, text }];
    const reader = await readAll(database.owner);
    const cutOff = migrate(db, { migrations: only });
    const unfinished = async () =>
      (await owner.query(`select from pg_index where indexrelid = to_regclass('invoices_by_time') and not indisvalid`))
        .rowCount;
    const isRefused = expect(cutOff).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    await eventually(unfinished, (count) => count === 1);
    await expect(pendingMigrations(db)).rejects.toMatchObject({ code: 'SCHEMA_NEWER' });
    expect(await pendingMigrations(db, { mayBeUpgrading: true })).toBe(0);
    await owner.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and query like '%create index concurrently%'`,
    );
    await isRefused;
    await reader.end();
    expect(await unfinished()).toBe(1);
    await migrate(db, { migrations: only });
    expect(await unfinished()).toBe(0);
    await expect(pendingMigrations(db, { mayBeUpgrading: true })).rejects.toMatchObject({ code: 'SCHEMA_NEWER' });
  });

  test('is made by one of several processes that start together, and the others find it done', async () => {
    const { database } = await setUp();
    const applied = await Promise.all(
      [1, 2, 3, 4].map(async () => {
        const db = openTestDatabase({ connection: database.owner });
        return migrate(db, { migrations }).finally(() => db.close());
      }),
    );
    expect(applied.filter(({ length }) => length > 0)).toEqual([[stepped.name, whole.name]]);
  });
});

describe('each migration', () => {
  /** These have at least one row for each order. */
  const LARGE = [
    'invoices',
    'transfers',
    'outgoing_transfers',
    'events',
    'deliveries',
    'delivery_attempts',
    'requests',
  ];
  const later = released.filter(({ version }) => version > 31);
  /** Returns statements without comments and without function bodies. */
  const statementsOf = (text: string) =>
    text
      .replace(/\$(\w*)\$[\s\S]*?\$\1\$/g, "''")
      .replace(/--.*$/gm, '')
      .replace(/begin atomic[\s\S]*?\bend;/gi, ';')
      .split(';')
      .map((statement) => statement.replace(/\s+/g, ' ').trim())
      .filter((statement) => statement !== '');

  test('has steps outside a transaction that are one statement, and can be repeated', () => {
    for (const { name, text } of [...released, stepped]) {
      for (const step of stepsOf(text)) {
        const statements = statementsOf(step.text);
        if (step.isOutside) {
          expect(statements, name).toEqual([
            expect.stringMatching(
              /^(create (unique )?index concurrently if not exists|drop index concurrently if exists) \w+/,
            ),
          ]);
        } else expect(statements.join(';'), name).not.toMatch(/\bconcurrently\b|^(begin|commit|rollback)\b/);
      }
    }
  });

  test('reads no large table while it keeps others from it', () => {
    for (const { name, text } of [...later, stepped]) {
      const made = [...text.matchAll(/create table (\w+)/gi)].map(([, table]) => table);
      for (const { text: step, isOutside } of stepsOf(text)) {
        const statements = statementsOf(step);
        const locks = statements.some((statement) => /^(alter table|create trigger|drop)/i.test(statement));
        for (const statement of statements) {
          const table = /^(?:alter table (?:only )?|create (?:unique )?index .*? on )(\w+)/i.exec(statement)?.[1] ?? '';
          if (isOutside || made.includes(table) || !LARGE.includes(table)) continue;
          const what = `${name}: ${statement}`;
          expect(statement, `${what}: build it concurrently, in a step of its own`).not.toMatch(
            /^create (unique )?index/i,
          );
          for (const [added] of statement.matchAll(/add constraint(?:(?!, ?add).)*/gi)) {
            if (!/\b(check|foreign key)\b/i.test(added)) continue;
            expect(added, `${what}: add it not valid, and validate it in another step`).toMatch(/not valid$/i);
          }
          if (/validate constraint/i.test(statement)) {
            expect(
              statements.length === 1 || !locks || statements.every((one) => /validate constraint/i.test(one)),
              `${what}: in a step of its own`,
            ).toBe(true);
          }
        }
      }
    }
  });
});
