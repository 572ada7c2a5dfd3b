import { AppError } from '../../domain/errors.ts';
import { toIso } from '../../domain/time.ts';
import { findLedgerIdentity, refuseForeignLedger, takeLedger } from '../../store/db/ledger-identity.ts';
import type { Actor } from '../actor.ts';
import { recordActions, recordedActor } from '../record-actions.ts';
import { type QuietDatabase, refuseRunning } from './refuse-running.ts';
import { type SecureDeps, secureCopy } from './secure-copy.ts';
import type { AcceptedRestoreView } from './views.ts';

/**
 * Goes on with a ledger that came here around our commands. `retires`: its addresses go out of use, also where it was not noticed to be a
 * copy, as after a recovery of the server to an earlier moment. Errors: `CONFLICT`, `LEDGER_CLOSED`.
 */
export async function acceptRestore(
  { now, random, write, ...database }: QuietDatabase & SecureDeps,
  actor: Actor,
  { retires }: { retires: boolean },
): Promise<AcceptedRestoreView> {
  const { db } = database;
  await refuseRunning(database);
  const identity = await findLedgerIdentity(db);
  if (identity === null) throw nothingToAccept('no service has used this database yet');
  refuseForeignLedger({ ...identity, isHere: true });
  if (!retires && identity.isHere) throw nothingToAccept('this database is no copy, as far as can be told');
  const at = now();
  const barredAddresses = await db.transaction(async (tx) => {
    await takeLedger(tx, identity, { isAnew: true });
    const origin = `a copy, accepted at ${toIso(at)}`;
    const barred = retires ? await secureCopy(tx, { now: () => at, random, write }, recordedActor(actor), origin) : 0;
    const detail = { retired: retires, barredAddresses: barred };
    await recordActions(tx, actor, at, [{ projectId: null, action: 'backup.accepted', subject: identity.id, detail }]);
    return barred;
  });
  return { ledgerId: identity.id, retired: retires, barredAddresses };
}

function nothingToAccept(reason: string): AppError {
  return new AppError('CONFLICT', `${reason}: there is nothing to accept; nothing was changed`);
}
