import { randomUUID } from 'node:crypto';
import type { Logger } from '../runtime/log.ts';
import { raiseAlarm } from '../store/chain/alarms.ts';
import type { Database } from '../store/db/database.ts';
import { findLedgerIdentity, takeLedger } from '../store/db/ledger-identity.ts';
import { findProjectNetworks } from '../store/ledger/projects.ts';

/**
 * Records that the server is on a new timeline, because it was promoted or recovered to a point in time. Raises an alarm on each of the
 * ledger's networks. Both happen in the same transaction, so each new timeline is reported exactly once.
 */
export async function notePromotion({ db, log }: { db: Database; log: Logger }): Promise<void> {
  const before = await findLedgerIdentity(db);
  if (before === null || !before.isHere || !before.isTimelineNew) return;
  await db.transaction(async (tx) => {
    const identity = await findLedgerIdentity(tx);
    if (identity === null || !identity.isHere || !identity.isTimelineNew) return;
    await takeLedger(tx, identity, 'not-lossy');
    const subject = `timeline ${identity.timeline}`;
    for (const network of await findProjectNetworks(tx)) {
      const detail = `the database server was promoted, or recovered to an earlier time: it is now on ${subject}, and was previously on ${identity.formerTimeline}. After a failover to a synchronous standby, nothing is lost. After any other failover, and after a recovery, shops may already have invoices that are missing here: stop every process and run "quittance restore accept --retire-addresses", so that Quittance never uses an amount twice. See docs/guides/backup.md. If you are sure that nothing is lost, run "quittance chain acknowledge --network ${network} --alarm database-promoted"`;
      await raiseAlarm(tx, network, { id: randomUUID(), kind: 'database-promoted', subject, detail });
      log.error({ alarm: 'database-promoted', network, subject }, detail);
    }
  });
}
