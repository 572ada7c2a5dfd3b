import type { Sql } from './database.ts';
import { findLedgerIdentity, newLedgerId, refuseForeignLedger, takeLedger } from './ledger-identity.ts';
import { recordProof } from './prove-key.ts';

/**
 * Runs when a service starts. Marks a new database as its ledger's home. Refuses a copy, and a ledger that was moved elsewhere. `isSealed`
 * makes a new ledger require seals from the beginning. Returns the ledger's id. Errors: `DATABASE_COPIED`, `LEDGER_CLOSED`,
 * `CONFIG_INVALID`.
 */
export async function claimLedger(db: Sql, { isSealed }: { isSealed: boolean }): Promise<string> {
  await takeLedger(db, { id: await newLedgerId(db, isSealed), firstIndex: 0 }, 'none');
  const identity = await findLedgerIdentity(db);
  if (identity === null) throw new Error("the ledger's identity is missing from the database");
  refuseForeignLedger(identity);
  const sealer = await db.sealer();
  if (sealer !== null) await recordProof(db, sealer.keyId());
  return identity.id;
}
