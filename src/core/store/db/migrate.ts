import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, configInvalid } from '../../domain/errors.ts';
import { PACKAGE_ROOT } from '../../runtime/package.ts';
import type { Database, Session, Sql } from './database.ts';
import { answerOf, commandOf, conditionOf, rowsOf } from './rows-of.ts';
import { findOwnership, grantRuntimeRole, RUNTIME_ROLE } from './runtime-role.ts';
import { refuseChangedSchema } from './schema-changes.ts';
import { type Row, statement } from './statement.ts';

const FOLDER = new URL('migrations/', PACKAGE_ROOT);

export type Migration = { version: number; name: string; text: string; sha256: string };

/** Returns this release's migrations in order. The files are named `NNNN_name.sql` and numbered from 1 without gaps. */
export async function readMigrations(folder: URL = FOLDER): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(
    names.map(async (name, index) => {
      const version = Number(name.slice(0, 4));
      if (version !== index + 1) throw new Error(`migration ${name} should have number ${index + 1}`);
      const text = await readFile(new URL(name, folder), 'utf8');
      return { version, name, text, sha256: createHash('sha256').update(text).digest('hex') };
    }),
  );
}

/**
 * A part of a migration that runs in its own transaction, or outside one. PostgreSQL can build an index without blocking writes only
 * outside a transaction.
 */
type Step = { text: string; isOutside: boolean };

const MARKER = /^-- step( outside a transaction)?$/;

/** Splits a migration into its steps. Each step after the first begins with a line `-- step` or `-- step outside a transaction`. */
export function stepsOf(text: string): Step[] {
  const steps: (Step & { lines: string[] })[] = [];
  for (const line of text.split('\n')) {
    const marker = MARKER.exec(line);
    if (marker !== null || steps.length === 0)
      steps.push({ text: '', lines: [], isOutside: marker?.[1] !== undefined });
    steps.at(-1)?.lines.push(line);
  }
  return steps
    .map(({ lines, isOutside }) => ({ text: lines.join('\n'), isOutside }))
    .filter(({ text }) => /^(?!--).*\S/m.test(text));
}

export type MigrationHooks = {
  onBegin?: (names: string[]) => void;
  /** Called if other sessions hold locks that the upgrade needs. `blockers` names these sessions. The upgrade retries after `pauseMs`. */
  onBlocked?: (blockers: string, pauseMs: number) => void;
  /** Encrypts the secrets that releases before 0004 stored as plain text. Without this function, a ledger with such secrets is refused. */
  encryptPlainSecrets?: (tx: Sql) => Promise<void>;
};

/**
 * Upgrades the schema and the runtime role's grants to this release, and returns the names of the migrations that it applied. Many
 * processes may call this concurrently. If nothing is missing, even a user who owns nothing may call this. It uses one transaction, unless
 * a migration has steps; then the steps before a failure stay applied, and the next call resumes from there. It delays creating and reading
 * invoices by at most a second. If it needs longer, it releases its locks and retries with growing pauses, up to `patienceMs` in total.
 * `onBegin` is called before work that may take minutes. `migrations` is for creating an older release's schema. If it's given, nothing is
 * granted and the schema isn't checked. Errors:
 *
 * - `CONFIG_INVALID` if the server is too old.
 * - `MIGRATIONS_PENDING` if something is missing and the user isn't the owner.
 * - `SCHEMA_NEWER` if the database has migrations that this release doesn't know.
 * - `SCHEMA_CHANGED` if an applied migration differs from its file, or the schema isn't the result of the migrations. The last transaction
 *   is then rolled back, and the previous release keeps working.
 * - `MIGRATION_REFUSED` for data that a migration doesn't accept.
 * - `MIGRATION_BLOCKED` if others hold locks for longer than `patienceMs`.
 */
