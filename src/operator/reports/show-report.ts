import { say } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { FieldError } from '../input/field-error.ts';
import { isGivenUp, limitTime } from '../limit-time.ts';
import { selectProject } from '../projects/select-project.ts';
import { makeReport } from './make-report.ts';
import { readSums } from './recorded-sums.ts';
import type { ReportPeriod } from './report-period.ts';
import type { ReportView } from './views.ts';

/** What to book of the days of a project. No statement takes longer than `patienceMs`. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`. */
export async function showReport(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
  { projectId, period, patienceMs }: { projectId: string | undefined; period: ReportPeriod; patienceMs: number },
): Promise<ReportView> {
  const project = await selectProject(db, actor, projectId);
  const read = await db
    .snapshot(async (tx) => {
      await limitTime(tx, patienceMs);
      return readSums(db, tx, project.id, period, now());
    })
    .catch((error: unknown) => {
      if (!isGivenUp(error)) throw error;
      throw new FieldError(
        'from',
        say`${period.from}, up to ${{ field: 'to' }} ${period.to}: the sums took longer than ${patienceMs / 1000} s and were given up: choose a shorter period`,
      );
    });
  return makeReport(project, period, read);
}
