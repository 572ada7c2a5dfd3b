import type { ReceiptKey } from '../../../core/domain/receipt/receipt.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import type { KeyRing } from '../../../core/runtime/key-ring.ts';
import type { Logger } from '../../../core/runtime/log.ts';
import {
  type CurrentReceiptKey,
  ensureReceiptKey,
  findCurrentReceiptKey,
  openReceiptKey,
} from '../../../core/store/access/receipt-keys.ts';
import type { Database } from '../../../core/store/db/database.ts';

type Deps = {
  db: Database;
  /** `null` if this process has no master key. */
  keyRing: KeyRing | null;
  log: Logger;
  now(): UnixMs;
  random(size: number): Uint8Array;
};

export type ReceiptSigner = ReturnType<typeof createReceiptSigner>;

/** Nothing else depends on a signature: without a key, payments are still confirmed and shown. */
export function createReceiptSigner({ db, keyRing, log, now, random }: Deps) {
  let open: ReceiptKey | null = null;
  let reported: string | null = null;

  const openStored = async (ring: KeyRing, stored: CurrentReceiptKey): Promise<ReceiptKey | null> => {
    const opened = await openReceiptKey(ring, stored);
    if (opened.kind === 'ok') return opened.key;
    if (reported !== stored.id)
      log.error({ receiptKey: stored.id, masterKeyId: stored.masterKeyId }, REMEDIES[opened.kind]);
    reported = stored.id;
    return null;
  };

  /** Returns the current signing key, whichever process rotated it. Returns `null` if there's none or it can't be decrypted here. */
  const currentKey = async (): Promise<ReceiptKey | null> => {
    if (keyRing === null) return null;
    const stored = await findCurrentReceiptKey(db);
    if (stored === null) return null;
    if (open?.id !== stored.id) open = await openStored(keyRing, stored);
    return open;
  };

  return {
    currentKey,
    /** Creates the first key if allowed. If receipts can't be signed here, logs the reason. */
    prepare: async (): Promise<void> => {
      if (keyRing === null) {
        log.warn(
          'QUITTANCE_MASTER_KEY is not set in this process, so it does not sign receipts. Set the same value as in the other processes that use this database',
        );
        return;
      }
      try {
        if ((await ensureReceiptKey({ db, keyRing, now, random })) === 'refused') log.warn(REFUSED);
        await currentKey();
      } catch (error) {
        log.error({ err: error }, 'could not prepare the signing key for receipts: restart this process to try again');
      }
    },
  };
}

const REFUSED =
  'receipts are not signed: webhook secrets are encrypted with a master key that this process does not have, so it creates no signing key. Set the same QUITTANCE_MASTER_KEY as in the other processes, and restart this process';

const LOST =
  'If the key is permanently lost, create a new signing key with "quittance receipt rotate --key-is-lost"; issued receipts stay valid';
const REMEDIES = {
  'unknown-key': `receipts are not signed: their signing key is encrypted with a master key that is not configured here. Add it to QUITTANCE_MASTER_KEY, or to the file master-key, from a backup. ${LOST}`,
  damaged: `receipts are not signed: their stored signing key is damaged. Restore the signing key from a backup. ${LOST}`,
} as const;
