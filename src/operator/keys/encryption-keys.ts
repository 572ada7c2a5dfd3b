import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { openKeyRing, requireKeyRing } from '../../runtime/open-key-ring.ts';
import type { Sql } from '../../store/db/database.ts';
import { describeMissingKeys } from './describe-missing-keys.ts';

/** `note` hears of a key file that others could read. */
export type KeyDeps = {
  db: Sql;
  now(): UnixMs;
  config: Parameters<typeof openKeyRing>[0];
  note(text: string): void;
};

/**
 * The keys with which a new secret is sealed. Refuses keys, and does not make one, where those are missing that seal other
 * secrets: the service, which has them, could not open the new secret. `isKeyLost`: the operator says that they are lost for ever.
 */
export async function openEncryptionKeys(
  { db, now, config, note }: KeyDeps,
  { isKeyLost = false }: { isKeyLost?: boolean } = {},
): Promise<KeyRing> {
  const atHand = await openKeyRing(config, { mayCreate: false });
  const missing = await describeMissingKeys({ db, now, keyRing: atHand });
  const isLackingVariable = atHand === null && config.databaseUrl !== null;
  if (missing !== null && !isKeyLost && !isLackingVariable) {
    throw new AppError('CONFIG_INVALID', say`${missing}; nothing was changed`);
  }
  return requireKeyRing(config, note);
}
