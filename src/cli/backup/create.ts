import { randomUUID } from 'node:crypto';
import { basename, resolve } from 'node:path';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import { type BackupMade, FileExists, writeBackup } from '../../store/backup.ts';
import { closeLedger, findLedgerIdentity, refuseForeignLedger, takeLedger } from '../../store/ledger-identity.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { readVersion } from '../version.ts';
import { type CommandDatabase, withDatabase } from '../with-database.ts';
import { refuseRunning } from './refuse-running.ts';

export type BackupOptions = { to?: string; final?: boolean };

/** Writes a backup. With `--final` the ledger is closed first, so nothing can be created that the file lacks. */
export async function createBackup(terminal: Terminal, options: BackupOptions): Promise<Result> {
  return withDatabase(terminal, async (database) => {
    const now = unixMs(systemClock.now());
    const path = resolve(options.to ?? `quittance-${new Date(now).toISOString().replace(/[:.]/g, '')}.backup`);
    if (options.final === true) await close(database);
    try {
      const made = await writeBackup({ connection: database.connection, path, release: readVersion(), now });
      return present(path, made);
    } catch (error) {
      throw explain(error, path);
    }
  });
}

async function close(database: CommandDatabase): Promise<void> {
  const { db } = database;
  await refuseRunning(database);
  await takeLedger(db, { id: randomUUID(), firstIndex: 0 }, { isAnew: false });
  const identity = await findLedgerIdentity(db);
  // A final backup that was cut off is made again; a copy must first be accepted.
  if (identity !== null) refuseForeignLedger({ ...identity, closedAt: null });
  await db.transaction(closeLedger);
}

function explain(error: unknown, path: string): unknown {
  if (error instanceof FileExists) {
    return new CliError('CONFLICT', `there is a file ${clip(path)} already: give another name with --to`);
  }
  const { code, syscall } = error as { code?: unknown; syscall?: unknown };
  if (typeof code !== 'string' || typeof syscall !== 'string' || !/^(open|write|rename|fsync)$/.test(syscall))
    return error;
  return new CliError('INVALID_ARGUMENT', `${clip(path)} cannot be written (${code}): give another place with --to`, {
    cause: error,
  });
}

function present(path: string, { header, rowCounts, bytes }: BackupMade): Result {
  const { ledger, takenAt, masterKeyIds } = header;
  const isFinal = ledger?.isFinal === true;
  const count = (name: string) => String(rowCounts[name] ?? 0);
  const keys = masterKeyIds.length === 0 ? null : masterKeyIds.join(', ');
  return {
    data: { file: path, bytes, takenAt, final: isFinal, ledgerId: ledger?.id ?? null, rowCounts, masterKeyIds },
    text: formatFields([
      ['file', path],
      ['size', `${bytes} bytes`],
      ['taken at', takenAt],
      ['projects', count('projects')],
      ['addresses', count('addresses')],
      ['invoices', count('invoices')],
      ['transfers', count('transfers')],
      ['events', count('events')],
      ['sealed with', keys],
      ['final', isFinal ? 'yes: this ledger creates no invoice any more, here and for ever' : null],
    ]),
    next: isFinal
      ? `restore it once, where the ledger goes on: quittance restore ${basename(path)}. Never start a service over this database again`
      : 'keep it on another machine, and the master key in another place than the backups; try it with "quittance backup --verify"',
  };
}
