import { randomUUID } from 'node:crypto';
import type { Sql } from './database.ts';
import { findLedgerIdentity, refuseForeignLedger, takeLedger } from './ledger-identity.ts';

/**
 * At the start of a service: marks a database that has no mark yet as the one of its ledger, and refuses a copy of one and a ledger
 * that moved away. Errors: `DATABASE_COPIED`, `LEDGER_CLOSED`.
 */
export async function claimLedger(db: Sql): Promise<void> {
  await takeLedger(db, { id: randomUUID(), firstIndex: 0 }, { isAnew: false });
  const identity = await findLedgerIdentity(db);
  if (identity === null) throw new Error('the mark of the ledger is gone');
  refuseForeignLedger(identity);
}
