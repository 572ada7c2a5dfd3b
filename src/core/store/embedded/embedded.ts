import { createHash, randomBytes, randomUUID } from 'node:crypto';
import {
  constants,
  type FileHandle,
  lchown,
  lstat,
  mkdtemp,
  open,
  readdir,
  realpath,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DataDirError, dataDirError, lockDataDir, lockPatiently } from '../../runtime/instance-lock.ts';
import type { Logger } from '../../runtime/log.ts';
import { createParts } from '../../runtime/parts.ts';
import { syncDirectory, writePrivateFile } from '../../runtime/private-file.ts';
import type { Connection } from '../db/database.ts';
import { RUNTIME_ROLE } from '../db/runtime-role.ts';
import { type Binaries, findBinaries, isOurs } from './binaries.ts';
import {
  checkCluster,
  DATABASE,
  findCluster,
  LOCATION_FILE,
  readOrCreatePassword,
  recordDataDir,
  runSingleUser,
  SHARED_DIR,
  SUPERUSER,
} from './cluster.ts';
import { connectionPath, type PostgresConnection, tryToConnect, withClient } from './connection.ts';
import { EmbeddedPostgresError, endedByItself, explainFailure } from './error.ts';
import {
  CLUSTER_IN_USE,
  dataPath,
  type Guardian,
  readPostmaster,
  SOCKET_DIR_PREFIX,
  startGuardian,
  stopOrphan,
} from './postmaster.ts';
import {
  canReach,
  canWrite,
  choosePostgresUser,
  removeAs,
  removeAsOwner,
  runAs,
  type SystemUser,
  sharedUserProblem,
} from './user.ts';

/**
 * A running embedded PostgreSQL. `connection` is for the service and commands; its user owns nothing. `owner` is the superuser, which
 * creates and changes the tables; commands can't get it while a service is running. `stop` is a fast shutdown within 5 s (at most 12 s). A
 * second call waits for the first one.
 */
export type EmbeddedPostgres = { connection: PostgresConnection; owner: PostgresConnection; stop(): Promise<void> };

/** How PostgreSQL exited without having been stopped. `logTail` is the end of PostgreSQL's log. */
export type UnexpectedExit = { code: number | null; signal: NodeJS.Signals | null; logTail: string };

/**
 * Runs the PostgreSQL that npm installed, on the data directory. The first start creates the directory and takes about a second; later
 * starts take 0.1 s. It listens only on a Unix socket, and exits together with this process, however this process exits. `onExit` is called
 * if PostgreSQL exits unexpectedly. `isDurable: false` is for tests: it's faster, but data may not survive a power failure. `sharedDir` is
 * where root puts files that PostgreSQL's user must be able to reach but can't reach elsewhere. `needsOwnUser` refuses the user `nobody`,
 * because every program of that user can read the database's files; by default, this only causes a warning. `onLaunch` is called once
 * PostgreSQL's own process is being waited for, so that work that keeps the event loop busy no longer delays it. Errors: DataDirError,
 * EmbeddedPostgresError.
 */
