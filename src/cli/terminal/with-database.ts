import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { AppError } from '../../domain/errors.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { guardCommand } from '../../payments/manifest/guard-adding.ts';
import { systemClock } from '../../runtime/clock.ts';
import { DataDirError, dataDirError, lockDataDir } from '../../runtime/instance-lock.ts';
import { createLogger } from '../../runtime/log.ts';
import { openKeyRing, requireKeyRing } from '../../runtime/open-key-ring.ts';
import { type Connection, type Database, openDatabase } from '../../store/db/database.ts';
import { type MigrationHooks, migrate, pendingMigrations } from '../../store/db/migrate.ts';
import { describeSealProblem, type SealProblem } from '../../store/db/seal.ts';
import { createSeals } from '../../store/db/seals.ts';
import { findCluster } from '../../store/embedded/cluster.ts';
import { readRunningPostgres } from '../../store/embedded/connection.ts';
import { startEmbeddedPostgres } from '../../store/embedded/embedded.ts';
import { encryptPlainSecrets } from '../../webhooks/watch-endpoints.ts';
import { explainDatabaseError } from './explain-database-error.ts';
import { loadConfig } from './load-config.ts';
import type { Terminal } from './terminal.ts';

/** The database of one command. `applied` names the migrations that the command brought in. */
export type CommandDatabase = {
  db: Database;
  now(): UnixMs;
  random(bytes: number): Buffer;
  /** For what needs a connection of another kind. */
  connection: Connection;
  config: Config;
  applied: readonly string[];
  kind: 'external' | 'embedded';
  /** The command started the database for itself: nobody else writes to it, and others wait until the command ends. */
  isStartedHere: boolean;
};

/** The parts that do not depend on how the database was opened. */
type Opened = Omit<CommandDatabase, 'applied' | 'kind' | 'isStartedHere'>;

type Options = {
  /** Whether a data directory may be made where there is none. */
  mayCreate: boolean;
  /** Whether missing migrations are applied. A data directory that the command makes gets them always. */
  mayMigrate: boolean;
  /** Whether the command changes the schema, or what the service itself never may: it works as DATABASE_OWNER_URL, where that is set. */
  asOwner?: boolean;
  /** Whether the command takes a database of whatever release, or without any table of ours. */
  takesAnySchema?: boolean;
  /** How many statements of the command may run at a time. */
  poolSize?: number;
  /** How long it waits for an instance that starts, and for other commands. */
  patienceMs?: number;
};

/**
 * Runs a command's work on the database that the service uses here, as the user of the service unless the command says otherwise:
 * DATABASE_URL, else the embedded PostgreSQL of the instance that runs on the data directory, else one started for as long as the work
 * takes.
 */
export async function withDatabase<Output>(
  terminal: Terminal,
  work: (database: CommandDatabase) => Promise<Output>,
  options: Options = { mayCreate: false, mayMigrate: false },
): Promise<Output> {
  const config = loadConfig(terminal);
  if (config.databaseUrl !== null) {
    const connection = (options.asOwner === true ? config.databaseOwnerUrl : null) ?? config.databaseUrl;
    return withConnection({ config, note: terminal.note, ...options }, connection, async (opened) => {
      const applied = options.mayMigrate ? await migrate(opened.db, encryptingWith(config, terminal)) : [];
      if (options.takesAnySchema !== true) await refusePending(opened.db, 'run "quittance migrate"');
      return work({ ...opened, applied, kind: 'external', isStartedHere: false });
    });
  }
  if (!options.mayCreate && !(await isClusterThere(config.dataDir))) {
    throw new AppError(
      'NOT_FOUND',
      `there is no database in ${config.dataDir}: change to the directory in which Quittance runs, or set QUITTANCE_DATA_DIR or DATABASE_URL to its values`,
    );
  }
  // A second command must not use a PostgreSQL that the first one is about to stop, so they take turns.
  const waiting = { dataDir: config.dataDir, patienceMs: options.patienceMs };
  const turn = await lockPatiently(waiting, 'command.lock', async () => null);
  let ending: Promise<void> | undefined;
  const endTurn = async () => {
    if (turn.kind === 'locked') ending ??= turn.release();
    await ending;
  };
  try {
    return await withEmbedded(terminal, config, work, { ...options, endTurn });
  } finally {
    await endTurn();
  }
}

