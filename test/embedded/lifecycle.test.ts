import { existsSync } from 'node:fs';
import { appendFile, lstat, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { createLogger } from '../../src/core/runtime/log.ts';
import { readRunningPostgres } from '../../src/core/store/embedded/connection.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/core/store/embedded/embedded.ts';
import { longTest } from '../support/some-cases.ts';
import { copyProject, nativePath } from './project-copy.ts';
import { IS_LINUX, makeDirectory, processesOf, query, ready, spawnServer, stop } from './server.ts';

const log = createLogger({ level: 'silent' });

async function modeOf(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o777).toString(8);
}

describe('a running embedded PostgreSQL', () => {
  let dataDir: string;
  let postgres: EmbeddedPostgres;
  beforeAll(async () => {
    dataDir = join(await makeDirectory(), 'made', 'by', 'us');
    postgres = await startEmbeddedPostgres({ dataDir, log });
  });
  afterAll(() => postgres.stop());

  test('is durable, speaks UTF-8 in the C locale and UTC, and has no TCP port', async () => {
    const names = [
      'fsync',
      'synchronous_commit',
      'full_page_writes',
      'listen_addresses',
      'server_encoding',
      'TimeZone',
      'data_checksums',
    ];
    const rows = await query(
      postgres.connection,
      `select ${names.map((name) => `current_setting('${name}') as "${name}"`).join(', ')}`,
    );
    expect(rows).toEqual([
      {
        fsync: 'on',
        synchronous_commit: 'on',
        full_page_writes: 'on',
        listen_addresses: '',
        server_encoding: 'UTF8',
        TimeZone: 'UTC',
        data_checksums: 'on',
      },
    ]);
    const [database] = await query(
      postgres.connection,
      'select datcollate, datctype from pg_database where datname = current_database()',
    );
    expect(database).toEqual({ datcollate: 'C', datctype: 'C' });
  });

  test('can be reached by its owner only: socket directory, password and connection file are private', async () => {
    expect(await modeOf(postgres.connection.host)).toBe('700');
    expect(await modeOf(join(dataDir, 'postgres.password'))).toBe('600');
    expect(await modeOf(join(dataDir, 'postgres.json'))).toBe('600');
    expect(await modeOf(join(dataDir, 'postgres'))).toBe('700');
    expect(await modeOf(dataDir)).toBe(process.getuid?.() === 0 ? '711' : '700');
  });

  test('refuses a wrong password', async () => {
    const wrong = { ...postgres.connection, password: 'wrong' };
    await expect(query(wrong, 'select 1')).rejects.toThrow(/password authentication failed/);
  });

  test('is found by other processes on the same data directory', async () => {
    expect(await readRunningPostgres(dataDir)).toEqual(postgres.connection);
    expect(await readRunningPostgres(await makeDirectory())).toBeNull();
  });

  test('keeps a second process off the data directory, and survives the attempt', async () => {
    const second = spawnServer(dataDir);
    expect(await second.next()).toMatchObject({
      kind: 'failed',
      code: 'DATA_DIR_IN_USE',
      message: expect.stringContaining(`process ${process.pid}`),
    });
    await expect(startEmbeddedPostgres({ dataDir, log })).rejects.toMatchObject({ code: 'DATA_DIR_IN_USE' });
    expect(await query(postgres.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('tells its children nothing of our environment', async () => {
    if (!IS_LINUX) return;
    const processes = await processesOf(join(dataDir, 'postgres'));
    expect(processes.length).toBeGreaterThanOrEqual(3);
    for (const { pid } of processes) {
      // A process that has ended since was a connection.
      expect(await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')).not.toContain('VITEST');
    }
  });
});

longTest(
  'stopping leaves no process and no socket, may be done twice, and the data is there after the next start',
  async () => {
    const dataDir = await makeDirectory();
    const onExit = vi.fn();
    const first = await startEmbeddedPostgres({ dataDir, log, onExit });
    await query(first.owner, 'create table kept (value text)');
    await query(first.owner, "insert into kept (value) values ('here')");
    await Promise.all([first.stop(), first.stop()]);
    await first.stop();
    expect(existsSync(first.connection.host)).toBe(false);
    expect(await readRunningPostgres(dataDir)).toBeNull();
    if (IS_LINUX) expect(await processesOf(dataDir)).toEqual([]);

    // An over-long log is truncated at the start.
    await appendFile(join(dataDir, 'postgres', 'postgres.log'), `${'x'.repeat(1023)}\n`.repeat(11 * 1024));
    const second = await startEmbeddedPostgres({ dataDir, log, onExit });
    expect(await query(second.owner, 'select value from kept')).toEqual([{ value: 'here' }]);
    expect((await stat(join(dataDir, 'postgres', 'postgres.log'))).size).toBeLessThan(2 * 1024 * 1024);
    await second.stop();
    expect(onExit).not.toHaveBeenCalled();

    // The password file was lost, so the owner of the files gets a new password.
    await rm(join(dataDir, 'postgres.password'));
    const third = await startEmbeddedPostgres({ dataDir, log });
    expect(third.owner.password).not.toBe(first.owner.password);
    expect(await query(third.owner, 'select value from kept')).toEqual([{ value: 'here' }]);
    await third.stop();

    // The password file was mixed up: the error is clear, and the solution that it names works.
    await writeFile(join(dataDir, 'postgres.password'), 'of another database\n');
    await expect(startEmbeddedPostgres({ dataDir, log })).rejects.toMatchObject({
      code: 'EMBEDDED_FAILED',
      message: expect.stringMatching(/password authentication failed.*delete it and start again/),
    });
    if (IS_LINUX) expect(await processesOf(dataDir)).toEqual([]);
  },
);

longTest(
  'the service and commands work as a user who owns nothing and runs no program of the server, also over a directory of before',
  async () => {
    const dataDir = await makeDirectory();
    const first = await startEmbeddedPostgres({ dataDir, log });
    // As left by a release with only one database user.
    await query(first.owner, 'drop role quittance_service; drop role quittance_runtime');
    await first.stop();
    const { connection, owner, stop } = await startEmbeddedPostgres({ dataDir, log });
    expect(await readRunningPostgres(dataDir)).toEqual(connection);
    const roles = `select rolname, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls from pg_roles
    where rolname in (current_user, 'quittance_runtime') order by rolname`;
    const rights = {
      rolsuper: false,
      rolcreaterole: false,
      rolcreatedb: false,
      rolreplication: false,
      rolbypassrls: false,
    };
    expect(await query(connection, roles)).toEqual([
      { rolname: 'quittance_runtime', ...rights },
      { rolname: 'quittance_service', ...rights },
    ]);
    for (const text of [
      `copy (select 1) to program 'true'`,
      'create table mine (id integer)',
      'select rolpassword from pg_authid',
      'alter system set archive_mode = on',
    ]) {
      await expect(query(connection, text), text).rejects.toMatchObject({ code: '42501' });
    }
    // Neither password opens the other's account.
    await expect(query({ ...owner, password: connection.password }, 'select 1')).rejects.toThrow(
      /authentication failed/,
    );
    expect(await readFile(join(dataDir, 'postgres.json'), 'utf8')).not.toContain(owner.password);
    await stop();
  },
);

test('a temporary directory with a long path gives way to /tmp, for a socket has room for 100 bytes', async () => {
  const long = join(inject('runDirectory'), 'x'.repeat(100));
  await mkdir(long, { mode: 0o777 });
  const server = spawnServer(await makeDirectory(), { env: { TMPDIR: long } });
  const { host } = await ready(server);
  expect(host).toMatch(/^\/tmp\/quittance-\w{6}$/);
  await stop(server);
  expect(existsSync(host)).toBe(false);
});

test('after "npm ci --ignore-scripts" it makes the links that its package makes in an install script', async () => {
  const project = await makeDirectory(0o755);
  const script = await copyProject(project, { hasBinaries: true });
  const links: { target: string }[] = JSON.parse(await readFile(join(nativePath(project), 'pg-symlinks.json'), 'utf8'));
  const paths = links.map(({ target }) => join(nativePath(project), '..', target));
  expect(paths.length).toBeGreaterThan(0);
  for (const path of paths) await rm(path, { force: true });
  const server = spawnServer(join(project, 'data'), { script });
  expect(await query(await ready(server), 'select 1 as one')).toEqual([{ one: 1 }]);
  await stop(server);
  for (const path of paths) expect([path, (await lstat(path)).isSymbolicLink()]).toEqual([path, true]);
});
