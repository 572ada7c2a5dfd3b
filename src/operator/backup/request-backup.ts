import { toIso, type UnixMs } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { findRequestedBackup } from './find-backup.ts';

/**
 * Asks the process that makes scheduled backups for one now: its directory is for one process at a time. The entry of the audit log is the
 * request, so it outlasts every restart, and the next backup that is made answers it.
 */
export async function requestBackup(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
): Promise<{ requestedAt: string }> {
  return db.transaction(async (tx) => {
    const waiting = await findRequestedBackup(tx);
    if (waiting !== null) return { requestedAt: toIso(waiting) };
    const requestedAt = toIso(now());
    await recordActions(tx, actor, now(), [
      { projectId: null, action: 'backup.requested', subject: requestedAt, detail: {} },
    ]);
    return { requestedAt };
  });
}
