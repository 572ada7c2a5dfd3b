import { randomUUID } from 'node:crypto';
import type { UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import type { Connection } from '../../store/db/database.ts';
import { closeLedger, findLedgerIdentity, refuseForeignLedger, takeLedger } from '../../store/db/ledger-identity.ts';
import type { Actor } from '../actor.ts';
import { checkRecipients } from './backup-encryption.ts';
import { type QuietDatabase, refuseRunning } from './refuse-running.ts';
import type { BackupView } from './views.ts';
import { writeBackup } from './write-backup.ts';

type Deps = QuietDatabase & { connection: Connection; now(): UnixMs; keyRing: KeyRing | null; release: string };

/**
 * Writes a backup to a new file. If it `isFinal` the ledger is closed first, so nothing can be created that the file lacks. `recipients`
 * are public keys of age. Errors: `CONFIG_INVALID`, `CONFLICT`, `INVALID_ARGUMENT`, and those of `refuseForeignLedger`.
 */
export async function createBackup(
  { connection, now, keyRing, release, ...database }: Deps,
  _actor: Actor,
  { path, recipients, isFinal }: { path: string; recipients: readonly string[]; isFinal: boolean },
): Promise<BackupView> {
  const at = now();
  // Before the ledger is closed, so that a wrong setting closes nothing.
  await checkRecipients(recipients);
  const masterKey = keyRing?.current() ?? null;
  if (isFinal) await close(database);
  const protection = { masterKey, recipients };
  const { header, rowCounts, bytes } = await writeBackup({ connection, path, release, now: at, protection });
  const { ledger, takenAt, masterKeyIds } = header;
  return {
    ...{ file: path, bytes, takenAt, final: ledger?.isFinal === true, ledgerId: ledger?.id ?? null, rowCounts },
    ...{ masterKeyIds, authenticatedBy: masterKey?.id ?? null, recipients: [...recipients] },
  };
}

async function close(database: QuietDatabase): Promise<void> {
  const { db } = database;
  await refuseRunning(database);
  await takeLedger(db, { id: randomUUID(), firstIndex: 0 }, { isAnew: false });
  const identity = await findLedgerIdentity(db);
  // A final backup that was cut off is made again; a copy must first be accepted.
  if (identity !== null) refuseForeignLedger({ ...identity, closedAt: null });
  await db.transaction(closeLedger);
}
