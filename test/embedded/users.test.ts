import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import {
  chmod,
  chown,
  mkdir,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { basename, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { printDatabases, printRemovedDatabases } from '../../src/cli/database/database.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { removeSharedHome } from '../../src/core/store/embedded/cluster.ts';
import { startEmbeddedPostgres } from '../../src/core/store/embedded/embedded.ts';
import { withScratch } from '../../src/faces/operator/backup/verify-backup.ts';
import { longTest } from '../support/some-cases.ts';
import { recordTerminal } from '../support/terminal.ts';
import { copyProject, nativePath } from './project-copy.ts';
import { IS_LINUX, IS_ROOT, makeDirectory, processesOf, query, ready, spawnServer, stop } from './server.ts';

const NOBODY = 65_534;

type Listed = { directory: string; dataDirectory: string | null; state: string; bytes: number; lastUsedAt: string };

// Only root can become other users, and listing processes requires /proc.
describe.skipIf(!IS_ROOT || !IS_LINUX)('PostgreSQL started by root', () => {
  test('runs as another user, and so do its guardian and its children', async () => {
    const dataDir = await makeDirectory();
    const server = spawnServer(dataDir);
    await ready(server);
    const processes = (await processesOf(join(dataDir, 'postgres'))).map(({ pid }) => pid);
    expect(processes.length).toBeGreaterThan(3);
    // A process that has ended since was a connection.
    for (const pid of processes) expect((await stat(`/proc/${pid}`).catch(() => null))?.uid).not.toBe(0);
    await stop(server);
  });

  longTest('takes over the database of an ordinary user as that user, who can go on with it afterwards', async () => {
    const dataDir = await makeDirectory();
    await chown(dataDir, NOBODY, NOBODY);
    for (const [round, owner] of [{ uid: NOBODY, gid: NOBODY }, {}, { uid: NOBODY, gid: NOBODY }].entries()) {
      const server = spawnServer(dataDir, owner);
      const connection = await ready(server);
      await query(connection, 'create table if not exists rounds (round integer)');
      await query(connection, `insert into rounds (round) values (${round})`);
      expect(await query(connection, 'select count(*)::integer as count from rounds')).toEqual([{ count: round + 1 }]);
      await stop(server);
    }
  });

  longTest('refuses the database of root’s own files, and says how to give it away', async () => {
    const dataDir = await makeDirectory();
    await stop(await started(dataDir));
    await chown(join(dataDir, 'postgres'), 0, 0);
    expect(await spawnServer(dataDir).next()).toMatchObject({
      kind: 'failed',
      code: 'EMBEDDED_UNREACHABLE',
      message: expect.stringMatching(/belongs to uid 0.*chown -R/),
    });
  });

  test('an ordinary user is refused the database of another user, and told so', async () => {
    const dataDir = await makeDirectory();
    await stop(await started(dataDir));
    await chmod(dataDir, 0o777);
    expect(await spawnServer(dataDir, { uid: NOBODY, gid: NOBODY }).next()).toMatchObject({
      kind: 'failed',
      code: 'EMBEDDED_UNREACHABLE',
      message: expect.stringMatching(/belongs to uid \d+.*Start Quittance as the user that created it/),
    });
  });

  longTest(
    'root removes of the scratch databases in the temporary directory its own alone, and what is another user’s by their rights',
    async () => {
      const shared = await makeDirectory(0o777);
      vi.stubEnv('TMPDIR', shared);
      const of = (name: string) => join(shared, `quittance-verify-2147483646-${name}`);
      const [own, strangers, link, mixed] = [of('own'), of('strangers'), of('link'), of('mixed')];
      const victim = await makeDirectory(0o700);
      await writeFile(join(victim, 'books'), 'kept');
      for (const path of [own, strangers]) await mkdir(join(path, 'data'), { recursive: true });
      await chown(strangers, NOBODY, NOBODY);
      await symlink(victim, link);
      const cluster = join(mixed, 'shared', 'cluster');
      await mkdir(join(cluster, 'roots', 'more'), { recursive: true });
      await chown(cluster, NOBODY, NOBODY);
      await withScratch(
        { log: createLogger({ level: 'warn', destination: process.stderr }), needsOwnUser: false },
        async () => undefined,
      );
      vi.unstubAllEnvs();
      expect((await readdir(shared)).filter((name) => name.startsWith('quittance-verify-')).sort()).toEqual(
        [link, mixed, strangers].map((path) => basename(path)),
      );
      expect(existsSync(join(cluster, 'roots', 'more'))).toBe(true);
      expect(await readFile(join(victim, 'books'), 'utf8')).toBe('kept');
    },
  );

  describe('believes nothing that its user can write', () => {
    let dataDir: string;
    let home: string;
    let user: { uid: number; gid: number };
    beforeAll(async () => {
      dataDir = await makeDirectory();
      await stop(await started(dataDir));
      home = join(dataDir, 'postgres');
      user = await stat(home);
    });

    /** Writes a file as PostgreSQL's user could at any time. */
    async function plant(path: string, text: string): Promise<void> {
      await writeFile(path, text);
      await chown(path, user.uid, user.gid);
    }

    test('root deletes no directory that postmaster.pid names, neither itself nor behind a link', async () => {
      const other = await makeDirectory(0o700);
      const victims = [join(other, 'quittance-books'), join(other, 'quittance-more')];
      for (const victim of victims) {
        await mkdir(victim);
        await writeFile(join(victim, '.s.PGSQL.5432'), 'kept');
      }
      const link = join(await makeDirectory(0o777), 'link');
      await symlink(other, link);
      for (const named of [victims[0], join(link, 'quittance-more')]) {
        await plant(join(home, 'data', 'postmaster.pid'), `2147483646\n${home}/data\n0\n5432\n${named}\n\n0\nready\n`);
        await stop(await started(dataDir));
      }
      for (const victim of victims) expect(await readFile(join(victim, '.s.PGSQL.5432'), 'utf8')).toBe('kept');
    });

    test('root ends no process that postmaster.pid names, though it stands in the data directory', async () => {
      const bystander = spawn('sleep', ['60'], { cwd: join(home, 'data') });
      const ended = once(bystander, 'exit');
      await plant(join(home, 'data', 'postmaster.pid'), `${bystander.pid}\n${home}/data\n0\n5432\n\n\n0\nready\n`);
      await stop(await started(dataDir));
      expect(bystander.exitCode ?? bystander.signalCode).toBeNull();
      bystander.kill('SIGTERM');
      await ended;
    });

    test('root cuts no file that the log is a link to', async () => {
      const log = join(home, 'postgres.log');
      const victim = join(await makeDirectory(0o700), 'ledger');
      await writeFile(victim, '');
      await truncate(victim, 11 * 1024 * 1024);
      await rm(log);
      await symlink(victim, log);
      expect(await spawnServer(dataDir).next()).toMatchObject({ kind: 'failed', code: 'EMBEDDED_FAILED' });
      expect((await stat(victim)).size).toBe(11 * 1024 * 1024);
      await rm(log);
      await stop(await started(dataDir));
    });

    test('what is left of a first start goes with the rights of its user, who cannot have root delete another’s file', async () => {
      const [draft, own] = [`${home}.draft-aaaaaa`, `${home}.draft-bbbbbb`];
      for (const path of [draft, own]) {
        await mkdir(join(path, 'sub'), { recursive: true });
        await writeFile(join(path, 'sub', 'file'), '');
      }
      for (const path of [draft, own, join(own, 'sub'), join(own, 'sub', 'file')])
        await chown(path, user.uid, user.gid);
      await stop(await started(dataDir));
      expect(existsSync(join(draft, 'sub', 'file'))).toBe(true);
      expect(existsSync(own)).toBe(false);
      await rm(draft, { recursive: true });
    });
  });

  longTest(
    'a main network is refused the user nobody, and told how to make another; the sandbox is warned',
    async () => {
      const dataDir = await makeDirectory();
      await chown(dataDir, NOBODY, NOBODY);
      const earlier = spawnServer(dataDir, { uid: NOBODY, gid: NOBODY });
      await ready(earlier);
      await stop(earlier);
      const lines: string[] = [];
      const log = createLogger({ level: 'warn', destination: { write: (line: string) => void lines.push(line) } });
      await expect(startEmbeddedPostgres({ dataDir, log, needsOwnUser: true })).rejects.toMatchObject({
        code: 'EMBEDDED_UNSUPPORTED',
        message: expect.stringMatching(/mainnet.*useradd --system.*chown -R quittance: .*postgres/),
      });
      expect(lines).toEqual([]);
      const postgres = await startEmbeddedPostgres({ dataDir, log });
      await postgres.stop();
      expect(lines.join('')).toContain('could read and change the database');
    },
  );

  async function started(dataDir: string, script?: string) {
    const server = spawnServer(dataDir, script ? { script } : {});
    await ready(server);
    return server;
  }

  describe('where its user can reach neither the binaries nor the data', () => {
    let home: string;
    let script: string;
    let sharedDir: string;
    beforeAll(async () => {
      home = await makeDirectory(0o700);
      script = await copyProject(home, { hasBinaries: true });
      sharedDir = join(await makeDirectory(), 'shared');
    });

    test('keeps both in the shared directory, once, though two start at once under a umask that shuts others out', async () => {
      const dataDirs = [join(home, 'one'), join(home, 'two')];
      const servers = dataDirs.map((dataDir) => spawnServer(dataDir, { script, sharedDir, umask: 0o077, cwd: home }));
      const connections = await Promise.all(servers.map(ready));
      for (const [index, connection] of connections.entries()) {
        await query(connection, 'create table here (value integer)');
        await query(connection, `insert into here (value) values (${index})`);
      }
      await Promise.all(servers.map(stop));

      expect(((await stat(home)).mode & 0o777).toString(8)).toBe('700');
      const names = await readdir(sharedDir);
      expect(names.filter((name) => name.startsWith('postgres-18'))).toHaveLength(1);
      expect(names).toHaveLength(3);
      for (const [index, dataDir] of dataDirs.entries()) {
        const place = (await readFile(join(dataDir, 'postgres.location'), 'utf8')).trim();
        expect(place).toMatch(new RegExp(`^${await realpath(sharedDir)}/[0-9a-f]{16}$`));
        expect(((await stat(place)).mode & 0o777).toString(8)).toBe('700');
        const server = spawnServer(dataDir, { script, sharedDir });
        expect(await query(await ready(server), 'select value from here')).toEqual([{ value: index }]);
        await stop(server);
      }
    });

    test('a damaged copy of the binaries is made anew', async () => {
      const name = (await readdir(sharedDir)).find((entry) => entry.startsWith('postgres-18')) ?? '';
      await truncate(join(sharedDir, name, 'bin', 'postgres'), 1000);
      const server = spawnServer(join(home, 'one'), { script, sharedDir });
      await ready(server);
      await stop(server);
      expect((await readdir(sharedDir)).filter((entry) => entry.startsWith(name))).toEqual([name]);
    });

    test('a data directory that was deleted begins empty, and the old database is moved aside, not deleted', async () => {
      const dataDir = join(home, 'two');
      const place = (await readFile(join(dataDir, 'postgres.location'), 'utf8')).trim();
      await rm(dataDir, { recursive: true });
      const server = spawnServer(dataDir, { script, sharedDir });
      expect(await query(await ready(server), "select to_regclass('here') as found")).toEqual([{ found: null }]);
      await stop(server);
      expect((await readdir(sharedDir)).some((name) => join(sharedDir, name).startsWith(`${place}.replaced-`))).toBe(
        true,
      );
    });

    test('a database that its location file names and that is missing is an error, not an empty database', async () => {
      const dataDir = join(home, 'one');
      const place = (await readFile(join(dataDir, 'postgres.location'), 'utf8')).trim();
      await rm(place, { recursive: true });
      expect(await spawnServer(dataDir, { script, sharedDir }).next()).toMatchObject({
        kind: 'failed',
        code: 'EMBEDDED_DAMAGED',
        message: expect.stringContaining(place),
      });
    });

    longTest('databases whose data directory is gone are listed and deleted, and no other one', async () => {
      const dirs = ['gone', 'kept', 'running', 'unrecorded'].map((name) => join(home, name));
      const [gone = '', kept = '', running = '', unrecorded = ''] = dirs;
      const placeOf = async (dataDir: string) => (await readFile(join(dataDir, 'postgres.location'), 'utf8')).trim();
      const serving = spawnServer(running, { script, sharedDir });
      await ready(serving);
      for (const dataDir of [gone, kept, unrecorded]) {
        const server = spawnServer(dataDir, { script, sharedDir });
        await ready(server);
        await stop(server);
      }
      const places = await Promise.all(dirs.map(placeOf));
      const [placeGone = '', placeKept = '', placeRunning = '', placeUnrecorded = ''] = places;
      // Databases of an earlier release, whose next start records it; one that its user forged; one that was moved aside; and a directory
      // that isn't a database.
      await rm(join(placeKept, 'data-directory'));
      const again = spawnServer(kept, { script, sharedDir });
      await ready(again);
      await stop(again);
      await rm(join(placeUnrecorded, 'data-directory'));
      await symlink('/etc/hostname', join(placeUnrecorded, 'data-directory'));
      await rm(gone, { recursive: true });
      await rm(running, { recursive: true });
      await rm(unrecorded, { recursive: true });
      await mkdir(join(sharedDir, 'master-keys'));

      const list = async () => (await printDatabases(recordTerminal(), sharedDir)).data as { data: Listed[] };
      const stateOf = async () => new Map((await list()).data.map((each) => [each.directory, each]));
      const before = await stateOf();
      expect(places.map((place) => [before.get(place)?.dataDirectory, before.get(place)?.state])).toEqual([
        [gone, 'orphaned'],
        [kept, 'used'],
        [running, 'running'],
        [null, 'unknown'],
      ]);
      const [aside = ''] = [...before.keys()].filter((directory) => directory.includes('.replaced-'));
      expect(before.get(aside)).toMatchObject({ dataDirectory: join(home, 'two'), state: 'replaced' });
      expect(before.get(placeGone)?.bytes).toBeGreaterThan(10_000_000);
      expect(Date.now() - Date.parse(before.get(placeGone)?.lastUsedAt ?? '')).toBeLessThan(600_000);

      const remove = (named: string[], options: { yes?: true } = { yes: true }, terminal = recordTerminal()) =>
        printRemovedDatabases(terminal, named, options, sharedDir);
      await expect(remove([], {})).rejects.toThrow('nothing was deleted: confirm with --yes');
      const stdin = Object.assign(new PassThrough(), { isTTY: true });
      stdin.end('no\n');
      const asking = recordTerminal({ stdin });
      await expect(remove([], {}, asking)).rejects.toThrow('nothing was deleted');
      expect(asking.written.stderr).toContain(placeGone);
      await expect(remove([basename(placeKept)])).rejects.toThrow(
        `its data directory ${kept} still exists and uses it`,
      );
      await expect(remove([placeRunning])).rejects.toThrow('a PostgreSQL server is using it');
      await expect(remove(['/etc'])).rejects.toThrow('the embedded database "/etc" does not exist');
      expect(places.map((place) => existsSync(place))).toEqual([true, true, true, true]);

      expect((await remove([])).text).toMatch(/^deleted 1 database, \d+ MB$/);
      expect(places.map((place) => existsSync(place))).toEqual([false, true, true, true]);
      expect((await remove([basename(placeUnrecorded), aside])).text).toMatch(/^deleted 2 databases/);
      expect(existsSync(placeUnrecorded) || existsSync(aside)).toBe(false);
      expect(existsSync(join(sharedDir, 'master-keys'))).toBe(true);
      // It serves until it's stopped, and is deleted then.
      expect(await removeSharedHome(placeRunning)).toBe(false);
      await stop(serving);
      await remove([]);
      expect(existsSync(placeRunning)).toBe(false);
      expect((await list()).data.map(({ state }) => state)).not.toContain('orphaned');
    });

    test('a shared directory that another user can change is not trusted', async () => {
      const open = await makeDirectory(0o777);
      expect(await spawnServer(join(home, 'three'), { script, sharedDir: open }).next()).toMatchObject({
        kind: 'failed',
        code: 'EMBEDDED_UNREACHABLE',
        message: expect.stringContaining(open),
      });
    });
  });

  longTest(
    'an ordinary user whose packages are read-only and lack their links runs from a copy in the temporary directory',
    async () => {
      const home = await makeDirectory(0o755);
      const script = await copyProject(home, { hasBinaries: true });
      const lib = join(nativePath(home), 'lib');
      for (const { target } of JSON.parse(await readFile(join(nativePath(home), 'pg-symlinks.json'), 'utf8'))) {
        await rm(join(lib, '..', '..', target), { force: true });
      }
      const temporary = join(home, 'tmp');
      await mkdir(temporary);
      await chmod(temporary, 0o777);
      const dataDir = join(home, 'data');
      await mkdir(dataDir);
      await chown(dataDir, NOBODY, NOBODY);
      const server = spawnServer(dataDir, { uid: NOBODY, gid: NOBODY, script, env: { TMPDIR: temporary } });
      await ready(server);
      await stop(server);
      expect(await readdir(join(temporary, `quittance-${NOBODY}`))).toEqual([expect.stringMatching(/^postgres-18/)]);
      // As root, the links can be created where they belong.
      await stop(await started(join(home, 'second'), script));
      expect((await readdir(lib)).filter((name) => name.startsWith('libpq.so'))).toEqual([
        'libpq.so',
        'libpq.so.5',
        'libpq.so.5.18',
      ]);
    },
  );
});
