import { lchown, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DataDirError, dataDirError, lockDataDir } from '../../runtime/instance-lock.ts';
import type { Logger } from '../../runtime/log.ts';
import { writePrivateFile } from '../../runtime/private-file.ts';
import { findBinaries } from './binaries.ts';
import { checkCluster, DATABASE, dataPath, findCluster, readOrCreatePassword, SUPERUSER } from './cluster.ts';
import { connectionPath, type PostgresConnection, tryToConnect } from './connection.ts';
import { EmbeddedPostgresError } from './error.ts';
import { explainFailure } from './failure.ts';
import { CLUSTER_IN_USE, type Guardian, startGuardian } from './guardian.ts';
import { createCluster, removeDrafts } from './initialize.ts';
import { recordDataDir, SHARED_DIR } from './list-databases.ts';
import { logSize, readLogSince, trimLog, trimLogRegularly } from './log.ts';
import { readPostmaster, SOCKET_DIR_PREFIX, stopOrphan } from './postmaster.ts';
import { makeRuntimeUser } from './runtime-user.ts';
import { canWrite, choosePostgresUser, removeAs, type SystemUser, sharedUserProblem } from './user.ts';

/**
 * A running PostgreSQL of our own. `connection` is for the service and commands, and owns nothing; `owner` is the superuser, for what
 * makes and changes the tables: commands do not find it while a service runs. `stop` is a fast shutdown within 5 s (12 s at the very most); a second call waits for the first.
 */
export type EmbeddedPostgres = { connection: PostgresConnection; owner: PostgresConnection; stop(): Promise<void> };

/** How a PostgreSQL ended that nobody stopped; `logTail` is the end of its log. */
export type UnexpectedExit = { code: number | null; signal: NodeJS.Signals | null; logTail: string };

/**
 * Runs the PostgreSQL that npm installed on the data directory (made on the first start, which takes about a second; later ones 0.1 s).
 * It listens on a Unix socket only and ends with this process, however that ends. `onExit` is called if it ends by itself.
 * `isDurable: false` gives up surviving a power failure for speed, for tests.
 * `sharedDir` is root's place for what the user of PostgreSQL must reach and cannot where it is.
 * `needsOwnUser` refuses `nobody`, whose files every program of that user can read; else that is a warning.
 * Errors: DataDirError, EmbeddedPostgresError.
 */
export async function startEmbeddedPostgres(options: {
  dataDir: string;
  log: Logger;
  onExit?: (exit: UnexpectedExit) => void;
  isDurable?: boolean;
  sharedDir?: string;
  needsOwnUser?: boolean;
}): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir);
  const lock = await lockDataDir(dataDir, 'postgres.lock');
  try {
    const cluster = await openCluster({ sharedDir: SHARED_DIR, ...options, dataDir });
    return await runServer({ ...options, dataDir, cluster, unlock: () => lock.release() });
  } catch (error) {
    await lock.release();
    throw dataDirError(dataDir, error);
  }
}

/** Set for a small machine that also runs Node; everything that keeps acknowledged data is on. */
const SETTINGS = {
  listen_addresses: '',
  port: '5432', // Names the socket file only.
  unix_socket_permissions: '0700',
  password_encryption: 'scram-sha-256',
  max_connections: '100',
  shared_buffers: '128MB',
  wal_compression: 'off', // It saves a quarter of the log, and makes creation in a large table a fifth slower (docs/performance.md).
  jit: 'off', // Compiling costs more than any of our queries.
  max_parallel_workers_per_gather: '0',
  max_logical_replication_workers: '0', // Nobody replicates it, and what waits to start them is a process.
  dynamic_shared_memory_type: 'mmap', // Nothing is left in /dev/shm when killed, and a container's 64 MB there do not matter.
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_min_messages: 'warning',
  log_checkpoints: 'off',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
} as const;

const NOT_DURABLE = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' } as const;

type Cluster = Awaited<ReturnType<typeof openCluster>>;

/** Finds the cluster, or makes it on the first start. After this no other process works on it. */
async function openCluster(options: { dataDir: string; sharedDir: string; log: Logger; needsOwnUser?: boolean }) {
  const { dataDir, log } = options;
  const found = await findCluster(dataDir);
  const user = await choosePostgresUser(found?.owner);
  const problem = sharedUserProblem(user, found?.home);
  if (problem !== undefined && options.needsOwnUser) {
    throw new EmbeddedPostgresError('EMBEDDED_UNSUPPORTED', `For a main network this is refused: ${problem}`);
  }
  if (problem !== undefined) log.warn(problem);
  const binaries = await findBinaries({ ...options, user });
  if (found === undefined) {
    const password = await readOrCreatePassword(dataDir);
    const home = await createCluster({ ...options, password, user, binaries });
    return { home, user, binaries, password, hasStalePidFile: false };
  }
  const { home } = found;
  await checkCluster(found, user, binaries);
  await removeDrafts(home);
  if (dirname(home) !== dataDir) await recordDataDir(home, await realpath(dataDir));
  const hasStalePidFile = await stopOrphan(dataPath(home), user);
  const password = await readOrCreatePassword(dataDir, { home, user, binaries });
  return { home, user, binaries, password, hasStalePidFile };
}