export async function migrate(
  db: Database,
  {
    migrations,
    patienceMs = PATIENCE_MS,
    ...hooks
  }: MigrationHooks & { migrations?: Migration[]; patienceMs?: number } = {},
): Promise<string[]> {
  const known = migrations ?? (await readMigrations());
  const finish = async (tx: Sql) => {
    if (migrations !== undefined) return;
    await refuseChangedSchema(tx);
    if ((await findOwnership(tx)).isOwner) await grantRuntimeRole(tx).catch(rethrow);
  };
  return db.session(async (session) => {
    await refuseOldServer(session);
    await session.script(SETTINGS);
    await takeTurn(session, patienceMs);
    const retryWhenLocked = createLockRetry(db, session, { ...hooks, pid: await findPid(session), patienceMs });
    const { isMade, missing } = await findMissing(session, known);
    if (missing.length > 0) hooks.onBegin?.(missing.map(({ name }) => name));
    const pending = [...missing];
    // A new database has no other users, so it's set up in a single transaction.
    while (isMade && pending.some(hasSteps)) {
      const next = pending.findIndex(hasSteps);
      const before = pending.splice(0, next);
      if (before.length > 0) await retryWhenLocked((tx) => applyWhole(tx, before, hooks));
      for (const one of pending.splice(0, 1)) await applySteps(session, one, retryWhenLocked);
    }
    await retryWhenLocked(async (tx) => {
      if (!isMade) await tx.script(CREATE_TABLE);
      await applyWhole(tx, pending, hooks);
      await finish(tx);
    });
    return missing.map(({ name }) => name);
  });
}

/** The migration that created the table for encrypted secrets. Earlier releases stored secrets as plain text. */
const TABLE_OF_ENCRYPTED_SECRETS = 4;
/** A migration raises this if it finds data that it must not change. */
const REFUSED = 'QT008';

/**
 * Runs `migrate` in the caller's transaction, without granting anything. Other processes that want to migrate wait until the transaction
 * ends.
 */
export async function migrateWithin(tx: Sql, known: Migration[], hooks: MigrationHooks = {}): Promise<string[]> {
  await refuseOldServer(tx);
  await lockMigrations(tx);
  const { isMade, missing } = await findMissing(tx, known);
  if (!isMade) await tx.script(CREATE_TABLE);
  await tx.script("set local statement_timeout = '1h'; set local quote_all_identifiers = off");
  await applyWhole(tx, missing, hooks);
  return missing.map(({ name }) => name);
}

/** A migration that the database doesn't have, or has only partly: `done` of its steps were already applied. */
type Missing = Migration & { done: number };

async function findMissing(sql: Sql, known: Migration[]): Promise<{ isMade: boolean; missing: Missing[] }> {
  const { isMade, isOwner, mayRead } = await findOwnership(sql);
  if (isMade && !mayRead) throw nothingGranted();
  const missing = isMade ? await readMissing(sql, known) : known.map((each) => ({ ...each, done: 0 }));
  if (missing.length > 0 && !isOwner) throw pendingForOthers(missing, isMade);
  return { isMade, missing };
}

function hasSteps({ text, done }: Missing): boolean {
  return done > 0 || stepsOf(text).length > 1 || stepsOf(text).some(({ isOutside }) => isOutside);
}

/** Applies migrations in the caller's transaction, where indexes can't be built concurrently. */
async function applyWhole(
  tx: Sql,
  migrations: readonly Missing[],
  { encryptPlainSecrets }: MigrationHooks,
): Promise<void> {
  for (const { version, name, sha256, text, done } of migrations) {
    for (const step of stepsOf(text).slice(done)) {
      await tx.script(step.isOutside ? step.text.replace(/\bconcurrently\b/gi, '') : step.text).catch(rethrow);
    }
    await tx.run(recordApplied, [version, name, sha256]);
    if (version === TABLE_OF_ENCRYPTED_SECRETS) await encryptPlainSecrets?.(tx);
  }
}

/**
 * Applies a migration step by step, and records with each step how many are completed. This way, processes from the previous release know
 * that an upgrade is in progress, and don't check the schema. If a migration is interrupted, the next start resumes with the next step.
 */
async function applySteps(
  session: Session,
  { version, name, sha256, text, done }: Missing,
  retryWhenLocked: LockRetry,
): Promise<void> {
  const steps = stepsOf(text);
  const record = (sql: Sql, count: number) =>
    sql.run(recordApplied, [version, name, count === steps.length ? sha256 : `${count} ${sha256}`]);
  await record(session, done);
  for (const [index, step] of steps.entries()) {
    if (index < done) continue;
    if (step.isOutside) {
      await retryWhenLocked(async () => {
        await dropUnfinishedIndex(session, step.text);
        await session.script(step.text).catch(rethrow);
      }, 'outside a transaction');
      await record(session, index + 1);
    } else {
      await retryWhenLocked(async (tx) => {
        await tx.script(step.text).catch(rethrow);
        await record(tx, index + 1);
      });
    }
  }
}

