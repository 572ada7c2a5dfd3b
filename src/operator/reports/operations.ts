import { Type } from '../../runtime/type.ts';
import { ProjectId } from '../input/given.ts';
import { operation } from '../operation.ts';
import { readReportPeriod } from './report-period.ts';
import { showReport } from './show-report.ts';
import { ReportView } from './views.ts';

/** Below the bound of every statement. */
const PATIENCE_MS = 15_000;

const Day = (description: string) => Type.Optional(Type.String({ description }));

export const showReportOperation = operation({
  action: 'showReport',
  summary: 'What to book of the days of a project: requested, received, what paid nothing, what left, and the balance',
  ...{ method: 'GET', path: '/reports', output: ReportView },
  input: Type.Object({
    projectId: ProjectId,
    from: Day('The first day (2026-11-01, UTC); else the first of the month of `to`'),
    to: Day('The last day, which belongs to it; else today. At most 366 days'),
  }),
  read: ({ projectId, ...given }, now) => ({
    ...{ projectId, period: readReportPeriod(given, now), patienceMs: PATIENCE_MS },
  }),
  run: showReport,
});
