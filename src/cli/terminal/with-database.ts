import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, notFound } from '../../core/domain/errors.ts';
import { type UnixMs, unixMs } from '../../core/domain/time.ts';
import { guardCommand } from '../../core/payments/manifest/address-guard.ts';
import { systemClock } from '../../core/runtime/clock.ts';
import { DataDirError, dataDirError, lockDataDir } from '../../core/runtime/instance-lock.ts';
import { createLogger } from '../../core/runtime/log.ts';
import { openKeyRing, requireKeyRing } from '../../core/runtime/open-key-ring.ts';
import { type Connection, type Database, openDatabase } from '../../core/store/db/database.ts';
import { type MigrationHooks, migrate, pendingMigrations } from '../../core/store/db/migrate.ts';
import { describeSealProblem, type SealProblem } from '../../core/store/db/seal.ts';
import { createSeals } from '../../core/store/db/seals.ts';
import { findCluster } from '../../core/store/embedded/cluster.ts';
import { readRunningPostgres } from '../../core/store/embedded/connection.ts';
import { startEmbeddedPostgres } from '../../core/store/embedded/embedded.ts';
import { encryptPlainSecrets } from '../../core/webhooks/watch-endpoints.ts';
import type { Config } from '../../server/config/config.ts';
import { explainDatabaseError } from './explain-database-error.ts';
import { loadConfig } from './load-config.ts';
import type { Terminal } from './terminal.ts';

/** The database that a command uses. `applied` names the migrations that the command applied. */
export type CommandDatabase = {
  db: Database;
  now(): UnixMs;
  random(bytes: number): Buffer;
  /** The connection, for work that needs another kind of pool or session. */
  connection: Connection;
  config: Config;
  applied: readonly string[];
  kind: 'external' | 'embedded';
  /** The command started the database for itself: no one else writes to it, and other commands wait until this one ends. */
  isStartedHere: boolean;
};

/** The parts that don't depend on how the database was opened. */
type Opened = Omit<CommandDatabase, 'applied' | 'kind' | 'isStartedHere'>;

type Options = {
  /** Whether to create a missing data directory. */
  mayCreate?: boolean;
  /** Whether to apply missing migrations. A new data directory always gets them. */
  mayMigrate?: boolean;
  /**
   * Whether the command changes the schema or does something else that the service may not. It then connects with DATABASE_OWNER_URL, if
   * that is set.
   */
  asOwner?: boolean;
  /** Whether the command accepts a database from any release, even one without our tables. */
  takesAnySchema?: boolean;
  /** How many statements the command may run at once. */
  poolSize?: number;
  /** How long to wait for a starting instance and for other commands. */
  patienceMs?: number;
};

/**
 * Runs `work` with the service's database: the one in DATABASE_URL, or else the embedded PostgreSQL of the data directory, which is started
 * for the duration of `work` if no instance is running. Connects as the service's user unless `asOwner` is set.
 */
export async function withDatabase<Output>(
  terminal: Terminal,
  work: (database: CommandDatabase) => Promise<Output>,
  options: Options = {},
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
  if (!options.mayCreate && !(await isClusterThere(config.dataDir)))
    throw notFound`there is no database in ${config.dataDir}: change to the directory in which Quittance runs, or set QUITTANCE_DATA_DIR or DATABASE_URL to the service's value`;
  // Commands take turns, because a second one must not use a PostgreSQL that the first one is about to stop.
  const waiting = { dataDir: config.dataDir, patienceMs: options.patienceMs };
  const turn = await lockUnlessRunning(waiting, 'command.lock', async () => null);
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
  const { mayMigrate = false, asOwner = false, takesAnySchema = false, poolSize, patienceMs } = options;
  const around = { config, note: terminal.note, poolSize };
  const found = await lockUnlessRunning({ dataDir: config.dataDir, patienceMs }, 'instance.lock', () =>
    readRunningPostgres(config.dataDir),
  );
  if (found.kind === 'running') {
    // This database belongs to the running service, because a database started by a command would hold the lock. Commands can share it, so
    // the next one doesn't have to wait for a long export.
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
    // Routine messages belong in a service's log. A command shows only problems, or everything if configured.
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
        // Migrations can't be undone, and a command that only reads wasn't asked to run them.
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
  'wait until the running instance has updated it; if that instance is an older release, restart it with this release';

export const now = () => unixMs(systemClock.now());

/** Encrypts plaintext secrets from early releases with this environment's key. */
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

/** Another command, or the start of an instance, takes less time than this. */
const LOCK_PATIENCE_MS = 15_000;
const LOCK_POLL_MS = 100;
/** A starting instance accepts commands shortly before its migrations are complete. */
const MIGRATION_PATIENCE_MS = 3000;

/** Takes the lock, unless `findRunning` finds an instance, which makes the lock unnecessary. A starting instance takes the lock first. */
async function lockUnlessRunning<Found>(
  { dataDir, patienceMs = LOCK_PATIENCE_MS }: { dataDir: string; patienceMs: number | undefined },
  fileName: string,
  findRunning: () => Promise<Found | null>,
) {
  const deadlineMs = performance.now() + patienceMs;
  for (;;) {
    const connection = await findRunning();
    if (connection !== null) return { kind: 'running', connection } as const;
    try {
      const lock = await lockDataDir(dataDir, fileName);
      return { kind: 'locked', release: () => lock.release() } as const;
    } catch (error) {
      const isInUse = error instanceof DataDirError && error.code === 'DATA_DIR_IN_USE';
      if (!isInUse || performance.now() > deadlineMs) throw error;
      await delay(LOCK_POLL_MS);
    }
  }
}

/**
 * A command verifies seals as the service does, so that it never seals a tampered row again. Unsealed rows from older releases, and lost
 * keys, are reported elsewhere.
 */
function sealing(config: Config, note: (text: string) => void) {
  if (config.rowMacs === 'off') return {};
  const onProblem = (problem: SealProblem) => {
    if (problem.kind === 'changed') note(describeSealProblem(problem));
  };
  return { seals: createSeals({ mode: config.rowMacs, onProblem }, (mayCreate) => openKeyRing(config, { mayCreate })) };
}

/** A command runs its statements one after the other. The second connection is for statements outside a transaction. */
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
    onError: () => undefined, // The next statement on the connection reports the error.
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

/** The SQLSTATE for a missing table: the database was never migrated. */
const UNDEFINED_TABLE = '42P01';
/** The SQLSTATE for a table that has no grants yet. */
const FORBIDDEN = '42501';

async function refusePending(db: Database, fix: string): Promise<void> {
  const count = await countPending(db);
  if (count === 0) return;
  const what =
    count === null
      ? 'has no Quittance tables yet'
      : `lacks ${count} ${count === 1 ? 'migration' : 'migrations'} from this release`;
  throw new AppError('MIGRATIONS_PENDING', `the database ${what}: ${fix}`);
}

/** Whether a running instance still has to apply migrations or, at the first start of this release, grants. */
async function isBehind(db: Database): Promise<boolean> {
  return countPending(db).then(
    (count) => count !== 0,
    (error: unknown) => {
      if (codeOf(error) === FORBIDDEN) return true;
      throw error;
    },
  );
}

/** Returns `null` if there are no tables at all. */
function countPending(db: Database): Promise<number | null> {
  return pendingMigrations(db).catch((error: unknown) => {
    if (codeOf(error) === UNDEFINED_TABLE) return null;
    throw error;
  });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