export async function startEmbeddedPostgres(options: {
  dataDir: string;
  log: Logger;
  onExit?: (exit: UnexpectedExit) => void;
  onLaunch?: () => void;
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

/** These settings are for a small machine that also runs Node.js. They keep all protections for acknowledged data on. */
const SETTINGS = {
  listen_addresses: '',
  port: '5432', // Only part of the socket file's name.
  unix_socket_permissions: '0700',
  password_encryption: 'scram-sha-256',
  max_connections: '100',
  shared_buffers: '128MB',
  wal_compression: 'off', // Saves a quarter of the WAL, but slows creation in large tables by a fifth: docs/contributing/performance.md.
  jit: 'off', // Compiling a query costs more than it saves here.
  max_parallel_workers_per_gather: '0',
  max_logical_replication_workers: '0', // There's no replication, and its launcher would be an extra process.
  dynamic_shared_memory_type: 'mmap', // Leaves nothing in /dev/shm after a kill, and isn't affected by a container's limit of 64 MB there.
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_min_messages: 'warning',
  log_checkpoints: 'off',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
} as const;

/** Tests share one server between their workers. */
const NOT_DURABLE = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '250',
} as const;

type Cluster = Awaited<ReturnType<typeof openCluster>>;

/** Opens the cluster, or creates it on the first start. From then on, no other process uses it. */
async function openCluster(options: {
  dataDir: string;
  sharedDir: string;
  log: Logger;
  onLaunch?: () => void;
  needsOwnUser?: boolean;
}) {
  const { dataDir, log } = options;
  const found = await findCluster(dataDir);
  const user = await choosePostgresUser(found?.owner);
  const problem = sharedUserProblem(user, found?.home);
  if (problem !== undefined && options.needsOwnUser) {
    throw new EmbeddedPostgresError(
      'EMBEDDED_UNSUPPORTED',
      `Quittance requires a separate PostgreSQL user on mainnet: ${problem}`,
    );
  }
  if (problem !== undefined) log.warn(problem);
  // To copy PostgreSQL and to create a cluster is other processes' and the disk's work.
  if (found === undefined) options.onLaunch?.();
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
  onLaunch?: () => void;
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
    options.onLaunch?.();
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

/** The path of a Unix socket can have at most 107 bytes (103 on macOS), including `/.s.PGSQL.5432` after the directory. */
const MAX_SOCKET_DIR_BYTES = 86;
const UNIQUE_SUFFIX_LENGTH = 6;

/** Uses the temporary directory if the guardian is able to delete files there, otherwise /tmp. */
async function createSocketDir(user: SystemUser | undefined): Promise<string> {
  let parent = tmpdir();
  const bytes = Buffer.byteLength(join(parent, SOCKET_DIR_PREFIX)) + UNIQUE_SUFFIX_LENGTH;
  if (bytes > MAX_SOCKET_DIR_BYTES || !(await canWrite(user, parent))) parent = '/tmp';
  const path = await mkdtemp(join(parent, SOCKET_DIR_PREFIX)); // mode 0700
  if (user) await lchown(path, user.uid, user.gid);
  return path;
}

/** After a crash, PostgreSQL first replays the WAL since the last checkpoint, which is at most 1 GB (max_wal_size). */
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
        `The database in ${home} is in use by another container or session. Stop Quittance there, then start it here again.`,
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
    `The embedded PostgreSQL started, but refused the connection: ${cause.message}. ` +
      `If ${join(dataDir, 'postgres.password')} does not belong to this database, delete it and start again: Quittance sets a new password.`,
    { cause },
  );
}

const USER = 'quittance_service';

/**
 * Creates the user for the service and commands, as a member of the group role in deploy/roles.sql, and returns the user's connection. Its
 * password changes at each start. The superuser has a different password, which is stored in a file.
 */
export async function makeRuntimeUser(owner: PostgresConnection): Promise<PostgresConnection> {
  const password = randomBytes(24).toString('base64url');
  await withClient(owner, (client) =>
    client.query(
      `do $$ begin
         if to_regrole('${RUNTIME_ROLE}') is null then create role ${RUNTIME_ROLE}; end if;
         if to_regrole('${USER}') is null then create role ${USER} in role ${RUNTIME_ROLE}; end if;
       end $$;
       alter role ${USER} with login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password '${password}'`,
    ),
  );
  return { ...owner, user: USER, password };
}

/**
 * When PostgreSQL's log exceeds ten megabytes, it's cut to the last megabyte. The log is needed only to explain a failure, and the
 * explanation is at its end.
 */
const MAX_LOG_BYTES = 10 * 1024 * 1024;
const KEPT_LOG_BYTES = 1024 * 1024;
const TRIM_INTERVAL_MS = 60_000;
/** This much of the log contains the reason for a failed start. */
const MAX_TAIL_BYTES = 16_384;

function logPath(home: string): string {
  return join(home, 'postgres.log');
}

/**
 * Cuts the log if it's too long. This is safe while the server is running, because the server only appends, but a line written at the same
 * time may be lost.
 */
