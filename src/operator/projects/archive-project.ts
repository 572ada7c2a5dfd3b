import { encodeId } from '../../domain/ids.ts';
import type { UnixMs } from '../../domain/time.ts';
import { resolveAlarms } from '../../store/chain/alarms.ts';
import type { Database } from '../../store/db/database.ts';
import { archiveProject as archive, lockProject } from '../../store/ledger/projects.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { selectProject } from './select-project.ts';
import { viewProject } from './view-project.ts';
import type { ArchivedProjectView } from './views.ts';

type Deps = { db: Database; now(): UnixMs };
type Wanted = { projectId: string };

/**
 * Archives a project: its keys make no new invoices and still read, its open invoices go on, and lists leave it out. An order that is under
 * way may still get its invoice. Errors: `NOT_FOUND`.
 */
export function archiveProject(deps: Deps, actor: Actor, { projectId }: Wanted): Promise<ArchivedProjectView> {
  return change(deps, actor, { projectId, action: 'project.archived' });
}

/** Puts an archived project back. Errors: `NOT_FOUND`. */
export function unarchiveProject(deps: Deps, actor: Actor, { projectId }: Wanted): Promise<ArchivedProjectView> {
  return change(deps, actor, { projectId, action: 'project.unarchived' });
}

async function change(
  { db, now }: Deps,
  actor: Actor,
  { projectId, action }: Wanted & { action: 'project.archived' | 'project.unarchived' },
): Promise<ArchivedProjectView> {
  const { id } = await selectProject(db, actor, projectId);
  return db.transaction(async (tx) => {
    const before = await lockProject(tx, id);
    const isArchived = action === 'project.archived';
    if (isArchived === (before.archivedAt !== null)) return { ...viewProject(before), isChanged: false };
    const archivedAt = isArchived ? now() : null;
    await archive(tx, before, archivedAt);
    const subject = encodeId('prj', id);
    // Nobody measures it any more.
    if (isArchived) await resolveAlarms(tx, before.network, 'capacity-low', subject);
    await recordActions(tx, actor, now(), [{ projectId: id, action, subject, detail: { name: before.name } }]);
    return { ...viewProject({ ...before, archivedAt }), isChanged: true };
  });
}
