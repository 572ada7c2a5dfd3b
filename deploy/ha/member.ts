import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Program, type ProgramOptions, processTree, send, startProgram, stopProgram } from './program.ts';
import type { EtcdApi } from './requirements.ts';

/** One machine of the database: a PostgreSQL and the Patroni that runs it. */
export type Member = {
  name: string;
  port: number;
  restUrl: string;
  dataDir: string;
  logFile: string;
  /** Starts Patroni, if it is not running; it finds, mends or makes its PostgreSQL. */
  start(): Promise<void>;
  patroniPid(): number | null;
  /** The first process of PostgreSQL; `null` while it does not run. */
  postgresPid(): Promise<number | null>;
  stop(): Promise<void>;
};

export type MemberOptions = {
  name: string;
  port: number;
  restPort: number;
  directory: string;
  postgresBin: string;
  etcdHosts: string;
  etcdApi: EtcdApi;
  configFile: string;
  passwords: { superuser: string; replication: string };
  program: Pick<ProgramOptions, 'setpriv' | 'user' | 'command'>;
};

/** Patroni waits for PostgreSQL's own checkpoint and shutdown. */
const STOP_MS = 20_000;
const POSTGRES_STOP_MS = 10_000;

/** A member that is not started yet. */
export function createMember(options: MemberOptions): Member {
  const { name, port, restPort, directory } = options;
  const dataDir = join(directory, 'data');
  const logFile = join(directory, 'patroni.log');
  let patroni: Program | null = null;
  const postgresPid = () => readPostmaster(dataDir);
  return {
    name,
    port,
    restUrl: `http://127.0.0.1:${restPort}`,
    dataDir,
    logFile,
    start: async () => {
      if (patroni?.isRunning()) return;
      const args = [options.configFile];
      patroni = await startProgram({ ...options.program, args, env: environmentOf(options), cwd: directory, logFile });
    },
    patroniPid: () => (patroni?.isRunning() ? patroni.pid : null),
    postgresPid,
    stop: async () => {
      const postmaster = await postgresPid();
      // What was frozen must wake up to stop.
      for (const pid of postmaster === null ? [] : await processTree(postmaster)) send(pid, 'SIGCONT');
      if (patroni !== null) await stopProgram(patroni, STOP_MS);
      await stopPostgres(await postgresPid());
    },
  };
}

/** What the shared file leaves open, as Patroni reads it: each machine has these lines in /etc/patroni/environment. */
function environmentOf({ name, port, restPort, directory, ...options }: MemberOptions): Record<string, string> {
  const address = `127.0.0.1:${port}`;
  const rest = `127.0.0.1:${restPort}`;
  return {
    PATRONI_NAME: name,
    [options.etcdApi === 'v3' ? 'PATRONI_ETCD3_HOSTS' : 'PATRONI_ETCD_HOSTS']: options.etcdHosts,
    PATRONI_RESTAPI_LISTEN: rest,
    PATRONI_RESTAPI_CONNECT_ADDRESS: rest,
    PATRONI_POSTGRESQL_LISTEN: address,
    PATRONI_POSTGRESQL_CONNECT_ADDRESS: address,
    PATRONI_POSTGRESQL_DATA_DIR: join(directory, 'data'),
    PATRONI_POSTGRESQL_BIN_DIR: options.postgresBin,
    PATRONI_POSTGRESQL_PGPASS: join(directory, 'pgpass'),
    PATRONI_SUPERUSER_USERNAME: 'postgres',
    PATRONI_SUPERUSER_PASSWORD: options.passwords.superuser,
    PATRONI_REPLICATION_USERNAME: 'replicator',
    PATRONI_REPLICATION_PASSWORD: options.passwords.replication,
  };
}

/** The first line of postmaster.pid; a killed server leaves the file behind, and another process may have its number by now. */
async function readPostmaster(dataDir: string): Promise<number | null> {
  const text = await readFile(join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number(text.split('\n')[0]);
  if (!(pid > 1)) return null;
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return command.includes(dataDir) ? pid : null;
}

/** Stops a PostgreSQL that has lost its Patroni. */
async function stopPostgres(pid: number | null): Promise<void> {
  if (pid === null) return;
  const processes = await processTree(pid);
  send(pid, 'SIGINT');
  const deadline = performance.now() + POSTGRES_STOP_MS;
  while (processes.some((each) => send(each, 0)) && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  for (const each of processes) send(each, 'SIGKILL');
}
