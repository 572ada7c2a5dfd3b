import { checkReceipt, type Receipt } from '../../../core/domain/receipt/receipt.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { Type } from '../../../core/runtime/type.ts';
import {
  findCurrentReceiptKey,
  type ReceiptKeyDeps,
  storeNewReceiptKey,
} from '../../../core/store/access/receipt-keys.ts';
import { commandOf } from '../../../core/store/db/rows-of.ts';
import { stopEncryption } from '../../../core/store/outbox/webhook-secrets.ts';
import type { Actor } from '../actor.ts';
import { fieldsText } from '../command-words.ts';
import { openEncryptionKeys } from '../encryption-keys.ts';
import { maybe, type Shown, schemaOf, text } from '../fields.ts';
import { operation } from '../operation.ts';
import { flag } from '../option.ts';
import { recordAction } from '../record-actions.ts';

/** Retires a key: its private part is erased, its public part stays. */
const retireReceiptKey = commandOf(
  'receipt-key-retire',
  'update receipt_keys set retired_at = $2, master_key_id = null, sealed = null where id = $1',
  (id: string, now: UnixMs) => [id, new Date(now)],
);

const rotated = { keyId: text, formerKeyId: maybe(text) };
type RotatedReceiptKeyView = Shown<typeof rotated>;

export const rotateReceiptKeyOperation = operation({
  action: 'rotateReceiptKey',
  summary: 'Create a new signing key for receipts',
  route: 'POST /receipt-keys/rotate',
  command: 'receipt rotate',
  does: 'sign new receipts with a new key; receipts already issued stay valid',
  input: Type.Object({
    isKeyLost: flag('confirm that the master key that encrypted the previous signing key is permanently lost'),
  }),
  output: schemaOf(rotated),
  run: async (deps, actor, { isKeyLost = false }) => {
    const keyRing = await openEncryptionKeys(deps, { isKeyLost });
    return rotateReceiptKey({ ...deps, keyRing }, actor);
  },
  print: (view) => ({
    text: fieldsText(view, [
      ['signing key', 'keyId'],
      ['previous key', 'formerKeyId'],
    ]),
    next: 'services sign their next receipt with the new key; anyone who keeps a copy of the published keys must fetch them again',
  }),
});

/**
 * Creates a new key for signing receipts. The previous key no longer signs. Its public part stays published, and its private part is
 * erased.
 */
export async function rotateReceiptKey(deps: ReceiptKeyDeps, actor: Actor): Promise<RotatedReceiptKeyView> {
  return deps.db.transaction(async (tx) => {
    await stopEncryption(tx);
    await deps.keyRing.reload();
    const former = await findCurrentReceiptKey(tx);
    if (former !== null) await retireReceiptKey(tx, former.id, deps.now());
    const keyId = await storeNewReceiptKey(tx, deps);
    const detail = { formerKeyId: former?.id ?? null };
    await recordAction(tx, actor, deps.now(), 'receipt-key.rotated', { subject: keyId, detail });
    return { keyId, ...detail };
  });
}

type VerifiedReceiptView =
  | { valid: true; keyId: string; isIssuerKnown: boolean; receipt: Receipt }
  | { valid: false; problem: 'changed' | 'unreadable' | 'other-key'; message: string };

/** `source` is the file's name for people. `known.ids` are the keys that the issuer has published. */
type Input = { bytes: Uint8Array; source: string; known: { ids: readonly string[]; source: string } | null };

/** Checks that a receipt is unchanged and signed with a known key, without network or database. */
export function verifyReceipt({ bytes, source, known }: Input): VerifiedReceiptView {
  const check = checkReceipt(bytes);
  if (check.kind !== 'intact') return { valid: false, problem: check.kind, message: `${source}: ${check.reason}` };
  const { receipt, keyId } = check;
  if (known === null || known.ids.includes(keyId))
    return { valid: true, keyId, isIssuerKnown: known !== null, receipt };
  return {
    valid: false,
    problem: 'other-key',
    message: `${source} is signed with the key ${keyId}, which is not among the ${known.ids.length} keys in ${known.source}. Either someone else signed the receipt, or the key file is older than the key`,
  };
}

export const operations = [rotateReceiptKeyOperation];
