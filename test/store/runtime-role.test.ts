import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/core/runtime/log.ts';
import { migrate, readMigrations } from '../../src/core/store/db/migrate.ts';
import { findOwnership } from '../../src/core/store/db/runtime-role.ts';
import { allStatements } from '../../src/core/store/db/statement.ts';
import { startService } from '../../src/server/service.ts';
import { runCli } from '../cli/run-cli.ts';
import { importStatements } from '../support/import-statements.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';

await importStatements();

/**
 * Statements that only commands with DATABASE_OWNER_URL run: migrate, restore, restore accept, backup --final, ledger seal, master-key
 * rotate.
 */
const OWNERS = [
  'schema-insert-applied',
  'webhook-secret-clear-plain',
  'ledger-close',
  'restore-bar-addresses',
  'restore-skip-indexes',
  'restore-raise-first-index',
  ...['account-keys', 'addresses', 'events', 'invoices', 'operator-actions', 'producer-sets', 'receipt-keys'].map(
    (table) => `seals-write-${table}`,
  ),
  'seals-write-adapter-orders',
  'seals-write-ledger-proofs',
  'seals-write-notifications',
  'seals-write-outgoing-transfers',
  'seals-write-transfers',
  ...[
    'passed-blocks',
    'set-aside',
    'transfer-annulments',
    'transfer-claims',
    'transfer-refunds',
    'transfer-resolutions',
  ].map((table) => `seals-write-${table}`),
];
const ROLE = 'quittance_runtime';

type Column = { table: string; column: string };

let database: TestDatabase;
let runtime: pg.Client;
let owner: pg.Client;
let columns: Column[];
beforeAll(async () => {
  database = await createTestDatabase();
  runtime = new pg.Client(database.connection);
  owner = new pg.Client(database.owner);
  await Promise.all([runtime.connect(), owner.connect()]);
  const { rows } = await owner.query<Column>(
    `select c.relname::text as table, a.attname::text as column
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') order by c.relname, a.attnum`,
  );
  columns = rows;
});
afterAll(async () => {
  await Promise.all([runtime.end(), owner.end()]);
  await database.drop();
});

/** Returns the SQLSTATE of a statement, or `done`, and rolls back. */
async function ends(client: pg.Client, text: string): Promise<string> {
  await client.query('begin');
  try {
    await client.query(text);
    return 'done';
  } catch (error) {
    return String((error as { code?: unknown }).code);
  } finally {
    await client.query('rollback');
  }
}

const FORBIDDEN = '42501';
const forbidden = (texts: readonly string[]) => texts.map((text) => [text, FORBIDDEN]);
const tried = async (texts: readonly string[]) => {
  const found: [string, string][] = [];
  for (const text of texts) found.push([text, await ends(runtime, text)]);
  return found;
};

/** PostgreSQL checks rights when it prepares a plan for running, which includes EXPLAIN. */
const explained = (text: string) => `explain (generic_plan) ${text}`;

