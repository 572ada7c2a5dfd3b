import { encodeId } from '../../domain/ids.ts';
import type { UnixMs } from '../../domain/time.ts';
import { settleChangeAlarm } from '../../payments/address-change-alarm.ts';
import type { Database } from '../../store/db/database.ts';
import { endAddressChange } from '../../store/ledger/address-changes.ts';
import { lockProject } from '../../store/ledger/projects.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { hasEnded, selectChange, viewChange } from './select-change.ts';
import type { AddressChangeView } from './views.ts';

/** Ends a change that waits: its addresses are not added. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`, `CONFLICT`. */
export async function withdrawAddressChange(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
  { changeId }: { changeId: string },
): Promise<AddressChangeView> {
  const { id, projectId, addresses } = await selectChange(db, actor, changeId);
  return db.transaction(async (tx) => {
    const project = await lockProject(tx, projectId);
    const at = now();
    const isEnded = await endAddressChange(tx, id, { state: 'withdrawn', at, by: actor.name });
    const change = await selectChange(tx, actor, changeId);
    if (!isEnded) throw hasEnded(change);
    await settleChangeAlarm(tx, project);
    const detail = { change: encodeId('chg', id), proposedBy: change.actedBy };
    const done = addresses.map((subject) => ({ projectId, action: 'address.withdrawn', subject, detail }) as const);
    await recordActions(tx, actor, at, done);
    return viewChange(change, actor);
  });
}
