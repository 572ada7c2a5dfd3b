import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/core/runtime/log.ts';
import { readMigrations } from '../../src/core/store/db/migrate.ts';
import { startEmbeddedPostgres } from '../../src/core/store/embedded/embedded.ts';
import { runSql } from '../contract/sql.ts';
import { fillLedger, forgetProofs } from '../support/full-ledger.ts';
import { newLedger } from '../support/ledger-copies.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';
import { newDirectory, runCli, startProcess } from './run-cli.ts';

const QUITTANCE_MASTER_KEY = 'A'.repeat(43).concat('=');

test('a restore that is killed leaves the database empty, and the next one succeeds', async () => {
  const source = await newLedger();
  await fillLedger(source.client, (await readMigrations()).length);
  await forgetProofs(source.client);
  const folder = newDirectory();
  const file = join(folder, 'ledger.backup');
  await runCli(['backup', '--to', file], { env: { DATABASE_URL: source.connectionString, QUITTANCE_MASTER_KEY } });
  const target = await newLedger();
  const watching = await newLedger();
  // Holds the restore when all but the last tables are loaded: a trigger's function waits for our lock.
  await target.client.query('select pg_advisory_lock(77)');
  await target.client.query(`create function wait() returns event_trigger language plpgsql as $$ begin
    if tg_tag = 'ALTER TABLE' then perform pg_advisory_xact_lock(77); end if; end $$;
    create event trigger hold on ddl_command_start execute function wait()`);
  const child = startProcess(['restore', file], {
    env: { DATABASE_URL: target.connectionString, DATABASE_OWNER_URL: target.ownerString, QUITTANCE_MASTER_KEY },
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const isWaiting = async (wanted: number) =>
    eventually(
      async () => {
        const found = `select count(*)::int as count from pg_stat_activity
          where datname = '${target.connection.database}' and application_name = 'quittance backup'`;
        return (await watching.client.query(`${found} ${wanted === 0 ? '' : `and wait_event_type = 'Lock'`}`)).rows[0]
          .count;
      },
      (count) => count === wanted,
    );
  await isWaiting(1);
  child.kill('SIGKILL');
  await ended;
  await target.client.query('drop event trigger hold; select pg_advisory_unlock(77)');
  await isWaiting(0);
  expect((await target.client.query('select from projects')).rowCount).toBe(0);
  const env = { DATABASE_URL: target.connectionString, DATABASE_OWNER_URL: target.ownerString, QUITTANCE_MASTER_KEY };
  expect(await runCli(['restore', file, '--json'], { env })).toMatchObject({
    code: 0,
    json: { rowCounts: { projects: 2, invoices: 6 }, missingMasterKeyIds: ['0123456789abcdef', 'abababababababab'] },
  });
});

test('the embedded database is backed up while it runs, and moves to another data directory', async () => {
  const [from, to] = [join(newDirectory(), 'data'), join(newDirectory(), 'data')];
  const file = join(newDirectory(), 'moved.backup');
  const at = (QUITTANCE_DATA_DIR: string) => ({ env: { QUITTANCE_DATA_DIR, QUITTANCE_MASTER_KEY } });
  const project = ['project', 'create', '--name', 'Shop', '--network', 'nile', '--json'];
  const mistyped = await runCli(['restore', `${file}.mistyped`], at(from));
  expect(mistyped).toEqual({
    code: 3,
    stdout: '',
    stderr: expect.stringMatching(/^error: the file .*mistyped does not exist\n$/),
  });
  expect((await runCli(project, at(from))).code).toBe(0);
  const log = createLogger({ level: 'silent' });
  const postgres = await startEmbeddedPostgres({ dataDir: from, log, isDurable: false });
  try {
    expect(await runCli(['backup', '--to', `${file}.nightly`], at(from))).toMatchObject({ code: 0 });
    expect(await runCli(['restore', `${file}.nightly`, '--json'], at(from))).toMatchObject({ code: 4 });
    expect(await runCli(['backup', '--final', '--to', file], at(from))).toMatchObject({ code: 4 });
    expect(await runCli(['backup', '--to', `${file}.nightly`], at(from))).toMatchObject({ code: 4 });
  } finally {
    await postgres.stop();
  }
  expect(await runCli(['backup', '--final', '--to', file, '--json'], at(from))).toMatchObject({
    code: 0,
    json: { final: true, rowCounts: { projects: 1 } },
  });
  expect(await runCli(['restore', file, '--json'], at(to))).toMatchObject({ code: 0, json: { final: true } });
  expect((await runCli(['project', 'list', '--json'], at(to))).json.data).toHaveLength(1);
});

test('every role and every command refuses a database of a newer release', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  await runSql(database, `insert into schema_migrations (version, name, sha256) values (9999, '9999_later.sql', 'x')`);
  const env = {
    DATABASE_URL: database.connectionString,
    QUITTANCE_NILE_NODES: 'http://127.0.0.1:1',
    QUITTANCE_MASTER_KEY,
  };
  const T = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
  const id = (prefix: string) => `${prefix}_01k6s0000000000000000000aa`;
  const commands = [
    ['migrate'],
    ['backup', '--to', join(newDirectory(), 'x.backup')],
    ['backup', '--final', '--to', join(newDirectory(), 'y.backup')],
    ['restore', 'accept', '--retire-addresses'],
    ['project', 'create', '--name', 'x', '--network', 'nile'],
    ['project', 'update', '--name', 'x'],
    ['key', 'create'],
    ['key', 'revoke', id('key')],
    ['address', 'add', T],
    ['address', 'retire', T],
    ['address', 'activate', T],
    ['webhook', 'add', '--url', 'https://shop.example/hook'],
    ['webhook', 'rotate', id('whe')],
    ['webhook', 'enable', id('whe')],
    ['webhook', 'disable', id('whe')],
    ['master-key', 'rotate'],
    ['receipt', 'rotate'],
    ['chain', 'resume', '--yes'],
    ['chain', 'acknowledge', '--alarm', 'contract-event'],
    ['chain', 'rescan', '--from', '1', '--to', '2'],
    ['chain', 'producers', '--accept', '--yes'],
    ['reconcile'],
    ['transfers', 'resolve', id('trf'), '--as', 'kept'],
    ['deliveries', 'replay', id('evt')],
  ];
  const outcomes = await Promise.all(
    commands.map(async (args) => [args.join(' '), (await runCli([...args, '--json'], { env })).json?.error?.code]),
  );
  expect(outcomes).toEqual(commands.map((args) => [args.join(' '), 'SCHEMA_NEWER']));
});
