import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { resolveAlarms } from '../../store/chain/alarms.ts';
import { clearHalt, findHalt } from '../../store/chain/cursor.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import type { ResumedView } from './views.ts';

/**
 * Lets a watcher that stopped for good go on, if somebody who saw the reason says that it is settled. `haltedAt`: the moment of the halt
 * that was seen; `null`: whichever it is. `why` is for the record. Errors: `NOT_FOUND`, `CONFLICT` where it halted anew meanwhile.
 */
export async function resumeChain(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
  {
    network,
    isSettled,
    haltedAt = null,
    why = null,
  }: { network: Network; isSettled: boolean; haltedAt?: string | null; why?: string | null },
): Promise<ResumedView> {
  const halt = await findHalt(db, network);
  if (halt === null) throw new AppError('NOT_FOUND', `${network} is not halted: there is nothing to resume`);
  if (haltedAt !== null && haltedAt !== toIso(halt.at)) {
    throw new AppError('CONFLICT', `${network} halted anew at ${toIso(halt.at)}: look at its reason`);
  }
  if (isSettled) {
    // Together, so that who looks between sees no alarm without its cause; the watcher, which may not run, need not end it.
    await db.transaction(async (tx) => {
      await clearHalt(tx, network);
      await resolveAlarms(tx, network, 'halted');
      const detail = { reason: halt.reason, ...(why === null ? {} : { why }) };
      await recordActions(tx, actor, now(), [{ projectId: null, action: 'chain.resumed', subject: network, detail }]);
    });
  }
  return { network, resumed: isSettled, halt: { at: toIso(halt.at), reason: halt.reason } };
}
