import { randomUUID } from 'node:crypto';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import type { Connection, Sql } from '../../store/db/database.ts';
import { closeLedger, findLedgerIdentity, refuseForeignLedger, takeLedger } from '../../store/db/ledger-identity.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { writeHead } from '../subjects/audit.ts';
import { checkRecipients } from './backup-encryption.ts';
import { type QuietDatabase, refuseRunning } from './refuse-running.ts';
import { isStandby } from './standby.ts';
import type { BackupView } from './views.ts';
import { writeBackup } from './write-backup.ts';

type Deps = QuietDatabase & { connection: Connection; now(): UnixMs; keyRing: KeyRing | null; release: string };

type Input = { path: string; recipients: readonly string[]; isFinal: boolean; signal?: AbortSignal };

/**
 * Writes a backup to a new file. If it `isFinal` the ledger is closed first, so nothing can be created that the file lacks. `recipients`
 * are public keys of age. `signal` ends it, and leaves no file. Errors: `CONFIG_INVALID`, `CONFLICT`, `INVALID_ARGUMENT`, and those of `refuseForeignLedger`.
 */
export async function createBackup(
  { connection, now, keyRing, release, ...database }: Deps,
  actor: Actor,
  { path, recipients, isFinal, signal }: Input,
): Promise<BackupView> {
  const at = now();
  // Before the ledger is closed, so that a wrong setting closes nothing.
  await checkRecipients(recipients);
  const masterKey = keyRing?.current() ?? null;
  if (isFinal) await close(database, (tx) => record(tx, actor, at, { file: path, isFinal }));
  const protection = { masterKey, recipients };
  const { header, rowCounts, bytes } = await writeBackup({ connection, path, release, now: at, protection, signal });
  const { ledger, takenAt, masterKeyIds } = header;
  // A replica takes no rows, and a backup of it is as good as any.
  if (!isFinal && !(await isStandby(database.db))) {
    await database.db.transaction((tx) => record(tx, actor, at, { file: path, isFinal, bytes }));
  }
  return {
    ...{ file: path, bytes, takenAt, final: ledger?.isFinal === true, ledgerId: ledger?.id ?? null, rowCounts },
    ...{ masterKeyIds, authenticatedBy: masterKey?.id ?? null, recipients: [...recipients] },
    auditHead: writeHead(header.auditHead ?? null),
  };
}

async function close(database: QuietDatabase, recordClosed: (tx: Sql) => Promise<void>): Promise<void> {
  const { db } = database;
  await refuseRunning(database);
  await takeLedger(db, { id: randomUUID(), firstIndex: 0 }, { isAnew: false });
  const identity = await findLedgerIdentity(db);
  // A final backup that was cut off is made again; a copy must first be accepted.
  if (identity !== null) refuseForeignLedger({ ...identity, closedAt: null });
  await db.transaction(async (tx) => {
    await closeLedger(tx);
    await recordClosed(tx);
  });
}

function record(tx: Sql, actor: Actor, at: UnixMs, detail: object): Promise<void> {
  return recordActions(tx, actor, at, [{ projectId: null, action: 'backup.created', subject: toIso(at), detail }]);
}