/** Drops the invalid remains of an index whose build was interrupted, because they still occupy the index's name. */
async function dropUnfinishedIndex(session: Session, text: string): Promise<void> {
  const name = /create (?:unique )?index concurrently if not exists (\w+)/i.exec(text)?.[1];
  if (name !== undefined && (await isUnfinished(session, name)))
    await session.script(`drop index concurrently ${name}`);
}

const isUnfinished = conditionOf(
  'migrate-index-unfinished',
  'exists (select from pg_index where indexrelid = to_regclass($1) and not indisvalid)',
  (name: string) => [name],
);

function pendingForOthers(missing: readonly Migration[], isMade: boolean): AppError {
  const what = isMade ? `lacks ${missing.map(({ name }) => name).join(', ')}` : 'has no Quittance tables yet';
  return new AppError(
    'MIGRATIONS_PENDING',
    `the database ${what}, but the user in DATABASE_URL does not own it: run "quittance migrate" with DATABASE_OWNER_URL, the URL of the user who owns it`,
  );
}

function nothingGranted(): AppError {
  return new AppError(
    'MIGRATIONS_PENDING',
    `the user in DATABASE_URL has no rights in this database: make it a member of the ${RUNTIME_ROLE} role (grant ${RUNTIME_ROLE} to …), then run "quittance migrate" with DATABASE_OWNER_URL, the URL of the user who owns the tables`,
  );
}

function rethrow(error: Error & { code?: string }): never {
  throw error.code === REFUSED ? new AppError('MIGRATION_REFUSED', error.message, { cause: error }) : error;
}

/**
 * An upgrade waits this long for locks by default. A backup of most small ledgers takes less time. If the time isn't enough, a supervisor
 * restarts the process.
 */
const PATIENCE_MS = 300_000;
/** Only the upgrade uses this connection. */
const SETTINGS = `set statement_timeout = '1h'; set quote_all_identifiers = off`;

/** Prevents schema changes by other processes until the caller's transaction ends. */
export async function lockMigrations(tx: Sql): Promise<void> {
  await tx.script(`select pg_advisory_xact_lock(${UPGRADE_LOCK})`);
}

/**
 * Returns how many of this release's migrations the database doesn't have. Errors: as for `migrate`. If `mayBeUpgrading` is set, an
 * unfinished upgrade to a newer release isn't an error.
 */
export async function pendingMigrations(db: Sql, { mayBeUpgrading = false } = {}): Promise<number> {
  ownDigests ??= await readDigests();
  return (await readMissing(db, ownDigests, mayBeUpgrading)).length;
}

/** The digests are cached, because every `/readyz` request compares them. They can't change while this release runs. */
let ownDigests: AppliedMigration[] | undefined;

async function readDigests(): Promise<AppliedMigration[]> {
  return (await readMigrations()).map(({ version, name, sha256 }) => ({ version, name, sha256 }));
}

const CREATE_TABLE = `create table schema_migrations (
  version integer primary key, name text not null, sha256 text not null, applied_at timestamptz not null default now())`;

/** If a migration was only partly applied, the digest is preceded by the number of completed steps: `2 0f…`. */
const recordApplied = statement(
  'schema-insert-applied',
  {},
  `insert into schema_migrations (version, name, sha256) values ($1, $2, $3)
   on conflict (version) do update set name = excluded.name, sha256 = excluded.sha256, applied_at = now()`,
);

/** Returns a database's migrations in order. */
export const findApplied = rowsOf(
  'schema-applied',
  { version: 'int4', name: 'text', sha256: 'text' },
  'select version, name, sha256 from schema_migrations order by version',
);

export type AppliedMigration = Pick<Migration, 'version' | 'name' | 'sha256'>;

