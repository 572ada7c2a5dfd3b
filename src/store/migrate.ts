import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { AppError } from '../domain/errors.ts';
import type { Database, Sql } from './database.ts';
import { statement } from './statement.ts';

const FOLDER = new URL('../../migrations/', import.meta.url);
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
 * Brings the schema up to this release in one transaction and returns the names of the applied migrations.
 * Safe to call from many processes at once. Errors: `SCHEMA_NEWER` when the database has migrations that this release
 * does not know, `SCHEMA_CHANGED` when an applied one differs from its file. `onBegin` hears of work that may take minutes.
 */
export async function migrate(
  db: Database,
  { migrations, onBegin }: { migrations?: Migration[]; onBegin?: (names: string[]) => void } = {},
): Promise<string[]> {
  const known = migrations ?? (await readMigrations());
  for (let attempt = 1; ; attempt++) {
    try {
      return await migrateOnce(db, known, onBegin);
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

function migrateOnce(db: Database, known: Migration[], onBegin?: (names: string[]) => void): Promise<string[]> {
  return db.transaction((tx) => migrateWithin(tx, known, onBegin));
}

/** `migrate` in the caller's transaction, at whose end other processes go on that would migrate. */
export async function migrateWithin(
  tx: Sql,
  known: Migration[],
  onBegin?: (names: string[]) => void,
): Promise<string[]> {
  await lockMigrations(tx);
  await tx.script(CREATE_TABLE);
  const applied = await readApplied(tx, known);
  const missing = known.filter(({ version }) => !applied.has(version));
  if (missing.length > 0) onBegin?.(missing.map(({ name }) => name));
  for (const { version, name, sha256, text } of missing) {
    await tx.script(`set local statement_timeout = '1h'; ${text}`);
    await tx.run(insertApplied, [version, name, sha256]);
  }
  return missing.map(({ name }) => name);
}

/** Keeps the schema as it is for other processes until the caller's transaction ends. */
export async function lockMigrations(tx: Sql): Promise<void> {
  await tx.script(`select pg_advisory_xact_lock(${LOCK_KEY})`);
}

/** The number of migrations that this release has and the database lacks. Throws as `migrate` does. */
export async function pendingMigrations(db: Database, migrations?: Migration[]): Promise<number> {
  const known = migrations ?? (await readMigrations());
  return known.length - (await readApplied(db, known)).size;
}

const CREATE_TABLE = `create table if not exists schema_migrations (
  version integer primary key, name text not null, sha256 text not null, applied_at timestamptz not null default now())`;

const selectApplied = statement(
  'schema-applied',
  { version: 'int4', name: 'text', sha256: 'text' },
  'select version, name, sha256 from schema_migrations order by version',
);

const insertApplied = statement(
  'schema-insert-applied',
  {},
  'insert into schema_migrations (version, name, sha256) values ($1, $2, $3)',
);

/** The migrations that a database has, in their order. */
export function findApplied(db: Sql): Promise<AppliedMigration[]> {
  return db.run(selectApplied, []);
}

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
