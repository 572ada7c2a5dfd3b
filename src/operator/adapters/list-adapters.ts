import { toIso, type UnixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { listAdapters as findAdapters } from '../../store/outbox/adapter-orders.ts';
import type { Actor } from '../actor.ts';
import { selectProject } from '../select-project.ts';
import { viewAdapter } from './view-adapter.ts';
import type { AdapterListView } from './views.ts';

/** The adapters of a project, also those that were disabled. Errors: `NOT_FOUND`, `INVALID_ARGUMENT` (which project). */
export async function listAdapters(
  { db, now }: { db: Sql; now(): UnixMs },
  actor: Actor,
  { projectId }: { projectId: string | undefined },
): Promise<AdapterListView> {
  const project = await selectProject(db, actor, projectId);
  const data = (await findAdapters(db, project.id)).map((adapter) => ({
    ...viewAdapter(adapter, now()),
    createdAt: toIso(adapter.createdAt),
    disabledAt: adapter.revokedAt && toIso(adapter.revokedAt),
    callbacksDisabledAt: adapter.disabledAt && toIso(adapter.disabledAt),
  }));
  return { data };
}
