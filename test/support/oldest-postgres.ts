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

type Server = { owner: PostgresConnection; connection: PostgresConnection; stop(): Promise<void> };

/** Starts its server on a Unix socket, with the template of test databases. `stop` ends it. */
export async function startOldestPostgres(packageRoot: string): Promise<Server> {
  const user = await choosePostgresUser(undefined);
  const log = createLogger({ level: 'silent' });
  const { root } = await findBinaries({ user, sharedDir: '/var/lib/quittance', log, packageRoot });
  const folder = await mkdtemp(join(tmpdir(), 'quittance-oldest-'));
  await chmod(folder, 0o777);
  const [data, passwordFile] = [join(folder, 'data'), join(folder, 'password')];
  await writeFile(passwordFile, 'oldest');
  const login = ['--username=postgres', `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '--locale=C'];
  const made = await runAs(user, join(root, 'bin', 'initdb'), [
    `--pgdata=${data}`,
    '--no-sync',
    '--encoding=UTF8',
    ...login,
  ]);
  if (made.code !== 0) throw new Error(made.output);
  const settings = { listen_addresses: '', unix_socket_directories: folder, fsync: 'off' };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawn(join(root, 'bin', 'postgres'), ['-D', data, ...args], {
    ...spawnOptions(user),
    stdio: 'ignore',
  });
  const owner = { host: folder, port: 5432, user: 'postgres', password: 'oldest', database: 'postgres' };
  await eventually(
    () => tryToConnect(owner),
    (problem) => problem === undefined,
  );
  const connection = await makeRuntimeUser(owner);
  await createTemplate(owner, connection);
  return {
    ...{ owner, connection },
    stop: async () => {
      const ended = once(server, 'exit');
      server.kill('SIGINT');
      await ended;
      await removeAs(user, data);
      await rm(folder, { recursive: true });
    },
  };
}
