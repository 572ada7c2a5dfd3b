import { encodeId } from '../../domain/ids.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { listAddressChanges as list } from '../../store/ledger/address-changes.ts';
import type { Actor } from '../actor.ts';
import { selectProject } from '../select-project.ts';
import { findRefusal } from './find-refusal.ts';
import { selectChange, viewChange } from './select-change.ts';
import type { AddressChangeListView, AddressChangeView } from './views.ts';

/** The changes of a project that wait, and the newest 20 that ended; the newest first. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`. */
export async function listAddressChanges(
  { db }: { db: Sql },
  actor: Actor,
  input: { projectId: string | undefined },
): Promise<AddressChangeListView> {
  const { id } = await selectProject(db, actor, input.projectId);
  return { projectId: encodeId('prj', id), data: (await list(db, id)).map((change) => viewChange(change, actor)) };
}

/** One change, and why this actor may not confirm it: `null` where it may. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`. */
export async function showAddressChange(
  deps: { db: Sql; now(): UnixMs },
  actor: Actor,
  { changeId }: { changeId: string },
): Promise<{ view: AddressChangeView; refusal: string | null }> {
  const change = await selectChange(deps.db, actor, changeId);
  return { view: viewChange(change, actor), refusal: await findRefusal(deps, actor, change) };
}
