import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMasterKey } from '../../src/core/runtime/key-ring.ts';
import { raiseAlarm, resolveAlarms } from '../../src/core/store/chain/alarms.ts';
import { runSql } from '../contract/sql.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { eventually, startTestService, type TestService } from '../support/service.ts';
import { countSeconds, examine, expectNamed, type Fault, pastGuards, told } from './doctored.ts';

let service: TestService;
beforeAll(async () => {
  // Blocks are made automatically; otherwise the watcher would be blind.
  service = await startTestService({ config: { rowMacs: 'ledger' }, blockMs: 250 });
});
afterAll(() => service.stop());

const sql = (running: TestService, text: string) => runSql(running, text);

/** Changes a server setting for the service's user in this database only. Existing connections keep the old value. */
async function setForUser(running: TestService, setting: string): Promise<() => Promise<unknown>> {
  const { username, pathname } = new URL(running.connectionString);
  const who = `role "${username}" in database "${pathname.slice(1)}"`;
  await sql(running, `alter ${who} set ${setting}`);
  return () => sql(running, `alter ${who} reset all`);
}

/** Creates a separate database, for changes that can't be undone. */
async function ownDatabase(change: string | null) {
  const database = await createTestDatabase();
  if (change !== null) await runSql(database, change);
  return { connection: database.connectionString, undo: () => database.drop() };
}

const FAULTS: Fault[] = [
  {
    ...{
      title: 'the owner of the tables as the user',
      check: 'database-rights',
      state: 'warning',
      fix: /owns no tables/,
    },
    plant: (running) => ({ connection: running.ownerString }),
  },
  {
    ...{ title: 'a user who may add no invoice', check: 'database-rights', state: 'failed', fix: /three commands/ },
    plant: async () => {
      const database = await createTestDatabase();
      const user = new URL(database.connectionString).username;
      await runSql(database, `revoke insert on invoices from quittance_runtime, "${user}"`);
      return { connection: database.connectionString, undo: () => database.drop() };
    },
  },
  {
    ...{ title: 'a database without room', check: 'database-disk', state: 'failed', fix: /Free disk space/ },
    plant: async (running) => ({ undo: await setForUser(running, "temp_file_limit = '100kB'") }),
  },
  {
    ...{
      title: 'commits that are not on the disk',
      check: 'database-durability',
      state: 'failed',
      fix: /Turn them on/,
    },
    plant: async (running) => ({ undo: await setForUser(running, 'synchronous_commit = off') }),
  },
  {
    ...{
      title: 'a pool that no server has room for',
      check: 'database-connections',
      state: 'failed',
      fix: /QUITTANCE_DATABASE_POOL/,
    },
    plant: () => ({ settings: { databasePoolSize: 100_000 } }),
  },
  {
    ...{ title: 'a schema that lacks a migration', check: 'migrations', state: 'failed', fix: /quittance migrate/ },
    plant: () =>
      ownDatabase('delete from schema_migrations where version = (select max(version) from schema_migrations)'),
  },
  {
    ...{ title: 'a database without our tables', check: 'migrations', state: 'failed', fix: /quittance migrate/ },
    plant: () => ownDatabase('drop table schema_migrations cascade'),
  },
  {
    ...{ title: 'a guard that somebody switched off', check: 'schema', state: 'failed', fix: /restore it/ },
    plant: async (running) => {
      await sql(running, 'alter table events disable trigger user');
      return { undo: () => sql(running, 'alter table events enable trigger user') };
    },
  },
  {
    ...{ title: 'a copy of the database', check: 'ledger', state: 'failed', fix: /before you start any process/ },
    plant: async (running) => {
      await pastGuards(running, 'ledger_identity', 'update ledger_identity set database_oid = database_oid + 1');
      return {
        undo: () =>
          pastGuards(running, 'ledger_identity', 'update ledger_identity set database_oid = database_oid - 1'),
      };
    },
  },
  {
    ...{ title: 'another master key', check: 'master-key', state: 'failed', fix: /master keys/ },
    plant: () => ({ settings: { masterKeys: [createMasterKey().bytes.toString('base64')] } }),
  },
  {
    ...{ title: 'no master key', check: 'master-key', state: 'failed', fix: /master keys/ },
    plant: () => ({ settings: { masterKeys: null } }),
  },
  {
    ...{ title: 'a row that somebody changed', check: 'seals', state: 'failed', fix: /A row was changed/ },
    plant: async (running) => {
      // A running service might notice it too, and its alarm would stay until someone closes it.
      await running.stopService();
      await pastGuards(running, 'projects', "update projects set name = name || '!'");
      return {
        undo: async () => {
          await pastGuards(running, 'projects', "update projects set name = rtrim(name, '!')");
          await running.restart();
        },
      };
    },
  },
  {
    ...{
      title: 'a row that somebody inserted without a seal',
      check: 'seals',
      state: 'failed',
      fix: /A row was changed/,
    },
    plant: async (running) => {
      await running.stopService();
      const [row] = await sql(running, 'select id, mac from projects');
      await pastGuards(running, 'projects', 'update projects set mac = null where id = $1', [row?.['id']]);
      return {
        undo: async () => {
          await pastGuards(running, 'projects', 'update projects set mac = $2 where id = $1', [
            row?.['id'],
            row?.['mac'],
          ]);
          await running.restart();
        },
      };
    },
  },
  {
    ...{ title: 'seals that are off', check: 'seals', state: 'warning', fix: /QUITTANCE_ROW_MACS/ },
    plant: () => ({ settings: { rowMacs: 'off' } }),
  },
  {
    ...{ title: 'seals that only warn', check: 'seals', state: 'warning', fix: /QUITTANCE_ROW_MACS=require/ },
    plant: () => ({ settings: { rowMacs: 'warn' } }),
  },
  {
    ...{ title: 'an open alarm', check: 'alarms', state: 'failed', fix: /nodes/ },
    plant: async (running) => {
      const id = '00000000-0000-4000-8000-000000000001';
      await raiseAlarm(running.db, 'nile', { id, kind: 'blind', subject: '', detail: 'planted' });
      return { undo: () => resolveAlarms(running.db, 'nile', 'blind') };
    },
  },
  {
    ...{ title: 'a watcher that is halted', check: 'chain', state: 'failed', fix: /quittance chain resume/ },
    plant: async (running) => {
      await running.stopService();
      await sql(running, "update chain_cursors set halted_at = now(), halt_reason = 'planted'");
      return {
        undo: async () => {
          await sql(running, 'update chain_cursors set halted_at = null, halt_reason = null');
          await running.restart();
        },
      };
    },
  },
  {
    ...{ title: 'a network that nobody watches', check: 'networks-watched', state: 'failed', fix: /watcher role/ },
    plant: async (running) => {
      await running.stopService();
      await sql(running, "update leases set expires_at = now() - interval '5 minutes'");
      return { undo: () => running.restart() };
    },
  },
];