async function withEmbedded<Output>(
  terminal: Terminal,
  config: Config,
  work: (database: CommandDatabase) => Promise<Output>,
  { endTurn, ...options }: Options & { endTurn: () => Promise<void> },
): Promise<Output> {
  const { mayMigrate, asOwner = false, takesAnySchema = false, poolSize, patienceMs } = options;
  const around = { config, note: terminal.note, poolSize };
  const found = await lockPatiently({ dataDir: config.dataDir, patienceMs }, 'instance.lock', () =>
    readRunningPostgres(config.dataDir),
  );
  if (found.kind === 'running') {
    // It is the service's own, for a command's would have the turn: others need not wait for what may be a long export.
    await endTurn();
    return withConnection(around, found.connection, async (opened) => {
      const { db } = opened;
      const deadlineMs = performance.now() + MIGRATION_PATIENCE_MS;
      const waits = () => !takesAnySchema && performance.now() < deadlineMs;
      while (waits() && (await isBehind(db))) await delay(LOCK_POLL_MS);
      if (!takesAnySchema) await refusePending(db, STILL_BEHIND);
      return work({ ...opened, applied: [], kind: 'embedded', isStartedHere: false });
    });
  }
  try {
    // Its routine reports are for the log of a service; a command shows what is wrong, or all if asked to.
    const level = config.logLevel === 'info' ? 'warn' : config.logLevel;
    const log = createLogger({ level, destination: terminal.stderr });
    const isNew = !(await isClusterThere(config.dataDir));
    if (isNew) terminal.note('creating a new database …');
    const postgres = await startEmbeddedPostgres({
      dataDir: config.dataDir,
      log,
      needsOwnUser: config.networks.mainnet !== undefined,
    });
    try {
      const { owner } = postgres;
      const applied = await withConnection({ config, note: terminal.note }, owner, async ({ db }) => {
        const names = isNew || mayMigrate ? await migrate(db, encryptingWith(config, terminal)) : [];
        // There is no way back from a migration, and who only wants to read has not asked for one.
        if (!takesAnySchema) await refusePending(db, 'start this release, or run "quittance migrate"');
        return names;
      });
      const connection = asOwner ? owner : postgres.connection;
      return await withConnection(around, connection, (opened) =>
        work({ ...opened, applied, kind: 'embedded', isStartedHere: true }),
      );
    } finally {
      await postgres.stop();
    }
  } finally {
    await found.release();
  }
}

const STILL_BEHIND =
  'the running instance is still updating it, or is an older release; in that case, restart it with this release';

export const now = () => unixMs(systemClock.now());

/** Seals the plain secrets of releases before sealed secrets, with the key of this environment. */
export function encryptingWith(config: Config, { stderr, note }: Terminal): MigrationHooks {
  const keyRing = () => requireKeyRing(config, note);
  return {
    onBlocked: (blockers, pauseMs) =>
      note(
        `waiting ${pauseMs / 1000} s, because the upgrade has to change tables that are locked by other sessions: ${blockers}`,
      ),
    encryptPlainSecrets: (tx) => {
      const log = createLogger({ level: config.logLevel, destination: stderr });
      return encryptPlainSecrets(tx, { keyRing, log, now, random: randomBytes });
    },
  };
}

async function isClusterThere(dataDir: string): Promise<boolean> {
  try {
    return (await findCluster(dataDir)) !== undefined;
  } catch (error) {
    throw dataDirError(dataDir, error);
  }
}

type Locked = { kind: 'locked'; release(): Promise<void> };
type Running<Connection> = { kind: 'running'; connection: Connection };

