import { say, type Text } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { countTotpByKey } from '../../store/access/people.ts';
import { findCurrentReceiptKey } from '../../store/access/receipt-keys.ts';
import type { Sql } from '../../store/db/database.ts';
import { countTargetsByKey } from '../../store/outbox/notify-channels.ts';
import { describeMissingSecrets } from '../../webhooks/refuse-missing-keys.ts';

/** `keyRing`: `null` where there is no master key. */
export type KeyDeps = { db: Sql; now(): UnixMs; keyRing: KeyRing | null };

/** Says what to do about secrets in use that these master keys, or none, cannot decrypt; `null` if there are no such secrets. */
export async function describeMissingKeys({ db, now, keyRing }: KeyDeps): Promise<Text | null> {
  const ofWebhooks = await describeMissingSecrets({ db, keyRing }, now());
  if (ofWebhooks !== null) return ofWebhooks;
  const key = await findCurrentReceiptKey(db);
  if (key === null || keyRing?.find(key.masterKeyId) !== undefined) return describeMissingTotp(db, keyRing);
  return say`the signing key of receipts is sealed under the master key ${key.masterKeyId}, which is not here. ${REMEDY} If that key is lost for ever, "${{ command: 'receipt rotate', input: { isKeyLost: true } }}" makes a new signing key`;
}

async function describeMissingTotp(db: Sql, keyRing: KeyRing | null): Promise<Text | null> {
  const missing = [...(await countTotpByKey(db)).keys()].find((keyId) => keyRing?.find(keyId) === undefined);
  if (missing === undefined) return describeMissingTargets(db, keyRing);
  return say`codes of people come of secrets that are sealed under the master key ${missing}, which is not here. ${REMEDY} If that key is lost for ever, "${{ command: 'user reset', args: ['<login>'] }}" lets each of them choose anew what they sign in with`;
}

async function describeMissingTargets(db: Sql, keyRing: KeyRing | null): Promise<Text | null> {
  const missing = [...(await countTargetsByKey(db)).keys()].find((keyId) => keyRing?.find(keyId) === undefined);
  if (missing === undefined) return null;
  return say`where notification channels lead is encrypted under the master key ${missing}, which is not here. ${REMEDY} If that key is lost for ever, remove each with "${{ command: 'notify remove', args: ['<channel>'] }}" and add it anew`;
}

const REMEDY =
  'Run this with the master keys that the service has: QUITTANCE_MASTER_KEY, or with an embedded database the file master-key.';
