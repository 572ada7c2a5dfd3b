import type { Sql } from './database.ts';
import { findLedgerIdentity, newLedgerId, refuseForeignLedger, takeLedger } from './ledger-identity.ts';
import { recordProof } from './prove-key.ts';

/**
 * At the start of a service: marks a database that has no mark yet as the one of its ledger, and refuses a copy of one and a ledger
 * that moved away. `isSealed`: a new ledger begins with required seals. Returns the id of the ledger. Errors: `DATABASE_COPIED`, `LEDGER_CLOSED`, `CONFIG_INVALID`.
 */
export async function claimLedger(db: Sql, { isSealed }: { isSealed: boolean }): Promise<string> {
  await takeLedger(db, { id: await newLedgerId(db, isSealed), firstIndex: 0 }, { isAnew: false });
  const identity = await findLedgerIdentity(db);
  if (identity === null) throw new Error('the mark of the ledger is gone');
  refuseForeignLedger(identity);
  const sealer = await db.sealer();
  if (sealer !== null) await recordProof(db, sealer.keyId());
  return identity.id;
}