/** Returns the migrations that a database doesn't have, or has only partly. */
async function readMissing<Known extends AppliedMigration>(
  db: Sql,
  known: readonly Known[],
  mayBeUpgrading = false,
): Promise<(Known & { done: number })[]> {
  const done = new Map<number, number>();
  for (const row of await findApplied(db)) {
    const [, steps, digest] = /^(?:(\d+) )?(.*)$/.exec(row.sha256) ?? [];
    const file = known[row.version - 1];
    if (file === undefined) {
      if (mayBeUpgrading && steps !== undefined) continue;
      throw new AppError(
        'SCHEMA_NEWER',
        `the database has migration ${row.name}, but this release has only ${known.length} migrations: start the newer release of Quittance that applied it`,
      );
    }
    if (file.sha256 !== digest) {
      throw new AppError(
        'SCHEMA_CHANGED',
        `migration ${row.name} differs from the one that was applied: restore the released file; migrations must never be edited`,
      );
    }
    done.set(row.version, steps === undefined ? Number.POSITIVE_INFINITY : Number(steps));
  }
  return known
    .map((each) => ({ ...each, done: done.get(each.version) ?? 0 }))
    .filter(({ done: steps }) => steps !== Number.POSITIVE_INFINITY);
}

/** Serialises migrations by processes that start at the same time. The number is arbitrary: it's "quittan" in hexadecimal. */
const UPGRADE_LOCK = 0x71756974;

/**
 * The longest total time that one upgrade transaction waits for locks. Sessions that queue behind the upgrade have to wait just as long.
 */
const LOCK_WAIT_MS = 1000;
const LOOK_MS = 200;
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 15_000;

/**
 * Runs one upgrade transaction. If other sessions hold locks that it needs, retries after a pause. `outside a transaction` is for work that
 * doesn't block anyone, so it may wait.
 */
type LockRetry = (work: (tx: Sql) => Promise<unknown>, kind?: 'outside a transaction') => Promise<void>;

const blocker = { pid: 'int4', user: 'text?', application: 'text?', state: 'text?', seconds: 'int4?' } as const;

/** The `blocker` columns for a session `a` in pg_stat_activity. Most users can't see the state and times of other users' sessions. */
const BLOCKER = `b.pid, a.usename::text as user, a.application_name as application, a.state,
  extract(epoch from clock_timestamp() - a.xact_start)::int4 as seconds`;

const findPid = answerOf(
  'migrate-pid',
  { pid: 'int4' },
  'select pg_backend_pid() as pid',
  () => [],
  ([row]) => row?.pid ?? 0,
);

const findBlockers = rowsOf(
  'migrate-blockers',
  blocker,
  `select ${BLOCKER} from (select distinct unnest(pg_blocking_pids($1)) as pid) b left join pg_stat_activity a using (pid)`,
  (pid: number) => [pid],
);

const cancel = commandOf('migrate-cancel', 'select from pg_cancel_backend($1::int4)', (pid: number) => [pid]);

/** `patienceMs` is how long each transaction is retried. `pid` is the session's process id. */
function createLockRetry(
  db: Database,
  session: Session,
  {
    pid,
    patienceMs,
    onBlocked,
  }: { pid: number; patienceMs: number; onBlocked?: (blockers: string, pauseMs: number) => void },
): LockRetry {
  return async (work, kind) => {
    const isOutside = kind !== undefined;
    let waitedMs = 0;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      await session.script(`set lock_timeout = ${isOutside ? patienceMs : LOCK_WAIT_MS}`);
      const watch = watchBlockers(db, pid, isOutside ? Number.POSITIVE_INFINITY : LOCK_WAIT_MS);
      try {
        await (isOutside ? work(session) : session.transaction(work)).finally(watch.end);
        return;
      } catch (error) {
        if (!watch.isBlock(error)) throw error;
        waitedMs += pauseMs + (isOutside ? patienceMs : LOCK_WAIT_MS);
        if (waitedMs > patienceMs)
          throw blocked('other sessions hold locks on tables that the upgrade must change', watch.found());
        onBlocked?.(describeBlockers(watch.found()), pauseMs);
        await delay(pauseMs);
      }
    }
  };
}

/** The SQLSTATEs for a lock timeout and for a deadlock victim. */
const BLOCKED = ['55P03', '40P01'];
const CANCELLED = '57014';

/**
 * Records which sessions block a session, and cancels its statement if it has waited too long in total. Uses another connection of the
 * pool, because the session itself is waiting.
 */
