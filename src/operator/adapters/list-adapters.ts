import { encodeId } from '../../domain/ids.ts';
import { toIso } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { listAdapters as findAdapters } from '../../store/outbox/adapter-orders.ts';
import type { Actor } from '../actor.ts';
import { selectProject } from '../projects/select-project.ts';
import { formatRate, pathOf } from './enable-adapter.ts';
import type { AdapterListView } from './views.ts';

/** The adapters of a project, also those that were disabled. Errors: `NOT_FOUND`, `INVALID_ARGUMENT` (which project). */
export async function listAdapters(
  { db }: { db: Sql },
  actor: Actor,
  { projectId }: { projectId: string | undefined },
): Promise<AdapterListView> {
  const project = await selectProject(db, actor, projectId);
  const data = (await findAdapters(db, project.id)).map(({ id, revokedAt, ...adapter }) => ({
    ...{ adapterId: encodeId('whe', id), projectId: encodeId('prj', project.id), network: adapter.network },
    ...{ kind: adapter.adapter, currency: adapter.currency, rate: formatRate(adapter.rateMicro), path: pathOf(id) },
    ...{ createdAt: toIso(adapter.createdAt), disabledAt: revokedAt && toIso(revokedAt) },
  }));
  return { data };
}
