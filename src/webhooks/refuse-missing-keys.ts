import { AppError } from '../domain/errors.ts';
import { encodeId } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import type { KeyRing, KeySource } from '../runtime/key-ring.ts';
import type { Sql } from '../store/db/database.ts';
import { findSecretsUnderOtherKeys } from '../store/outbox/webhook-secrets.ts';

/**
 * Makes sure, before anything is signed, that this process has the keys of the secrets that sign. Throws an AppError `CONFIG_INVALID`
 * where keys are missing.
 */
export async function refuseMissingKeys({ db, keyRing }: { db: Sql; keyRing: KeyRing }, now: UnixMs): Promise<void> {
  const missing = await describeMissingSecrets({ db, keyRing }, now);
  if (missing !== null) throw new AppError('CONFIG_INVALID', `${missing}; nothing is started`);
}

/** Describes the signing secrets that these keys, or no keys, cannot open, and the fix; `null` if all can be opened. */
export async function describeMissingSecrets(
  { db, keyRing }: { db: Sql; keyRing: KeyRing | null },
  now: UnixMs,
): Promise<string | null> {
  const has = keyRing?.keys().map(({ id }) => id) ?? [];
  const rows = await findSecretsUnderOtherKeys(db, has, now);
  if (rows.length === 0) return null;
  const list = (all: string[]) => [...new Set(all)].slice(0, MAX_SHOWN).join(', ');
  const keys = list(rows.map((row) => row.masterKeyId));
  const endpoints = list(rows.map((row) => encodeId('whe', row.endpointId)));
  const source = keyRing === null ? 'no key is at hand' : `${describeSource(keyRing.source)} has ${has.join(', ')}`;
  return (
    `webhooks are signed with secrets that cannot be opened here (${rows.length}, of ${endpoints}): missing is the master key ${keys}, and ${source}. ` +
    `${REMEDIES[keyRing?.source.kind ?? 'none']} If a key is lost for ever, "quittance webhook rotate whe_… --key-is-lost" gives each of these endpoints a new secret`
  );
}

/** More than a few are the same mistake. */
const MAX_SHOWN = 5;

function describeSource(source: KeySource): string {
  return source.kind === 'file' ? `the file ${source.path}` : 'QUITTANCE_MASTER_KEY';
}

const REMEDIES = {
  file: 'Add the lines of the file master-key that was there before, from a backup.',
  setting: 'Add it to QUITTANCE_MASTER_KEY, behind a comma.',
  none: 'Set QUITTANCE_MASTER_KEY, or with an embedded database put the file master-key back, from a backup.',
} as const;
