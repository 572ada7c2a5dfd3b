import { randomUUID } from 'node:crypto';
import type { Logger } from '../../runtime/log.ts';
import type { Sql } from './database.ts';
import { findLedgerIdentity, refuseForeignLedger, takeLedger } from './ledger-identity.ts';

/**
 * At the start of a service: marks a database that has no mark yet as the one of its ledger, and refuses a copy of one and a ledger
 * that moved away. Errors: `DATABASE_COPIED`, `LEDGER_CLOSED`.
 */
export async function claimLedger(db: Sql, log: Logger): Promise<void> {
  await takeLedger(db, { id: randomUUID(), firstIndex: 0 }, { isAnew: false });
  const identity = await findLedgerIdentity(db);
  if (identity === null) throw new Error('the mark of the ledger is gone');
  refuseForeignLedger(identity);
  if (!identity.isTimelineNew) return;
  log.warn(
    'the database server was promoted, or recovered to an earlier moment, since the last start. After a recovery to an earlier moment stop the service and run "quittance restore accept --retire-addresses": what was created after that moment is not known here',
  );
  await takeLedger(db, identity, { isAnew: true });
}