async function trimLog(home: string): Promise<void> {
  if ((await logSize(home)) <= MAX_LOG_BYTES) return;
  const log = await openLog(home, constants.O_RDWR | constants.O_APPEND);
  if (log === undefined) return;
  try {
    const tail = await readEnd(log, KEPT_LOG_BYTES);
    await log.truncate();
    await log.appendFile(tail);
  } finally {
    await log.close();
  }
}

/**
 * Opens the log only if it's a regular file. PostgreSQL's user could replace it with a link or pipe, and root would then read or truncate
 * the target.
 */
async function openLog(home: string, flags: number): Promise<FileHandle | undefined> {
  const { O_NOFOLLOW, O_NONBLOCK } = constants;
  const log = await open(logPath(home), flags | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined);
  const found = await log?.stat();
  if (found?.isFile() && found.nlink === 1) return log;
  await log?.close();
  return undefined;
}

/** Cuts the log once a minute until the returned timer is cleared. The timer doesn't keep the process alive. */
function trimLogRegularly(home: string): NodeJS.Timeout {
  // If this fails, the timer tries again a minute later.
  return setInterval(() => void trimLog(home).catch(() => {}), TRIM_INTERVAL_MS).unref();
}

/** Returns the size in bytes, or 0 if there's no log yet. */
async function logSize(home: string): Promise<number> {
  return (await lstat(logPath(home)).catch(() => undefined))?.size ?? 0;
}

/** Reads the part of the log after a given size, but at most the last 16 KB. */
async function readLogSince(home: string, startBytes: number): Promise<string> {
  const added = (await logSize(home)) - startBytes;
  // If the log is shorter than before, it was cut in the meantime.
  const log = await openLog(home, constants.O_RDONLY);
  if (log === undefined) return '';
  try {
    return (await readEnd(log, added < 0 ? MAX_TAIL_BYTES : Math.min(added, MAX_TAIL_BYTES))).toString();
  } finally {
    await log.close();
  }
}

async function readEnd(log: FileHandle, lengthBytes: number): Promise<Buffer> {
  const { size } = await log.stat();
  const length = Math.min(size, lengthBytes);
  const { buffer, bytesRead } = await log.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.subarray(0, bytesRead);
}

/** Creates the cluster under another name and renames it, so that a crash leaves either no cluster or a complete one. */
async function createCluster(options: {
  dataDir: string;
  password: string;
  user: SystemUser | undefined;
  binaries: Binaries;
  sharedDir: string;
  log: Logger;
}): Promise<string> {
  const { dataDir, password, user, binaries } = options;
  const home = await chooseHome(options);
  await removeDrafts(home);
  const draft = await mkdtemp(`${home}.draft-`); // mode 0700
  try {
    // If someone has replaced the draft with a link, this call changes only the link's owner.
    if (user) await lchown(draft, user.uid, user.gid);
    if (dirname(home) !== dataDir) await recordDataDir(draft, await realpath(dataDir));
    await initialize(draft, { password, user, binaries });
    await rename(draft, home);
  } catch (error) {
    await removeAsOwner(draft);
    throw error;
  }
  await syncDirectory(dirname(home));
  if (dirname(home) !== dataDir) await writePrivateFile(join(dataDir, LOCATION_FILE), `${home}\n`);
  await syncDirectory(dataDir);
  return home;
}

/**
 * Returns a subdirectory of the data directory. If PostgreSQL's user can't reach the data directory, returns a place in root's shared
 * directory, named after a hash of the path.
 */