describe('the role as which the service works', () => {
  test('may do every statement of the program but those of commands for the owner', async () => {
    const outcomes = new Map<string, string>();
    for (const { name, text } of allStatements) outcomes.set(name, await ends(runtime, explained(text)));
    const refused = [...outcomes].filter(([, outcome]) => outcome !== 'done');
    expect(refused.sort()).toEqual(OWNERS.map((name) => [name, FORBIDDEN]).sort());
  });

  test('needs each column that it may update, and each table that it may insert into', async () => {
    const { rows } = await owner.query<{ table: string; privilege: string; column: string | null }>(
      `select table_name::text as table, 'insert' as privilege, null as column from information_schema.role_table_grants
       where grantee = $1 and privilege_type = 'INSERT' and table_schema = 'public'
       union all select table_name, 'update', column_name from information_schema.role_column_grants
       where grantee = $1 and privilege_type = 'UPDATE' and table_schema = 'public' order by 1, 2, 3`,
      [ROLE],
    );
    expect(rows.length).toBeGreaterThan(90);
    const idle: string[] = [];
    for (const { table, privilege, column } of rows) {
      await owner.query('begin');
      await owner.query(`revoke ${privilege} ${column === null ? '' : `(${column})`} on ${table} from ${ROLE}`);
      const outcomes: string[] = [];
      const { user } = inject('runtimeUser');
      const own = allStatements.filter(
        ({ name, text }) => !OWNERS.includes(name) && new RegExp(`\\b(into|update) ${table}\\b`).test(text),
      );
      await owner.query(`set local role ${user}`);
      for (const { text } of own) {
        await owner.query('savepoint one');
        outcomes.push(
          await owner.query(explained(text)).then(
            () => 'done',
            (error) => error.code,
          ),
        );
        await owner.query('rollback to one');
      }
      await owner.query('rollback');
      if (!outcomes.includes(FORBIDDEN)) idle.push(`${privilege} ${table} ${column ?? ''}`);
    }
    expect(idle).toEqual([]);
  });

  test('deletes and empties no table', async () => {
    const tables = [...new Set(columns.map(({ table }) => table))];
    expect(tables.length).toBeGreaterThan(30);
    const texts = tables.flatMap((table) => [
      `delete from ${table}`,
      `truncate ${table} cascade`,
      `lock table ${table} in access exclusive mode`,
    ]);
    expect(await tried(texts)).toEqual(forbidden(texts));
  });

  test('updates no column but those that the program updates: nothing of what an invoice promises or a transfer proves', async () => {
    const open: string[] = [];
    for (const { table, column } of columns) {
      const outcome = await ends(runtime, explained(`update ${table} set ${column} = default`));
      if (outcome !== FORBIDDEN) open.push(`${table}.${column}`);
    }
    const { rows } = await owner.query<{ name: string }>(
      `select table_name || '.' || column_name as name from information_schema.role_column_grants
       where grantee = $1 and privilege_type = 'UPDATE' and table_schema = 'public'`,
      [ROLE],
    );
    expect(open.sort()).toEqual(rows.map(({ name }) => name).sort());
    const ofLedger = /^(invoices|addresses|transfers|events|outgoing_\w+|transfer_\w+|producer_sets|passed_blocks)\./;
    expect(open.filter((name) => ofLedger.test(name))).toEqual([
      'addresses.freeze_block',
      'addresses.freeze_state',
      'addresses.retired_at',
      'invoices.event_count',
      'invoices.paid_mac',
      'invoices.paid_transfer_id',
      'invoices.status',
      'invoices.withdrawn_at',
      'invoices.withdrawn_mac',
    ]);
  });

  test('makes, changes and drops nothing, and switches no guard off', async () => {
    const texts = [
      'create table mine (id integer)',
      'create temporary table invoices (id integer)',
      'create function mine() returns integer language sql return 1',
      'create schema mine',
      'create role mine',
      'create view mine as select 1 as one',
      'create index on invoices (status)',
      'drop extension plpgsql',
      'create trigger mine before insert on invoices for each row execute function keep_paid_invoices()',
      'alter table invoices disable trigger all',
      'alter table invoices disable trigger invoices_keep_what_they_are',
      'alter table invoices drop constraint invoices_reservation',
      'alter table invoices add column mine integer',
      'alter table invoices rename to mine',
      `alter function keep_paid_invoices() set search_path = ''`,
      'create or replace function keep_paid_invoices() returns trigger language plpgsql as $$ begin return new; end $$',
      'drop trigger invoices_keep_what_they_are on invoices',
      'drop index invoices_expiry',
      'drop table sightings',
      'drop function keep_paid_invoices() cascade',
      'drop schema public cascade',
      `grant delete on invoices to ${inject('runtimeUser').user}; delete from invoices`,
      `alter role ${inject('runtimeUser').user} superuser`,
      `alter database ${database.connection.database} set session_replication_role = replica`,
      `set session_replication_role = replica`,
      'set role pg_execute_server_program',
    ];
    expect(await tried(texts)).toEqual(forbidden(texts));
    await expect(runtime.query('alter system set archive_mode = on')).rejects.toMatchObject({ code: FORBIDDEN });
  });

  test('runs no program, reads no file and no password of the server', async () => {
    const texts = [
      `copy (select 1) to program 'true'`,
      `copy logos from program 'true'`,
      `copy (select 1) to '/tmp/of-the-server'`,
      `select pg_read_file('PG_VERSION')`,
      `select pg_ls_dir('.')`,
      'select rolpassword from pg_authid',
      'select * from pg_shadow',
      `select lo_import('/etc/passwd')`,
      'select pg_switch_wal()',
      'select pg_reload_conf()',
    ];
    expect(await tried(texts)).toEqual(forbidden(texts));
  });

  test('calls those functions of the owner that it needs, which others may not', async () => {
    const { rows } = await owner.query<{ name: string; may: boolean; others: boolean; path: string[] | null }>(
      `select p.proname::text as name, has_function_privilege($1, p.oid, 'execute') as may,
         has_function_privilege('public', p.oid, 'execute') as others, p.proconfig as path
       from pg_proc p where p.pronamespace = 'public'::regnamespace and p.prosecdef order by 1`,
      [ROLE],
    );
    const bound = { may: true, others: false, path: null };
    expect(rows).toEqual([
      {
        name: 'forget_allocation_hints',
        ...{ may: false, others: false, path: ['search_path=pg_catalog, public, pg_temp'] },
      },
      { name: 'forget_claim_requests', ...bound },
      { name: 'forget_finished_deliveries', ...bound },
      { name: 'forget_head_blocks_above', ...bound },
      { name: 'forget_head_blocks_up_to', ...bound },
      { name: 'forget_old_arrivals', ...bound },
      { name: 'forget_old_notifications', ...bound },
      {
        name: 'forget_old_requests',
        ...{ may: true, others: false, path: ['search_path=pg_catalog, public, pg_temp'] },
      },
      { name: 'forget_old_sessions', ...bound },
      { name: 'forget_set_aside', ...bound },
      { name: 'forget_told_transfers', ...bound },
      { name: 'hurry_devnet_invoice', ...bound },
      { name: 'lock_transfers', ...bound },
    ]);
  });
});

