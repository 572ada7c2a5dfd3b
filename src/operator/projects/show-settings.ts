import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { answerOf } from '../../store/db/rows-of.ts';
import { count } from '../../store/db/statement.ts';
import { findLogo, type Logo } from '../../store/ledger/logos.ts';
import type { Actor } from '../actor.ts';
import { selectProject } from './select-project.ts';
import { showProject } from './show-project.ts';
import type { ShownProjectView } from './views.ts';

/** `open`: how many invoices wait or confirm; of the newest 10,000 where there are so many. */
type SettingsView = { view: ShownProjectView; logo: Logo | null; open: { count: number; isAll: boolean } };

/** The settings of a project with its logo, and how many invoices a change would leave as they are. Errors: `NOT_FOUND`. */
export async function showSettings(
  { db, now }: { db: Sql; now(): UnixMs },
  actor: Actor,
  { projectId }: { projectId: string },
): Promise<SettingsView> {
  const { id, logoId } = await selectProject(db, actor, projectId);
  const { view } = await showProject({ db, now }, actor, { projectId });
  const [logo, open] = [logoId === null ? null : await findLogo(db, logoId), await countOpen(db, id)];
  return { view, logo, open };
}

/** So many are counted in a few milliseconds, whatever the size. */
const MAX_LOOKED = 10_000;

const countOpen = answerOf(
  'settings-open-invoices',
  { count, looked: count },
  `select count(*) filter (where status in ('PENDING', 'CONFIRMING')) as count, count(*) as looked
   from (select status from invoices where project_id = $1 order by id desc limit ${MAX_LOOKED}) newest`,
  (projectId: string) => [projectId],
  ([row]) => ({ count: row?.count ?? 0, isAll: (row?.looked ?? 0) < MAX_LOOKED }),
);
