import { type ReceiptKeyDeps, storeNewReceiptKey } from '../../store/access/encrypt-receipt-key.ts';
import { findCurrentReceiptKey, retireReceiptKey } from '../../store/access/receipt-keys.ts';
import { stopEncryption } from '../../store/outbox/webhook-secrets.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import type { RotatedReceiptKeyView } from './views.ts';

/** Makes a new key that signs receipts. The former one signs no more; its public part stays published, its private part is erased. */
export async function rotateReceiptKey(deps: ReceiptKeyDeps, actor: Actor): Promise<RotatedReceiptKeyView> {
  return deps.db.transaction(async (tx) => {
    await stopEncryption(tx);
    await deps.keyRing.reload();
    const former = await findCurrentReceiptKey(tx);
    if (former !== null) await retireReceiptKey(tx, former.id, deps.now());
    const keyId = await storeNewReceiptKey(tx, deps);
    const detail = { formerKeyId: former?.id ?? null };
    await recordActions(tx, actor, deps.now(), [
      { projectId: null, action: 'receipt-key.rotated', subject: keyId, detail },
    ]);
    return { keyId, ...detail };
  });
}
