import type { Text } from '../../domain/message.ts';
import type { KeySource } from '../../runtime/key-ring.ts';
import { countTotpByKey } from '../../store/access/people.ts';
import { findCurrentReceiptKey } from '../../store/access/receipt-keys.ts';
import { countTargetsByKey } from '../../store/outbox/notify-channels.ts';
import { countSecretsByKey } from '../../store/outbox/webhook-secrets.ts';
import type { Actor } from '../actor.ts';
import { findKeysOfRows } from '../ledger/reseal-rows.ts';
import { describeMissingKeys, type KeyDeps } from './describe-missing-keys.ts';
import type { MasterKeysView, MasterKeyView } from './views.ts';

/** The master keys by their ids, and how many secrets each has encrypted. `missing`: what to do about those that are not here. */
export async function showMasterKeys(
  deps: KeyDeps,
  _actor: Actor,
): Promise<{ view: MasterKeysView; missing: Text | null }> {
  const { db, now, keyRing } = deps;
  const ofWebhooks = await countSecretsByKey(db, now());
  const ofPeople = await countTotpByKey(db);
  const ofChannels = await countTargetsByKey(db);
  const ofReceipts = (await findCurrentReceiptKey(db))?.masterKeyId;
  const present = (keyRing?.keys() ?? []).map(({ id }) => id);
  const ofRows = await findKeysOfRows(db, present.slice(1));
  const toView = (keyId: string, use: MasterKeyView['use']): MasterKeyView => {
    const { total, signing: ofHooks } = ofWebhooks.get(keyId) ?? { total: 0, signing: 0 };
    const signing = ofHooks + (ofPeople.get(keyId) ?? 0) + (ofChannels.get(keyId) ?? 0);
    const sealsReceiptKey = keyId === ofReceipts;
    const sealsRows = use === 'opens' ? ofRows.has(keyId) : null;
    const canBeDropped = use === 'opens' && signing === 0 && !sealsReceiptKey && sealsRows === false;
    return { keyId, use, signing, ended: total - ofHooks, sealsReceiptKey, sealsRows, canBeDropped };
  };
  // Ended secrets sign nothing any more, so no key is kept for them.
  const needed = new Set([...ofWebhooks].flatMap(([keyId, { signing }]) => (signing > 0 ? [keyId] : [])));
  for (const keyId of [...ofPeople.keys(), ...ofChannels.keys()]) needed.add(keyId);
  if (ofReceipts !== undefined) needed.add(ofReceipts);
  const missing = [...needed].filter((keyId) => !present.includes(keyId));
  const keys = [
    ...present.map((keyId, index) => toView(keyId, index === 0 ? 'seals' : 'opens')),
    ...missing.map((keyId) => toView(keyId, 'missing')),
  ];
  const source = keyRing === null ? 'none' : nameSource(keyRing.source);
  return { view: { source, keys }, missing: await describeMissingKeys(deps) };
}

/** The variable, or the path of the file. */
export function nameSource(source: KeySource): string {
  return source.kind === 'file' ? source.path : 'QUITTANCE_MASTER_KEY';
}
