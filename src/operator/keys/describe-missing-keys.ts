import { say, type Text } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { findCurrentReceiptKey } from '../../store/access/receipt-keys.ts';
import type { Sql } from '../../store/db/database.ts';
import { describeMissingSecrets } from '../../webhooks/refuse-missing-keys.ts';

/** `keyRing`: `null` where there is no master key. */
export type KeyDeps = { db: Sql; now(): UnixMs; keyRing: KeyRing | null };

/** Says what to do about secrets in use that these master keys, or none, cannot decrypt; `null` if there are no such secrets. */
export async function describeMissingKeys({ db, now, keyRing }: KeyDeps): Promise<Text | null> {
  const ofWebhooks = await describeMissingSecrets({ db, keyRing }, now());
  if (ofWebhooks !== null) return ofWebhooks;
  const key = await findCurrentReceiptKey(db);
  if (key === null || keyRing?.find(key.masterKeyId) !== undefined) return null;
  return say`the signing key of receipts is sealed under the master key ${key.masterKeyId}, which is not here. Run this with the master keys that the service has: QUITTANCE_MASTER_KEY, or with an embedded database the file master-key. If that key is lost for ever, "${{ command: 'receipt rotate', input: { isKeyLost: true } }}" makes a new signing key`;
}