async function runServer(options: {
  dataDir: string;
  log: Logger;
  cluster: Cluster;
  unlock: () => Promise<void>;
  onExit?: (exit: UnexpectedExit) => void;
  isDurable?: boolean;
}): Promise<EmbeddedPostgres> {
  const { dataDir, cluster, log } = options;
  const { home, password } = cluster;
  const connectionFile = connectionPath(dataDir);
  await trimLog(home);
  const logStart = await logSize(home);
  await rm(connectionFile, { force: true });
  const socketDir = await createSocketDir(cluster.user);
  const owner = { host: socketDir, port: Number(SETTINGS.port), user: SUPERUSER, password, database: DATABASE };
  let connection: PostgresConnection;
  const settings = { ...SETTINGS, ...(options.isDurable === false ? NOT_DURABLE : {}) };
  let guardian: Guardian | undefined;
  const cleanUp = async (): Promise<void> => {
    await removeAs(cluster.user, socketDir);
    await rm(connectionFile, { force: true });
    await options.unlock();
  };
  try {
    guardian = await startGuardian({ ...cluster, socketDir, connectionFile, settings });
    await becomeReady(home, socketDir, guardian, logStart);
    const refusal = await tryToConnect(owner);
    if (refusal) throw connectionRefused(dataDir, refusal);
    connection = await makeRuntimeUser(owner);
    await writePrivateFile(connectionFile, JSON.stringify(connection));
  } catch (error) {
    await guardian?.stop();
    await cleanUp();
    throw error;
  }
  log.info({ home, user: cluster.user?.name, version: cluster.binaries.version }, 'embedded PostgreSQL is ready');
  const trimming = trimLogRegularly(home);
  let isStopping = false;
  const ended = guardian.exited.then(async (exit) => {
    clearInterval(trimming);
    await cleanUp();
    if (!isStopping) options.onExit?.({ ...exit, logTail: await readLogSince(home, logStart) });
  });
  ended.catch((error) => log.error({ err: error }, 'cannot clean up after the embedded PostgreSQL'));
  return {
    connection,
    owner,
    async stop() {
      isStopping = true;
      await guardian.stop();
      await ended;
    },
  };
}

/** The path of a Unix socket is at most 107 bytes (103 on macOS), and ours adds `/.s.PGSQL.5432`. */
const MAX_SOCKET_DIR_BYTES = 86;
const UNIQUE_SUFFIX_LENGTH = 6;

/** In the temporary directory, if the guardian can delete it from there; else in /tmp. */
async function createSocketDir(user: SystemUser | undefined): Promise<string> {
  let parent = tmpdir();
  const bytes = Buffer.byteLength(join(parent, SOCKET_DIR_PREFIX)) + UNIQUE_SUFFIX_LENGTH;
  if (bytes > MAX_SOCKET_DIR_BYTES || !(await canWrite(user, parent))) parent = '/tmp';
  const path = await mkdtemp(join(parent, SOCKET_DIR_PREFIX)); // mode 0700
  if (user) await lchown(path, user.uid, user.gid);
  return path;
}

/** After a crash the journal since the last checkpoint is replayed before the server is ready: at most 1 GB (max_wal_size). */
const READY_TIMEOUT_MS = 300_000;
const READY_POLL_MS = 5;

async function becomeReady(home: string, socketDir: string, guardian: Guardian, logStart: number): Promise<void> {
  const watch: { exitCode?: number | null } = {};
  void guardian.exited.then(({ code }) => {
    watch.exitCode = code;
  });
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  while (performance.now() < deadlineMs) {
    if (watch.exitCode === CLUSTER_IN_USE) {
      throw new DataDirError(
        'DATA_DIR_IN_USE',
        `The database in ${home} is in use by another container or session. Stop that one, then start again.`,
      );
    }
    if (watch.exitCode !== undefined) throw explainFailure(home, await readLogSince(home, logStart), 'postgres');
    const postmaster = await readPostmaster(dataPath(home));
    if (postmaster?.isReady && postmaster.socketDir === socketDir) return;
    await delay(READY_POLL_MS);
  }
  throw explainFailure(
    home,
    await readLogSince(home, logStart),
    `postgres, not ready after ${READY_TIMEOUT_MS / 1000} s`,
  );
}

function connectionRefused(dataDir: string, cause: Error): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    'EMBEDDED_FAILED',
    `The embedded PostgreSQL started but refuses us: ${cause.message}. ` +
      `If ${join(dataDir, 'postgres.password')} is not the one that belongs to this database, delete it and start again: a new one is set.`,
    { cause },
  );
}
