import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { withDatabase } from '../../src/cli/terminal/with-database.ts';
import { lockDataDir } from '../../src/core/runtime/instance-lock.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { migrate, readMigrations } from '../../src/core/store/db/migrate.ts';
import { startEmbeddedPostgres } from '../../src/core/store/embedded/embedded.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { longTest } from '../support/some-cases.ts';
import { recordTerminal } from '../support/terminal.ts';
import { newDirectory, runCli, runProcess } from './run-cli.ts';

const databases: TestDatabase[] = [];
afterAll(() => Promise.all(databases.map((database) => database.drop())));

async function newDatabase(...changes: string[]): Promise<{ DATABASE_URL: string; DATABASE_OWNER_URL: string }> {
  const database = await createTestDatabase();
  databases.push(database);
  await withClient(database.owner, async (client) => {
    for (const change of changes) await client.query(change);
  });
  return { DATABASE_URL: database.connectionString, DATABASE_OWNER_URL: database.ownerString };
}

const MIGRATIONS = readdirSync(new URL('../../migrations/', import.meta.url))
  .filter((name) => name.endsWith('.sql'))
  .sort();
test('released migrations stay as they are, and new ones come after them', async () => {
  const lines = (await readMigrations()).map(({ name, sha256 }) => `${sha256}  ${name}\n`);
  await expect(lines.join('')).toMatchFileSnapshot('migrations.sha256');
});

const CREATE = ['project', 'create', '--name', 'Shop', '--network', 'nile', '--json'];

describe('with DATABASE_URL', () => {
  test('a database without our tables is migrated by migrate only, once', async () => {
    const env = await newDatabase('drop schema public cascade', 'create schema public');
    const before = await runCli(['project', 'list', '--json'], { env });
    expect(before.code).toBe(1);
    expect(before.json.error).toMatchObject({
      code: 'MIGRATIONS_PENDING',
      message: expect.stringContaining('run "quittance migrate"'),
    });
    const first = await runCli(['migrate', '--json'], { env });
    expect(first).toMatchObject({
      code: 0,
      json: {
        database: 'external',
        applied: MIGRATIONS,
      },
    });
    const second = await runCli(['migrate'], { env });
    expect(second).toMatchObject({ code: 0, stdout: 'the schema is up to date\n' });
    expect((await runCli(CREATE, { env })).code).toBe(0);
  });

  test('migrate says what somebody changed of the schema', async () => {
    const env = await newDatabase('drop index transfers_pay_once');
    const { code, json } = await runCli(['migrate', '--json'], { env });
    expect({ code, error: json.error.code }).toEqual({ code: 1, error: 'SCHEMA_CHANGED' });
    expect(json.error.message).toContain('index transfers.transfers_pay_once is missing');
  });

  test('a database of a newer release is refused with the fix', async () => {
    const env = await newDatabase(
      "insert into schema_migrations (version, name, sha256) values (9999, '9999_later.sql', 'x')",
    );
    for (const command of ['migrate', 'project list'].map((text) => text.split(' '))) {
      const { code, json } = await runCli([...command, '--json'], { env });
      expect(code).toBe(1);
      expect(json.error).toMatchObject({ code: 'SCHEMA_NEWER', message: expect.stringContaining('9999_later.sql') });
    }
  });

  test('a wrong address, password or name of the database is said, with the fix and without the password', async () => {
    const { DATABASE_URL } = await newDatabase();
    const url = new URL(DATABASE_URL);
    const changed = (change: (copy: URL) => void) => {
      const copy = new URL(url);
      change(copy);
      return copy.href;
    };
    const wrong: [url: string, says: string][] = [
      ['postgres://u:h0rse@127.0.0.1:1/quittance', 'nothing is listening there'],
      ['postgres://u:h0rse@quittance.invalid/quittance?sslmode=verify-full', 'correct the host'],
      [changed((copy) => (copy.password = 'h0rse')), 'correct the user or the password'],
      [changed((copy) => (copy.pathname = '/nowhere')), 'create the database'],
    ];
    await Promise.all(
      wrong.map(async ([DATABASE_URL, says]) => {
        const { code, json, stdout, stderr } = await runCli(['project', 'list', '--json'], { env: { DATABASE_URL } });
        expect(json.error).toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
        // A host that doesn't exist may also be reported as a name server that doesn't answer.
        expect(json.error.message).toMatch(says === 'correct the host' ? /correct the host|DNS server/ : says);
        expect(code).toBe(5);
        for (const secret of ['h0rse', url.password]) expect(stdout + stderr).not.toContain(secret);
      }),
    );
  });

  test('a user of the database who may not make tables is told who must', async () => {
    const role = `quittance_test_${process.pid}_${databases.length}`;
    const { DATABASE_URL } = await newDatabase(
      'drop schema public cascade',
      'create schema public',
      `create role ${role} login password 'h0rse'`,
      `grant usage on schema public to ${role}`,
    );
    const database = databases.at(-1);
    const url = new URL(DATABASE_URL);
    [url.username, url.password] = [role, 'h0rse'];
    const { code, json, stderr } = await runCli(['migrate', '--json'], { env: { DATABASE_URL: url.href } });
    if (database !== undefined)
      await withClient(database.owner, (client) => client.query(`drop owned by ${role}; drop role ${role}`));
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(json.error.message).toMatch(/no Quittance tables yet.* run "quittance migrate" with DATABASE_OWNER_URL/);
  });
});

