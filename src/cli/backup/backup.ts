import { basename, resolve } from 'node:path';
import { toIso } from '../../core/domain/time.ts';
import { openKeyRing } from '../../core/runtime/open-key-ring.ts';
import { readVersion } from '../../core/runtime/package.ts';
import type { BackupView } from '../../faces/operator/backup/backup-format.ts';
import { createBackup, makeKey } from '../../faces/operator/backup/create-backup.ts';
import { formatFields } from '../../faces/operator/command-words.ts';
import { cliActor, type Result, type Terminal } from '../terminal/terminal.ts';
import { now, withDatabase } from '../terminal/with-database.ts';

type BackupOptions = { to?: string; final?: boolean; recipient?: string[] };

export async function printBackup(terminal: Terminal, options: BackupOptions): Promise<Result> {
  const isFinal = options.final === true;
  const data = await withDatabase(
    terminal,
    async ({ config, ...database }) => {
      const at = now();
      const path = resolve(options.to ?? `quittance-${toIso(at).replace(/[:.]/g, '')}.backup`);
      const recipients = options.recipient ?? config.backupRecipients;
      const keyRing = await openKeyRing(config, { mayCreate: false, warn: terminal.note });
      const deps = { ...database, now: () => at, keyRing, release: readVersion() };
      return createBackup(deps, cliActor(terminal), { path, recipients, isFinal });
    },
    { mayCreate: false, mayMigrate: false, asOwner: isFinal },
  );
  return {
    data,
    text: describe(data),
    next: data.final
      ? `restore the backup once, at the new location: quittance restore ${basename(data.file)}. Never start a service with this database again`
      : 'keep the backup on another machine, and the master key separate from your backups; to test the backup, use "quittance backup --verify"',
  };
}

function describe({ rowCounts, masterKeyIds, authenticatedBy, recipients, ...made }: BackupView): string {
  return formatFields([
    ['file', made.file],
    ['size', `${made.bytes} bytes`],
    ['taken at', made.takenAt],
    ...['projects', 'addresses', 'invoices', 'transfers', 'events'].map(
      (name) => [name, String(rowCounts[name] ?? 0)] as const,
    ),
    ['audit log', made.auditHead],
    ['sealed with', masterKeyIds.length === 0 ? null : masterKeyIds.join(', ')],
    [
      'authenticated',
      authenticatedBy === null
        ? 'NO: no master key is configured, so changes to the file cannot be detected'
        : `with the master key ${authenticatedBy}`,
    ],
    ['encrypted', recipients.length === 0 ? 'no' : `to ${recipients.map(shorten).join(', ')}`],
    ['final', made.final ? 'yes: this database will never create an invoice again' : null],
  ]);
}

/** Post-quantum public keys are 1,959 characters long. */
function shorten(recipient: string): string {
  return recipient.length > 62 ? `${recipient.slice(0, 40)}…` : recipient;
}

export async function printNewBackupKey(terminal: Terminal, file: string): Promise<Result> {
  const data = await makeKey({ now }, cliActor(terminal), { path: resolve(file) });
  return {
    data,
    text: formatFields([
      ['secret key', data.file],
      ['public key', data.recipient],
    ]),
    next: `keep two copies of the file on other machines, where no one who creates backups can read them; then set QUITTANCE_BACKUP_RECIPIENT=${data.recipient}. Without this file, you cannot decrypt your backups`,
  };
}