describe('a user who owns nothing', () => {
  const service = ({ connection }: TestDatabase) =>
    startService({
      config: {
        ...{ host: '127.0.0.1', port: 0, publicUrl: null, databasePoolSize: 4, roles: ['api'], networks: {} },
        ...{ metrics: null, trustProxy: [], rateLimit: { perSecond: 1, burst: 1 } },
        webhooks: { localTargets: true, retentionDays: 90 },
      },
      ...{ connection, keyRing: TEST_KEY_RING, log: createLogger({ level: 'silent' }) },
    });
  const urls = ({ connectionString, ownerString }: TestDatabase) => {
    return { DATABASE_URL: connectionString, DATABASE_OWNER_URL: ownerString };
  };
  const CREATE = ['project', 'create', '--name', 'Shop', '--network', 'nile', '--json'];
  const FIX = /run "quittance migrate" with DATABASE_OWNER_URL/;

  /** Creates a database as left by a release whose newest migration was `version`. */
  async function databaseOf(version: number): Promise<TestDatabase> {
    const made = await createTestDatabase();
    onTestFinished(() => made.drop());
    await withClient(made.owner, (client) => client.query('drop schema public cascade; create schema public'));
    const db = openTestDatabase({ connection: made.owner });
    const migrations = await readMigrations();
    if (version > 0) await migrate(db, { migrations: migrations.slice(0, version) });
    await db.close();
    return made;
  }

  test('starts the service where no migration is missing', async () => {
    const own = await createTestDatabase();
    onTestFinished(() => own.drop());
    const db = openTestDatabase(own);
    expect(await findOwnership(db)).toEqual({ isMade: true, isOwner: false, mayRead: true });
    expect(await migrate(db)).toEqual([]);
    await db.close();
    const started = await service(own);
    expect((await fetch(`${started.url}/readyz`)).status).toBe(200);
    await started.stop();
  });

  test('starts nothing and migrates nothing where a migration is missing, and is told what does', async () => {
    const { length } = await readMigrations();
    for (const version of [0, length - 1]) {
      const older = await databaseOf(version);
      await withClient(older.owner, async (client) => {
        await client.query('grant usage on schema public to public');
        if (version > 0) await client.query(`grant select on schema_migrations to ${ROLE}`);
      });
      const refusal = { code: 'MIGRATIONS_PENDING', message: expect.stringMatching(FIX) };
      await expect(service(older)).rejects.toMatchObject(refusal);
      const { DATABASE_URL } = urls(older);
      const { code, json } = await runCli(['migrate', '--json'], { env: { DATABASE_URL } });
      expect(code).toBe(1);
      expect(json.error).toMatchObject(refusal);
    }
  });

  test('is told to have itself granted what it needs, where it may not even read', async () => {
    const older = await databaseOf(1);
    await withClient(older.owner, (client) => client.query('grant usage on schema public to public'));
    const message = expect.stringMatching(/grant quittance_runtime to .*"quittance migrate" with DATABASE_OWNER_URL/);
    await expect(service(older)).rejects.toMatchObject({ code: 'MIGRATIONS_PENDING', message });
  });

  test('works with the tables that migrate made by the URL of their owner, without another step', async () => {
    const empty = await databaseOf(0);
    const env = urls(empty);
    const { DATABASE_URL } = env;
    const names = (await readMigrations()).map(({ name }) => name);
    expect(await runCli(['migrate', '--json'], { env })).toMatchObject({ code: 0, json: { applied: names } });
    expect(await runCli(CREATE, { env: { DATABASE_URL } })).toMatchObject({ code: 0, stderr: '' });
    const started = await service(empty);
    await started.stop();
  });

  test('changes no table by a command, and is told which variable lets a command do so', async () => {
    const own = await createTestDatabase();
    onTestFinished(() => own.drop());
    const { DATABASE_URL } = urls(own);
    const started = await service(own);
    await started.stop();
    const { code, json } = await runCli(['backup', '--final', '--to', '/nowhere/x.backup', '--json'], {
      env: { DATABASE_URL },
    });
    expect(code).toBe(5);
    expect(json.error.message).toMatch(/must be owner of table invoices.* need DATABASE_OWNER_URL/);
  });

  test('has what this release grants after a migrate, and nothing more, whatever was granted before', async () => {
    const own = await createTestDatabase();
    onTestFinished(() => own.drop());
    await withClient(own.owner, (client) =>
      client.query(
        `revoke all on invoices from ${ROLE}; grant delete, update on invoices to ${ROLE}; grant create on schema public to public`,
      ),
    );
    expect(await runCli(['migrate', '--json'], { env: urls(own) })).toMatchObject({ code: 0, json: { applied: [] } });
    const client = new pg.Client(own.connection);
    await client.connect();
    const texts = ['delete from invoices', 'update invoices set payable_micro = 1', 'create table mine (id integer)'];
    for (const text of texts) expect(await ends(client, text), text).toBe(FORBIDDEN);
    expect(await ends(client, 'select from invoices')).toBe('done');
    await client.end();
  });

  test('is not left the right to make tables in a schema that its granter does not own: the migration says who must', async () => {
    const empty = await databaseOf(0);
    const [user, password] = [`owner_${randomUUID().replaceAll('-', '')}`, randomUUID()];
    await withClient(empty.owner, async (client) => {
      // As in a cluster that was upgraded from PostgreSQL 14 or older.
      await client.query(
        `create role ${user} login password '${password}'; grant usage, create on schema public to public`,
      );
      await client.query(`alter database ${empty.owner.database} owner to ${user}`);
    });
    const db = openTestDatabase({ connection: { ...empty.owner, user, password } });
    onTestFinished(async () => {
      await db.close();
      await withClient(empty.owner, async (client) => {
        await client.query(`alter database ${empty.owner.database} owner to current_user; drop owned by ${user}`);
        await client.query(`drop role ${user}`);
      });
    });
    const message = expect.stringContaining(`as a superuser, run: alter schema public owner to ${user}`);
    await expect(migrate(db)).rejects.toMatchObject({ code: 'MIGRATION_REFUSED', message });
    await withClient(empty.owner, (client) => client.query(`alter schema public owner to ${user}`));
    expect(await migrate(db)).toHaveLength((await readMigrations()).length);
    const client = new pg.Client(empty.connection);
    await client.connect();
    expect(await ends(client, 'create table mine (id integer)')).toBe(FORBIDDEN);
    await client.end();
  });
});
