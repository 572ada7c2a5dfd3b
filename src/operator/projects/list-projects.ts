import type { Sql } from '../../store/db/database.ts';
import { countAddressesByProject } from '../../store/ledger/addresses.ts';
import { listProjects as list } from '../../store/ledger/projects.ts';
import type { Actor } from '../actor.ts';
import { viewProject } from './view-project.ts';
import type { ProjectListView } from './views.ts';

/** The projects that an actor may see, the oldest first, at most 1,000: those in use, the archived ones, or (`null`) both. */
export async function listProjects(
  { db }: { db: Sql },
  actor: Actor,
  { isArchived }: { isArchived: boolean | null },
): Promise<ProjectListView> {
  const projects = await list(db, actor.projects, isArchived);
  const ids = projects.map(({ id }) => id);
  const counts = await countAddressesByProject(db, ids);
  const noAddress = { tail: 0, 'tail-4': 0, 'tail-3': 0, exact: 0 };
  return {
    data: projects.map((project) => {
      return { ...viewProject(project), activeAddresses: counts.get(project.id)?.active ?? noAddress };
    }),
  };
}
