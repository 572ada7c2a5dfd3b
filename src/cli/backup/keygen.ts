import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { systemClock } from '../../runtime/clock.ts';
import { createAgeKey } from '../../store/backup-encryption.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { formatFields, type Result } from '../terminal.ts';

/** Makes a pair of keys for encrypted backups. The secret one goes to a new file, and nowhere else. */
export async function createBackupKey(file: string): Promise<Result> {
  const path = resolve(file);
  const made = await createAgeKey(new Date(systemClock.now()).toISOString());
  await writeFile(path, made.file, { flag: 'wx', mode: 0o600, flush: true }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST'
      ? new CliError('CONFLICT', `there is a file ${clip(path)} already, which may open backups: give another name`)
      : new CliError('INVALID_ARGUMENT', `${clip(path)} cannot be written (${error.code}): give another place`, {
          cause: error,
        });
  });
  const { recipient } = made;
  return {
    data: { file: path, recipient },
    text: formatFields([
      ['secret key', path],
      ['public key', recipient],
    ]),
    next: `keep the file where nobody who makes backups can read it, in two places, and not here; then set QUITTANCE_BACKUP_RECIPIENT=${recipient}. Without the file no encrypted backup is ever read again`,
  };
}