test.each(FAULTS)('$title is named by $check', (fault) => expectNamed(service, fault));

test('a service that is well is called so', async () => {
  // It has only just been restarted.
  const view = await eventually(
    () => examine(service),
    (seen) =>
      ['chain', 'alarms', 'networks-watched', 'service', 'streams'].every((name) => told(seen, name).state === 'good'),
  );
  const wrong = view.checks.filter(({ state }) => state === 'failed').map(({ name }) => name);
  // The tests' server doesn't sync to disk, for speed.
  expect(wrong).toEqual(['database-durability']);
  for (const name of ['database', 'postgres-release', 'database-rights', 'database-disk', 'migrations', 'schema']) {
    expect(told(view, name), name).toMatchObject({ state: 'good' });
  }
  for (const name of ['ledger', 'master-key', 'seals', 'alarms', 'networks-watched', 'chain', 'service']) {
    expect(told(view, name), name).toMatchObject({ state: 'good' });
  }
  expect(view.checks.length).toBeGreaterThanOrEqual(25);
  expect(new Set(view.checks.map(({ name }) => name)).size).toBe(view.checks.length);
});

test('a table that somebody locks holds up its own checks alone', async () => {
  const client = new pg.Client({ connectionString: service.ownerString });
  await client.connect();
  try {
    await client.query('begin');
    await client.query('lock table webhook_endpoints in access exclusive mode');
    const { result: view, seconds } = await countSeconds(() => examine(service));
    expect(seconds).toBeLessThan(10);
    expect(told(view, 'receivers')).toMatchObject({ state: 'failed' });
    expect(told(view, 'capacity')).toMatchObject({ state: 'good' });
    expect(told(view, 'nodes-answer')).toMatchObject({ state: 'good' });
  } finally {
    await client.end();
  }
});
