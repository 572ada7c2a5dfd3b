import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createLogger } from '../../src/core/runtime/log.ts';
import { findBinaries } from '../../src/core/store/embedded/binaries.ts';
import { type PostgresConnection, tryToConnect } from '../../src/core/store/embedded/connection.ts';
import { makeRuntimeUser } from '../../src/core/store/embedded/embedded.ts';
import { choosePostgresUser, removeAs, runAs, spawnOptions } from '../../src/core/store/embedded/user.ts';
import { createTemplate } from './postgres-template.ts';
import { eventually } from './service.ts';

/** Returns where npm installed the oldest supported PostgreSQL; `null` except on Linux x64. */
export function findOldestPostgres(): string | null {
  try {
    return join(dirname(createRequire(import.meta.url).resolve('postgres-15')), '..');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return null;
    throw error;
  }
}

export type RawServer = { owner: PostgresConnection; connection: PostgresConnection; stop(): Promise<void> };

/** Starts its server on a Unix socket, with the template of test databases. `stop` ends it. */
export async function startOldestPostgres(packageRoot: string): Promise<RawServer> {
  const server = await createRawServer(packageRoot);
  const stop = await server.start(server.data);
  const connection = await makeRuntimeUser(server.owner);
  await createTemplate(server.owner, connection);
  return {
    ...{ owner: server.owner, connection },
    stop: async () => {
      await stop();
      await server.remove();
    },
  };
}

/**
 * Initializes a data directory. `start` starts a server on it, or on a copy of it beside it, always on the same Unix socket, and returns
 * how to stop that server. `packageRoot` is the default of `findBinaries`.
 */
export async function createRawServer(packageRoot?: string) {
  const user = await choosePostgresUser(undefined);
  const log = createLogger({ level: 'silent' });
  const { root } = await findBinaries({
    ...{ user, sharedDir: '/var/lib/quittance', log },
    ...(packageRoot === undefined ? {} : { packageRoot }),
  });
  const folder = await mkdtemp(join(tmpdir(), 'quittance-raw-'));
  await chmod(folder, 0o777);
  const [data, passwordFile] = [join(folder, 'data'), join(folder, 'password')];
  await writeFile(passwordFile, 'oldest');
  const login = ['--username=postgres', `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '--locale=C'];
  const make = [`--pgdata=${data}`, '--no-sync', '--encoding=UTF8', ...login];
  const made = await runAs(user, join(root, 'bin', 'initdb'), make);
  if (made.code !== 0) throw new Error(made.output);
  const owner = { host: folder, port: 5432, user: 'postgres', password: 'oldest', database: 'postgres' };
  const settings = { listen_addresses: '', unix_socket_directories: folder, fsync: 'off' };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const directories = [data];
  return {
    owner,
    data,
    /** Copies the data of a stopped server. The copy starts as a standby. */
    copyToStandby: async () => {
      const copy = join(folder, `standby-${directories.length}`);
      const copied = await runAs(user, 'cp', ['-R', data, copy]);
      if (copied.code !== 0) throw new Error(copied.output);
      const signalled = await runAs(user, 'touch', [join(copy, 'standby.signal')]);
      if (signalled.code !== 0) throw new Error(signalled.output);
      directories.push(copy);
      return copy;
    },
    start: async (directory: string): Promise<() => Promise<void>> => {
      const server = spawn(join(root, 'bin', 'postgres'), ['-D', directory, ...args], {
        ...spawnOptions(user),
        stdio: 'ignore',
      });
      await eventually(
        () => tryToConnect(owner),
        (problem) => problem === undefined,
      );
      return async () => {
        const ended = once(server, 'exit');
        server.kill('SIGINT');
        await ended;
      };
    },
    remove: async () => {
      for (const directory of directories) await removeAs(user, directory);
      await rm(folder, { recursive: true });
    },
  };
}