async function chooseHome(options: {
  dataDir: string;
  user: SystemUser | undefined;
  sharedDir: string;
  log: Logger;
}): Promise<string> {
  const { dataDir, user, sharedDir, log } = options;
  if (await canReach(user, dataDir)) return join(dataDir, 'postgres');
  if (!user || !(await isOurs(sharedDir)) || !(await canReach(user, sharedDir))) {
    throw new EmbeddedPostgresError(
      'EMBEDDED_UNREACHABLE',
      `User ${user?.name ?? process.getuid?.()} cannot reach the data directory ${dataDir}, nor ${sharedDir}. ` +
        'Use a data directory that every user can enter, or set DATABASE_URL.',
    );
  }
  const hash = createHash('sha256')
    .update(await realpath(dataDir))
    .digest('hex')
    .slice(0, 16);
  const home = join(sharedDir, hash);
  if (await stat(home).catch(() => undefined)) {
    // The data directory was deleted and created again, so the service has to start with an empty database, but the old database must not
    // be deleted.
    const aside = `${home}.replaced-${randomUUID()}`;
    await rename(home, aside);
    await recordDataDir(aside, await realpath(dataDir));
    log.warn(
      { aside, dataDir },
      'the data directory is new, so Quittance moved aside the database of an earlier directory at the same path',
    );
  }
  log.info(
    { home, user: user.name },
    'the PostgreSQL user cannot access the data directory, so the database is stored elsewhere',
  );
  return home;
}

/**
 * Runs initdb without syncing after each step, creates the database, and then syncs once. On a slow disk this takes 0.5 s instead of 2 s.
 */
async function initialize(
  draft: string,
  { password, user, binaries }: { password: string; user: SystemUser | undefined; binaries: Binaries },
): Promise<void> {
  const data = dataPath(draft);
  const passwordFile = join(draft, 'password');
  await writePrivateFile(passwordFile, password);
  const initdb = join(binaries.root, 'bin', 'initdb');
  // Uses the same kind of shared memory as the server, so that nothing remains in /dev/shm after a kill.
  const locale = ['--encoding=UTF8', '--locale-provider=libc', '--locale=C', '--set=dynamic_shared_memory_type=mmap'];
  const login = [`--username=${SUPERUSER}`, `--pwfile=${passwordFile}`, '--auth=scram-sha-256'];
  const init = await runAs(user, initdb, ['--no-sync', '--no-instructions', `--pgdata=${data}`, ...locale, ...login]);
  if (init.code !== 0) throw explainFailure(draft, init.output, 'initdb');
  await rm(passwordFile);
  await runSingleUser(data, { user, binaries }, `create database ${DATABASE}\n`);
  const sync = await runAs(user, initdb, [`--pgdata=${data}`, '--sync-only']);
  if (sync.code !== 0) throw explainFailure(draft, sync.output, 'initdb --sync-only');
}

/**
 * Deletes the drafts of interrupted initialisations. The caller must hold the data directory's lock, so that no draft is in use. An initdb
 * that briefly outlives its process may still be writing, and the next start removes whatever it leaves.
 */
async function removeDrafts(home: string): Promise<void> {
  for (const name of await readdir(dirname(home))) {
    if (!name.startsWith(`${basename(home)}.draft-`)) continue;
    await removeAsOwner(join(dirname(home), name));
  }
}

/** A service's database. `owner` creates and changes its tables; only an embedded database has one. */
export type ServiceDatabase = { connection: Connection; owner?: Connection; stop(): Promise<void> };

/** A management command holds the lock for less time than this. */
const COMMAND_PATIENCE = { patienceMs: 4000, pollMs: 100 };

/** Locks a data directory for a service and runs its database. `fail` is called with the reason if the database exits unexpectedly. */
export async function startServiceDatabase({
  dataDir,
  log,
  needsOwnUser,
  onLaunch,
  fail,
}: {
  dataDir: string;
  log: Logger;
  needsOwnUser: boolean;
  onLaunch(): void;
  fail(error: unknown): void;
}): Promise<ServiceDatabase> {
  const parts = createParts();
  const lock = await lockPatiently(dataDir, COMMAND_PATIENCE);
  await parts.add({ stop: () => lock.release() });
  const onExit = (exit: Parameters<typeof endedByItself>[1]) => fail(endedByItself(dataDir, exit));
  try {
    const postgres = await parts.add(startEmbeddedPostgres({ dataDir, log, needsOwnUser, onExit, onLaunch }));
    return { ...postgres, stop: parts.stop };
  } catch (error) {
    await parts.stop().catch(() => undefined);
    throw error;
  }
}
