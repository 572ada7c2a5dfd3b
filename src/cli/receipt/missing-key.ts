import type { KeyRing } from '../../runtime/key-ring.ts';
import type { CurrentReceiptKey } from '../../store/receipt-keys.ts';

/** What to do about a signing key of receipts that cannot be opened with these master keys, or with none; `null` if it can be. */
export function tellMissingReceiptKey(ring: KeyRing | null, key: CurrentReceiptKey | null): string | null {
  if (key === null || ring?.find(key.masterKeyId) !== undefined) return null;
  return (
    `the signing key of receipts is sealed under the master key ${key.masterKeyId}, which is not here. ` +
    'Run this with the master keys that the service has: QUITTANCE_MASTER_KEY, or with an embedded database the file master-key. If that key is lost for ever, "quittance receipt rotate --key-is-lost" makes a new signing key'
  );
}
