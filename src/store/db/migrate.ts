import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { AppError } from '../../domain/errors.ts';
import { PACKAGE_ROOT } from '../../runtime/package-root.ts';
import type { Database, Sql } from './database.ts';
import { refuseOldServer } from './refuse-server.ts';
import { rowsOf } from './rows-of.ts';
import { findOwnership, grantRuntimeRole, RUNTIME_ROLE } from './runtime-role.ts';
import { refuseChangedSchema } from './schema-changes.ts';
import { statement } from './statement.ts';

const FOLDER = new URL('migrations/', PACKAGE_ROOT);
/** Serialises migrations of processes that start together. Any constant will do; this is "quittan" in hexadecimal. */
const LOCK_KEY = 0x71756974;

export type Migration = { version: number; name: string; text: string; sha256: string };

/** The migrations of this release, in order: files `NNNN_name.sql`, numbered from 1 without a gap. */
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
 * Brings the schema and the grants of the runtime role up to this release in one transaction, and returns the names of the applied
 * migrations. Safe to call from many processes at once, and by a user who owns nothing where nothing is missing. Errors:
 * `CONFIG_INVALID` for a server that is too old, `MIGRATIONS_PENDING` for such a user where something is, `SCHEMA_NEWER` when the database has migrations that this release does not
 * know, `SCHEMA_CHANGED` when an applied one differs from its file, or the schema is not what they made: then nothing is applied, and
 * the release of before goes on; `MIGRATION_REFUSED` for data that a migration does not take. `onBegin` hears of work that may take minutes. With `migrations`, for the state of an older release,
 * nothing is granted and the schema is not examined.
 */
export async function migrate(
  db: Database,
  { migrations, ...hooks }: MigrationHooks & { migrations?: Migration[] } = {},
): Promise<string[]> {
  const known = migrations ?? (await readMigrations());
  for (let attempt = 1; ; attempt++) {
    try {
      return await db.transaction(async (tx) => {
        const applied = await migrateWithin(tx, known, hooks);
        if (migrations === undefined) {
          await refuseChangedSchema(tx);
          if ((await findOwnership(tx)).isOwner) await grantRuntimeRole(tx).catch(rethrow);
        }
        return applied;
      });
    } catch (error) {
      // Beside a running process of the former release, whose transactions lock the same tables in another order.
      if (attempt === MAX_ATTEMPTS || !isDeadlock(error)) throw error;
    }
  }
}

const MAX_ATTEMPTS = 5;
/** PostgreSQL's SQLSTATE of the one that has to give way. */
const DEADLOCK = '40P01';

function isDeadlock(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  return code === DEADLOCK || cause?.code === DEADLOCK;
}

export type MigrationHooks = {
  onBegin?: (names: string[]) => void;
  /** Seals the secrets that releases before 0004 stored as plain text. Without it a ledger that has such is refused. */
  encryptPlainSecrets?: (tx: Sql) => Promise<void>;
};

/** The migration that made the table of sealed secrets: until it is applied, plain ones are those of a former release. */
const TABLE_OF_ENCRYPTED_SECRETS = 4;
/** Raised by a migration that finds what it must not touch. */
const REFUSED = 'QT008';

/** `migrate` in the caller's transaction, at whose end other processes go on that would migrate. Grants nothing. */
export async function migrateWithin(
  tx: Sql,
  known: Migration[],
  { onBegin, encryptPlainSecrets }: MigrationHooks = {},
): Promise<string[]> {
  await refuseOldServer(tx);
  await lockMigrations(tx);
  const { isMade, isOwner, mayRead } = await findOwnership(tx);
  if (isMade && !mayRead) throw nothingGranted();
  const applied = isMade ? await readApplied(tx, known) : new Set();
  const missing = known.filter(({ version }) => !applied.has(version));
  if (missing.length > 0 && !isOwner) throw pendingForOthers(missing, isMade);
  if (!isMade) await tx.script(CREATE_TABLE);
  if (missing.length > 0) onBegin?.(missing.map(({ name }) => name));
  for (const { version, name, sha256, text } of missing) {
    await tx
      .script(`set local statement_timeout = '1h'; set local quote_all_identifiers = off; ${text}`)
      .catch(rethrow);
    await tx.run(insertApplied, [version, name, sha256]);
    if (version === TABLE_OF_ENCRYPTED_SECRETS) await encryptPlainSecrets?.(tx);
  }
  return missing.map(({ name }) => name);
}

function pendingForOthers(missing: readonly Migration[], isMade: boolean): AppError {
  const what = isMade ? `lacks ${missing.map(({ name }) => name).join(', ')}` : 'has no tables of Quittance yet';
  return new AppError(
    'MIGRATIONS_PENDING',
    `the database ${what}, and the user of DATABASE_URL does not own it: run "quittance migrate" with DATABASE_OWNER_URL, the URL of a user who does`,
  );
}

function nothingGranted(): AppError {
  return new AppError(
    'MIGRATIONS_PENDING',
    `nothing of this database was granted to the user of DATABASE_URL: make it a member of the role ${RUNTIME_ROLE} (grant ${RUNTIME_ROLE} to …), then run "quittance migrate" with DATABASE_OWNER_URL, the URL of the user who owns the tables`,
  );
}

function rethrow(error: Error & { code?: string }): never {
  throw error.code === REFUSED ? new AppError('MIGRATION_REFUSED', error.message, { cause: error }) : error;
}

/** Keeps the schema as it is for other processes until the caller's transaction ends. */
export async function lockMigrations(tx: Sql): Promise<void> {
  await tx.script(`select pg_advisory_xact_lock(${LOCK_KEY})`);
}

/** The number of migrations that this release has and the database lacks. Throws as `migrate` does. */
export async function pendingMigrations(db: Sql, migrations?: Migration[]): Promise<number> {
  const known = migrations ?? (await readMigrations());
  return known.length - (await readApplied(db, known)).size;
}

const CREATE_TABLE = `create table schema_migrations (
  version integer primary key, name text not null, sha256 text not null, applied_at timestamptz not null default now())`;

const insertApplied = statement(
  'schema-insert-applied',
  {},
  'insert into schema_migrations (version, name, sha256) values ($1, $2, $3)',
);

/** The migrations that a database has, in their order. */
export const findApplied = rowsOf(
  'schema-applied',
  { version: 'int4', name: 'text', sha256: 'text' },
  'select version, name, sha256 from schema_migrations order by version',
  () => [],
);

export type AppliedMigration = Pick<Migration, 'version' | 'name' | 'sha256'>;

async function readApplied(db: Sql, known: Migration[]): Promise<Set<number>> {
  const rows = await findApplied(db);
  for (const row of rows) {
    const file = known[row.version - 1];
    if (file === undefined) {
      throw new AppError(
        'SCHEMA_NEWER',
        `the database has migration ${row.name}, and this release ends at number ${known.length}: start the newer release of Quittance that made it`,
      );
    }
    if (file.sha256 !== row.sha256) {
      throw new AppError(
        'SCHEMA_CHANGED',
        `migration ${row.name} differs from the one that was applied: restore the file as it was released; migrations are append-only`,
      );
    }
  }
  return new Set(rows.map((row) => row.version));
}
