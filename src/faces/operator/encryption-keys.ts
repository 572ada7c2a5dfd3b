import { configInvalid } from '../../core/domain/errors.ts';
import { say, type Text } from '../../core/domain/message.ts';
import type { UnixMs } from '../../core/domain/time.ts';
import type { KeyRing } from '../../core/runtime/key-ring.ts';
import { openKeyRing, requireKeyRing } from '../../core/runtime/open-key-ring.ts';
import { countTotpByKey } from '../../core/store/access/people.ts';
import { findCurrentReceiptKey } from '../../core/store/access/receipt-keys.ts';
import type { Sql } from '../../core/store/db/database.ts';
import { countTargetsByKey } from '../../core/store/outbox/notify-channels.ts';
import { describeMissingSecrets } from '../../core/webhooks/watch-endpoints.ts';

/** `keyRing` is `null` if there is no master key. */
export type MissingDeps = { db: Sql; now(): UnixMs; keyRing: KeyRing | null };

/** Returns what to do about secrets in use that can't be decrypted with the configured master keys, or `null` if there are none. */
export async function describeMissingKeys({ db, now, keyRing }: MissingDeps): Promise<Text | null> {
  const ofWebhooks = await describeMissingSecrets({ db, keyRing }, now());
  if (ofWebhooks !== null) return ofWebhooks;
  const isMissing = (keyId: string) => keyRing?.find(keyId) === undefined;
  const describe = (what: string, keyId: string, otherwise: Text) =>
    say`${what} encrypted with the master key ${keyId}, which is not available here. ${REMEDY} If that key is lost permanently, ${otherwise}`;
  const receiptKey = await findCurrentReceiptKey(db);
  if (receiptKey !== null && isMissing(receiptKey.masterKeyId)) {
    const rotate = { command: 'receipt rotate', input: { isKeyLost: true } } as const;
    return describe(
      'the receipt signing key is',
      receiptKey.masterKeyId,
      say`create a new signing key with "${rotate}"`,
    );
  }
  const ofTotp = [...(await countTotpByKey(db)).keys()].find(isMissing);
  if (ofTotp !== undefined) {
    const reset = say`reset the sign-in of each of these users with "${{ command: 'user reset', args: ['<login>'] }}"`;
    return describe("some users' sign-in codes need secrets that are", ofTotp, reset);
  }
  const ofTargets = [...(await countTargetsByKey(db)).keys()].find(isMissing);
  if (ofTargets === undefined) return null;
  const remove = { command: 'notify remove', args: ['<channel>'] };
  const again = say`remove each of these channels with "${remove}" and add it again`;
  return describe('the targets of some notification channels are', ofTargets, again);
}

const REMEDY =
  "Run this with the service's master keys: set QUITTANCE_MASTER_KEY or, with an embedded database, provide the file master-key.";

/** `note` is called with a warning if other users can read the key file. */
export type KeyDeps = {
  db: Sql;
  now(): UnixMs;
  config: Parameters<typeof openKeyRing>[0];
  note(text: string): void;
};

/**
 * Opens the keys that encrypt new secrets. If the keys for other secrets are missing, throws instead of creating a key, because the service
 * has those keys and couldn't decrypt the new secret. `isKeyLost` is the operator's statement that those keys are permanently lost.
 */
export async function openEncryptionKeys(
  { db, now, config, note }: KeyDeps,
  { isKeyLost = false }: { isKeyLost?: boolean } = {},
): Promise<KeyRing> {
  const atHand = await openKeyRing(config, { mayCreate: false });
  const missing = await describeMissingKeys({ db, now, keyRing: atHand });
  const isLackingVariable = atHand === null && config.databaseUrl !== null;
  if (missing !== null && !isKeyLost && !isLackingVariable) throw configInvalid`${missing}; nothing was changed`;
  return requireKeyRing(config, note);
}
