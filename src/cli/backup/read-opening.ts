import { readFile } from 'node:fs/promises';
import { AppError } from '../../core/domain/errors.ts';
import { openKeyRing } from '../../core/runtime/open-key-ring.ts';
import { type Authenticity, describeMac } from '../../faces/operator/backup/backup-format.ts';
import { areIdentities, type Opening } from '../../faces/operator/backup/backup-read.ts';
import { clip } from '../../faces/operator/input/problems.ts';
import type { Config } from '../../server/config/config.ts';
import type { Terminal } from '../terminal/terminal.ts';

export type OpenOptions = { identity?: string; unauthenticated?: boolean };

/** Reads the keys that authenticate backups, and the keys that decrypt them. */
export async function readOpening(
  terminal: Terminal,
  config: Config,
  { identity }: OpenOptions,
): Promise<Required<Opening>> {
  const keyRing = await openKeyRing(config, { mayCreate: false, warn: terminal.note });
  return { keyRing, identities: identity === undefined ? [] : await readIdentities(identity) };
}

/** Describes which key authenticated an accepted backup, or why none did. */
export function describeAuthenticity(found: Authenticity): string {
  switch (found.kind) {
    case 'authentic':
      return `with the master key ${found.masterKeyId}`;
    case 'tampered':
      return 'NO: the backup was changed';
    default:
      return `NO: ${describeMac(found)}`;
  }
}

/** Reads the secret keys from an `age-keygen` file. Messages never show any part of the file. */
async function readIdentities(file: string): Promise<string[]> {
  const text = await readFile(file, 'latin1').catch((error: NodeJS.ErrnoException) => {
    throw new AppError('INVALID_ARGUMENT', `--identity ${clip(file)} cannot be read (${error.code})`, { cause: error });
  });
  const lines = text.split('\n').map((line) => line.trim());
  const keys = lines.filter((line) => line !== '' && !line.startsWith('#'));
  const isEncrypted = /^(age-encryption\.org|-----BEGIN AGE)/.test(text);
  if (!isEncrypted && keys.length > 0 && (await areIdentities(keys))) return keys;
  throw new AppError(
    'INVALID_ARGUMENT',
    `--identity ${clip(file)} ${
      isEncrypted
        ? 'is itself encrypted: decrypt it first with "age -d"'
        : 'must contain age secret keys, one per line (AGE-SECRET-KEY-1…), as written by "quittance backup keygen" or "age-keygen"'
    }`,
  );
}
