import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AppError } from '../../domain/errors.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { type BackupSession, inBackupSession } from '../../store/db/copy-session.ts';
import type { Connection, Sql } from '../../store/db/database.ts';
import {
  lockMigrations,
  type Migration,
  type MigrationHooks,
  migrateWithin,
  readMigrations,
} from '../../store/db/migrate.ts';
import { rowOf } from '../../store/db/rows-of.ts';
import { grantRuntimeRole } from '../../store/db/runtime-role.ts';
import {
  advanceSequences,
  type BackupTable,
  copyInText,
  dropTables,
  findBackupTables,
  findOurTables,
  hasProjects,
} from '../../store/db/tables.ts';
import type { BackupHeader, Frame } from './backup-format.ts';
import { type Authenticity, admitBackup, type BackupEnding } from './backup-mac.ts';
import { checkBackup, damaged, type Opening, readFrames } from './backup-read.ts';

/**
 * Loads a backup into an empty database and brings it up to this release, in one transaction, at whose end `finish` is called.
 * The file is read to its end before anything is written, and again while it is loaded.
 * Errors: `BACKUP_DAMAGED`, `BACKUP_TAMPERED`, `BACKUP_UNAUTHENTICATED`, `BACKUP_ENCRYPTED`, `DATABASE_NOT_EMPTY`, `SCHEMA_NEWER` for a backup of a newer release, `SCHEMA_CHANGED`.
 */
export async function loadBackup<Finished>(options: {
  connection: Connection;
  path: string;
  /** The backup must have been made with a key of this ring. */
  keyRing?: KeyRing | null;
  /** Accepts also a backup that no available key vouches for. */
  takesUnauthenticated?: boolean;
  /** Secret keys of age, for an encrypted one. */
  identities?: readonly string[];
  finish: (tx: Sql, header: BackupHeader, authenticity: Authenticity) => Promise<Finished>;
  migrations?: Migration[];
  hooks?: MigrationHooks;
}) {
  const { connection, path, keyRing = null, identities = [] } = options;
  const { header, ending, authenticity } = await checkBackup(path, { keyRing, identities });
  admitBackup(path, authenticity, options.takesUnauthenticated === true);
  const known = options.migrations ?? (await readMigrations());
  const ofFile = matchMigrations(path, header, known);
  return inBackupSession(connection, 'isolation level read committed', async (session) => {
    await lockMigrations(session);
    await makeRoom(session);
    await migrateWithin(session, ofFile);
    await session.script('set local statement_timeout = 0');
    // This trigger also says when a payment may have come. Rows that are there already need not fit that rule: earlier releases had none,
    // and the arrivals that it asks of are forgotten after a day.
    await session.script('alter table transfers disable trigger transfers_fit_their_invoice');
    const rowCounts = await load(session, path, ending, { keyRing, identities });
    // References to missing rows are found now, so no check is pending when migrations change the tables.
    await session.script('set constraints all immediate');
    await session.script('alter table transfers enable trigger transfers_fit_their_invoice');
    const misfit = await findMisfit(session);
    if (misfit !== null) throw damaged(path, `transfer ${misfit.id} does not fit the invoice that it is tied to`);
    await advanceSequences(session);
    const applied = await migrateWithin(session, known, options.hooks);
    if (options.migrations === undefined) await grantRuntimeRole(session);
    await session.script('set local statement_timeout = 0');
    const finished = await options.finish(session, header, authenticity);
    // Without statistics the first minutes on a large ledger would be slow.
    await session.script('analyze');
    return { header, authenticity, rowCounts, applied, finished };
  });
}

const findMisfit = rowOf(
  'backup-misfit',
  { id: 'uuid' },
  `select t.id from transfers t left join invoices i on i.project_id = t.project_id and i.id = t.invoice_id
     and i.address_id = t.address_id and i.payable_micro = t.reserved_micro
   where t.invoice_id is not null and i.id is null limit 1`,
  () => [],
);

/** Those of our migrations that the backup's database had. */
function matchMigrations(path: string, header: BackupHeader, known: readonly Migration[]): Migration[] {
  return header.migrations.map(({ version, name, sha256 }, index) => {
    const ours = known[index];
    if (ours === undefined) {
      throw new AppError(
        'SCHEMA_NEWER',
        `${path} was made by release ${header.release} with migration ${name}, and this release ends at number ${known.length}: restore it with that release or a newer one`,
      );
    }
    if (ours.version !== version || ours.sha256 !== sha256) {
      throw new AppError(
        'SCHEMA_CHANGED',
        `${path} was made with another migration ${name} than the one of this release: restore it with the release that made it (${header.release})`,
      );
    }
    return ours;
  });
}

/** Without a project nothing is of value: what a service writes at its start, it writes again. */
async function makeRoom(session: BackupSession): Promise<void> {
  const tables = await findOurTables(session);
  if (tables.includes('projects') && (await hasProjects(session))) {
    throw new AppError(
      'DATABASE_NOT_EMPTY',
      'the database has projects already: restore into a new database, or into a new data directory; nothing was changed',
    );
  }
  await dropTables(session, tables);
}

/** Copies the rows of each table, while constraints and triggers of the schema judge them as they judge every other row but for one. */
async function load(
  session: BackupSession,
  path: string,
  ending: BackupEnding,
  opening: Opening,
): Promise<Record<string, number>> {
  const tables = new Map((await findBackupTables(session)).map((table) => [table.name, table]));
  const rowCounts: Record<string, number> = {};
  const frames = readFrames(path, opening);
  for (;;) {
    const next = await frames.next();
    if (next.done === true) {
      if (next.value.digest.equals(ending.digest)) break;
      throw damaged(path, 'it became another file while it was read');
    }
    if (next.value.type !== 't') continue;
    const { name, columns } = next.value.table;
    const table = tables.get(name);
    if (table === undefined || table.columns.join() !== columns.join()) {
      throw damaged(path, `its table ${name} is not as the schema has it`);
    }
    rowCounts[name] = await loadTable(session, path, table, frames);
    tables.delete(name);
  }
  const [missing] = tables.keys();
  if (missing !== undefined) throw damaged(path, `it has no table ${missing}`);
  return rowCounts;
}

async function loadTable(
  session: BackupSession,
  path: string,
  table: BackupTable,
  frames: AsyncGenerator<Frame, BackupEnding>,
): Promise<number> {
  let expected = -1;
  const rows = async function* (): AsyncGenerator<Buffer> {
    for (let next = await frames.next(); next.done !== true; next = await frames.next()) {
      if (next.value.type === 'e') {
        expected = next.value.rowCount;
        return;
      }
      if (next.value.type === 'd') yield next.value.rows;
    }
  };
  const target = session.copyIn(copyInText(table));
  await pipeline(Readable.from(rows(), { objectMode: false }), target);
  if (target.rowCount !== expected) {
    throw damaged(path, `${target.rowCount} rows of ${table.name} were loaded, and it has ${expected}`);
  }
  return expected;
}
