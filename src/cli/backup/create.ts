import { randomUUID } from 'node:crypto';
import { basename, resolve } from 'node:path';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import { openKeyRing } from '../../runtime/open-key-ring.ts';
import { type BackupMade, FileExists, type Protection, writeBackup } from '../../store/backup.ts';
import { checkRecipients } from '../../store/backup-encryption.ts';
import { closeLedger, findLedgerIdentity, refuseForeignLedger, takeLedger } from '../../store/ledger-identity.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { readVersion } from '../version.ts';
import { type CommandDatabase, withDatabase } from '../with-database.ts';
import { refuseRunning } from './refuse-running.ts';

export type BackupOptions = { to?: string; final?: boolean; recipient?: string[] };

/** Writes a backup. With `--final` the ledger is closed first, so nothing can be created that the file lacks. */
export async function createBackup(terminal: Terminal, options: BackupOptions): Promise<Result> {
  const work = async (database: CommandDatabase) => {
    const now = unixMs(systemClock.now());
    const path = resolve(options.to ?? `quittance-${new Date(now).toISOString().replace(/[:.]/g, '')}.backup`);
    const protection = await readProtection(terminal, database, options);
    if (options.final === true) await close(database);
    try {
      const { connection } = database;
      return present(
        path,
        await writeBackup({ connection, path, release: readVersion(), now, protection }),
        protection,
      );
    } catch (error) {
      throw explain(error, path);
    }
  };
  return withDatabase(terminal, work, { mayCreate: false, mayMigrate: false, asOwner: options.final === true });
}

/** Before the ledger is closed, so that a wrong setting closes nothing. */
async function readProtection(
  terminal: Terminal,
  { config }: CommandDatabase,
  options: BackupOptions,
): Promise<Protection> {
  const recipients = options.recipient ?? config.backupRecipients;
  await checkRecipients(recipients);
  const ring = await openKeyRing(config, { mayCreate: false, warn: terminal.note });
  return { masterKey: ring?.current() ?? null, recipients };
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

function present(
  path: string,
  { header, rowCounts, bytes }: BackupMade,
  { masterKey, recipients }: Protection,
): Result {
  const { ledger, takenAt, masterKeyIds } = header;
  const isFinal = ledger?.isFinal === true;
  const count = (name: string) => String(rowCounts[name] ?? 0);
  const keys = masterKeyIds.length === 0 ? null : masterKeyIds.join(', ');
  return {
    data: {
      file: path,
      bytes,
      takenAt,
      final: isFinal,
      ledgerId: ledger?.id ?? null,
      rowCounts,
      masterKeyIds,
      authenticatedBy: masterKey?.id ?? null,
      recipients,
    },
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
      [
        'authenticated',
        masterKey === null
          ? 'NO: no master key is at hand, so nobody can tell whether the file was changed'
          : `under the master key ${masterKey.id}`,
      ],
      ['encrypted', recipients.length === 0 ? 'no' : `to ${recipients.map(shorten).join(', ')}`],
      ['final', isFinal ? 'yes: this ledger creates no invoice any more, here and for ever' : null],
    ]),
    next: isFinal
      ? `restore it once, where the ledger goes on: quittance restore ${basename(path)}. Never start a service over this database again`
      : 'keep it on another machine, and the master key in another place than the backups; try it with "quittance backup --verify"',
  };
}

/** Public keys that are safe from quantum computers have 1,959 characters. */
function shorten(recipient: string): string {
  return recipient.length > 62 ? `${recipient.slice(0, 40)}…` : recipient;
}