/** Longer than another command, or the start of an instance, takes. */
const LOCK_PATIENCE_MS = 15_000;
const LOCK_POLL_MS = 100;
/** An instance that starts lets commands in a moment before it has migrated. */
const MIGRATION_PATIENCE_MS = 3000;

/** Takes the lock, unless `findRunning` finds what makes it unnecessary. An instance that is starting has the lock first. */
async function lockPatiently<Found>(
  { dataDir, patienceMs = LOCK_PATIENCE_MS }: { dataDir: string; patienceMs: number | undefined },
  fileName: string,
  findRunning: () => Promise<Found | null>,
): Promise<Locked | Running<Found>> {
  const deadlineMs = performance.now() + patienceMs;
  for (;;) {
    const connection = await findRunning();
    if (connection !== null) return { kind: 'running', connection };
    try {
      const lock = await lockDataDir(dataDir, fileName);
      return { kind: 'locked', release: () => lock.release() };
    } catch (error) {
      const isInUse = error instanceof DataDirError && error.code === 'DATA_DIR_IN_USE';
      if (!isInUse || performance.now() > deadlineMs) throw error;
      await delay(LOCK_POLL_MS);
    }
  }
}

/**
 * A command must not seal anew what somebody changed, so it judges as the service does. Rows of an older release, which have no seal yet, and
 * keys that are lost are told of elsewhere.
 */
function sealing(config: Config, note: (text: string) => void) {
  if (config.rowMacs === 'off') return {};
  const onProblem = (problem: SealProblem) => {
    if (problem.kind === 'changed') note(describeSealProblem(problem));
  };
  return { seals: createSeals({ mode: config.rowMacs, onProblem }, (mayCreate) => openKeyRing(config, { mayCreate })) };
}

/** A command runs its statements one after the other; the second connection is for what a transaction leaves outside. */
const POOL_SIZE = 2;

async function withConnection<Output>(
  { config, note, poolSize = POOL_SIZE }: { config: Config; note(text: string): void; poolSize?: number | undefined },
  connection: Connection,
  work: (opened: Opened) => Promise<Output>,
): Promise<Output> {
  const db = openDatabase({
    ...sealing(config, note),
    connection,
    poolSize,
    applicationName: 'quittance command',
    addressChecks: await guardCommand(config.addressManifest),
    onError: () => undefined, // The next statement on it says so.
  });
  try {
    return await work({ db, now, random: randomBytes, connection, config });
  } catch (error) {
    if (typeof connection !== 'string') throw explainDatabaseError(error, { databaseUrl: null });
    const variable = connection === config.databaseUrl ? 'DATABASE_URL' : 'DATABASE_OWNER_URL';
    throw explainDatabaseError(error, { databaseUrl: connection }, variable);
  } finally {
    await db.close();
  }
}

/** SQLSTATE of a table that does not exist: the database has never been migrated. */
const UNDEFINED_TABLE = '42P01';
/** SQLSTATE of a table of which nothing was granted yet. */
const FORBIDDEN = '42501';

async function refusePending(db: Database, fix: string): Promise<void> {
  const count = await countPending(db);
  if (count === 0) return;
  const what = count === null ? 'has no Quittance tables yet' : `lacks ${count} migration(s) of this release`;
  throw new AppError('MIGRATIONS_PENDING', `the database ${what}: ${fix}`);
}

/** Whether an instance that runs has yet to bring something in: migrations, and at the first start of this release the grants. */
async function isBehind(db: Database): Promise<boolean> {
  return countPending(db).then(
    (count) => count !== 0,
    (error: unknown) => {
      if (codeOf(error) === FORBIDDEN) return true;
      throw error;
    },
  );
}

/** `null`: there is no table at all. */
function countPending(db: Database): Promise<number | null> {
  return pendingMigrations(db).catch((error: unknown) => {
    if (codeOf(error) === UNDEFINED_TABLE) return null;
    throw error;
  });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