function watchBlockers(db: Database, pid: number, mostMs: number) {
  let found: Row<typeof blocker>[] = [];
  const over = new AbortController();
  let isCancelled = false;
  const look = async () => {
    for (let blockedMs = 0; ; ) {
      await delay(LOOK_MS, undefined, { signal: over.signal }).catch(() => undefined);
      if (over.signal.aborted) return;
      const now = await findBlockers(db, pid).catch(() => []);
      if (now.length === 0 || over.signal.aborted) continue;
      found = now;
      blockedMs += LOOK_MS;
      if (blockedMs < mostMs) continue;
      isCancelled = true;
      await cancel(db, pid).catch(() => undefined);
      return;
    }
  };
  const looking = look();
  return {
    found: () => found,
    isBlock: (error: unknown) => {
      const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
      const is = (one: string) => code === one || cause?.code === one;
      return BLOCKED.some(is) || (isCancelled && is(CANCELLED));
    },
    end: async () => {
      over.abort();
      await looking;
    },
  };
}

function blocked(why: string, blockers: readonly Row<typeof blocker>[]): AppError {
  const pids = blockers.map(({ pid }) => pid);
  const end = pids.map((pid) => `select pg_terminate_backend(${pid})`).join('; ');
  return new AppError(
    'MIGRATION_BLOCKED',
    `the database upgrade was stopped, because ${why}: ${describeBlockers(blockers)}. Invoices are still created and read as before. Wait until that session ends, then start again. To end that session, run as its user or a superuser: ${end || 'select pg_terminate_backend(…)'}`,
  );
}

function describeBlockers(blockers: readonly Row<typeof blocker>[]): string {
  const named = blockers.map(({ pid, user, application, state, seconds }) => {
    if (pid === 0) return 'a prepared transaction (see pg_prepared_xacts)';
    const since = seconds === null ? '' : `, in a transaction for ${describeSeconds(seconds)}`;
    return `pid ${pid} (user ${user ?? 'unknown'}, application "${application ?? ''}"${state === null ? '' : `, ${state}`}${since})`;
  });
  return named.length === 0 ? 'a session that has ended in the meantime (see pg_stat_activity)' : named.join('; ');
}

function describeSeconds(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
}

/**
 * Waits until no other process is upgrading, and then makes others wait until the connection ends. It polls, because a session that waits
 * inside PostgreSQL holds a snapshot that a concurrent index build would wait for.
 */
async function takeTurn(session: Sql, patienceMs: number): Promise<void> {
  const begun = performance.now();
  while (!(await tryLock(session))) {
    if (performance.now() - begun > patienceMs) {
      throw blocked('another process is upgrading this database', await findHolders(session));
    }
    await delay(TURN_POLL_MS);
  }
}

const TURN_POLL_MS = 100;

/** Takes the lock, if it's free, until the connection ends. */
const tryLock = conditionOf('migrate-turn', `pg_try_advisory_lock(${UPGRADE_LOCK})`);

const findHolders = rowsOf(
  'migrate-turn-holders',
  blocker,
  `select ${BLOCKER} from (
     select pid from pg_locks where locktype = 'advisory' and granted and classid = 0 and objid = ${UPGRADE_LOCK}
       and database = (select oid from pg_database where datname = current_database())) b
   left join pg_stat_activity a using (pid)`,
);

/** The version in Debian 12. Statements and migrations are tested against it (test/flows/oldest-postgres.test.ts). */
export const OLDEST_POSTGRES = 15;

const findRelease = answerOf(
  'server-release',
  { version: 'text', versionNumber: 'int4' },
  `select current_setting('server_version') as version, current_setting('server_version_num')::int4 as version_number`,
  () => [],
  ([row]) => row ?? null,
);

/** Throws `CONFIG_INVALID` if the server is older than the oldest supported version. */
async function refuseOldServer(sql: Sql): Promise<void> {
  const release = await findRelease(sql);
  if (release === null || release.versionNumber >= OLDEST_POSTGRES * 10_000) return;
  throw configInvalid`the server in DATABASE_URL is PostgreSQL ${release.version}, but Quittance requires ${OLDEST_POSTGRES} or newer: upgrade it (pg_upgrade), or use another server. Nothing was changed`;
}
