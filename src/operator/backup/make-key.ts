import { writeFile } from 'node:fs/promises';
import { AppError } from '../../domain/errors.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { createAgeKey } from './backup-encryption.ts';
import type { BackupKeyView } from './views.ts';

/** Makes a pair of keys for encrypted backups. The secret one goes to a new file, and nowhere else. Errors: `CONFLICT`, `INVALID_ARGUMENT`. */
export async function makeKey(
  { now }: { now(): UnixMs },
  _actor: Actor,
  { path }: { path: string },
): Promise<BackupKeyView> {
  const { file, recipient } = await createAgeKey(toIso(now()));
  await writeFile(path, file, { flag: 'wx', mode: 0o600, flush: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') {
      throw new AppError(
        'CONFLICT',
        `there is a file ${clip(path)} already, which may open backups: give another name`,
      );
    }
    const reason = `${clip(path)} cannot be written (${error.code}): give another place`;
    throw new AppError('INVALID_ARGUMENT', reason, { cause: error });
  });
  return { file: path, recipient };
}
