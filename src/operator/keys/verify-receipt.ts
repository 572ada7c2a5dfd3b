import { checkReceipt } from '../../domain/receipt/receipt-signature.ts';
import type { VerifiedReceiptView } from './views.ts';

/** `source`: its name for people. `ids`: of the keys that the issuer has published. */
type Input = { bytes: Uint8Array; source: string; known: { ids: readonly string[]; source: string } | null };

/** Says whether a receipt is as it was signed, and by a known key, with no network and no database. */
export function verifyReceipt({ bytes, source, known }: Input): VerifiedReceiptView {
  const check = checkReceipt(bytes);
  if (check.kind !== 'intact') return { valid: false, problem: check.kind, message: `${source}: ${check.reason}` };
  const { receipt, keyId } = check;
  if (known === null || known.ids.includes(keyId))
    return { valid: true, keyId, isIssuerKnown: known !== null, receipt };
  return {
    valid: false,
    problem: 'other-key',
    message: `${source} is signed with the key ${keyId}, which is not among the ${known.ids.length} of ${known.source}: whoever signed it is not the one whose keys these are, or the file of keys is older than the key`,
  };
}