// Uses separate processes, because the locks of a data directory work between processes.
describe('with the embedded database', () => {
  longTest(
    'only a command that makes something makes a data directory; commands at once take turns; nothing is left running',
    async () => {
      const dataDir = join(newDirectory(), 'data');
      const env = { QUITTANCE_DATA_DIR: dataDir };
      const early = await runProcess(['project', 'list', '--json'], { env });
      expect(early).toMatchObject({ code: 3, json: { error: { message: expect.stringContaining(dataDir) } } });
      const created = await Promise.all([runProcess(CREATE, { env }), runProcess(CREATE, { env })]);
      expect(created.map(({ code }) => code)).toEqual([0, 0]);
      const { json } = await runProcess(['project', 'list', '--json'], { env });
      expect(json.data.map(({ projectId }: { projectId: string }) => projectId).sort()).toEqual(
        created.map(({ json }) => json.projectId).sort(),
      );
      for (const lock of ['instance.lock', 'postgres.lock', 'command.lock'])
        await (await lockDataDir(dataDir, lock)).release();
    },
  );

  longTest('a command beside a running instance uses the database of the instance', async () => {
    const dataDir = join(newDirectory(), 'data');
    const lock = await lockDataDir(dataDir);
    const postgres = await startEmbeddedPostgres({ dataDir, log: createLogger({ level: 'warn' }), isDurable: false });
    const db = openDatabase({
      connection: postgres.owner,
      poolSize: 2,
      applicationName: 'test',
      onError: () => {},
    });
    try {
      const env = { QUITTANCE_DATA_DIR: dataDir };
      const early = await runProcess(CREATE, { env });
      expect(early).toMatchObject({ code: 1, json: { error: { message: expect.stringContaining('restart it') } } });
      await migrate(db);
      expect(await runProcess(CREATE, { env })).toMatchObject({ code: 0, stderr: '' });
      // A long command, such as an export piped into a pager, doesn't make others wait.
      const terminal = recordTerminal({ json: true, env });
      const inside = await withDatabase(terminal, () => withDatabase(terminal, async ({ kind }) => kind));
      expect(inside).toBe('embedded');
    } finally {
      await db.close();
      await postgres.stop();
      await lock.release();
    }
  });

  longTest('a data directory of an older release is migrated by migrate only', async () => {
    const dataDir = join(newDirectory(), 'data');
    const postgres = await startEmbeddedPostgres({ dataDir, log: createLogger({ level: 'warn' }), isDurable: false });
    const db = openDatabase({
      connection: postgres.owner,
      poolSize: 1,
      applicationName: 'test',
      onError: () => {},
    });
    try {
      await migrate(db, { migrations: (await readMigrations()).slice(0, 2) });
    } finally {
      await db.close();
      await postgres.stop();
    }
    const env = { QUITTANCE_DATA_DIR: dataDir };
    const early = await runProcess(['project', 'list', '--json'], { env });
    expect(early.json.error).toMatchObject({
      code: 'MIGRATIONS_PENDING',
      message: expect.stringContaining('quittance migrate'),
    });
    const { json } = await runProcess(['migrate', '--json'], { env });
    expect(json).toEqual({
      database: 'embedded',
      applied: MIGRATIONS.slice(2),
    });
    expect((await runProcess(['project', 'list', '--json'], { env })).code).toBe(0);
  });
});
