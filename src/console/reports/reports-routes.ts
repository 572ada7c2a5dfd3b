import { AppError } from '../../domain/errors.ts';
import {
  dayOf,
  type ReportPeriod,
  type ReportView,
  readReportPeriod,
  showReport,
  writeReport,
} from '../../operator/subjects/reports.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Answer, Asked, Routes } from '../page/routes.ts';
import { describeProblem } from '../page/show-error.ts';
import { needProject } from '../page/visit.ts';
import { PERIOD, reportsPage } from './reports-page.ts';

/** A page is answered soon or not at all. */
const PAGE_PATIENCE_MS = 3000;
/** A file may take longer, below the bound of every statement. */
const FILE_PATIENCE_MS = 15_000;

/** What to book, as a page and as files. */
export function addReportRoutes({ get }: Routes, deps: ConsoleDeps): void {
  get('/reports', 'showReport', (asked) => show(deps, asked));
  get('/reports.csv', 'showReport', (asked) => sendFile(deps, asked, 'csv', writeReport));
  get('/reports.json', 'showReport', (asked) =>
    sendFile(deps, asked, 'json', (report) => `${JSON.stringify(report, null, 2)}\n`),
  );
}

async function show(deps: ConsoleDeps, { visit, request }: Asked): Promise<Answer> {
  const { project: asked, ...given } = readQuery(request, ['project', ...PERIOD]);
  const project = needProject(visit, asked);
  let period: ReportPeriod | null = null;
  try {
    period = readReportPeriod(given, deps.now());
    const input = { projectId: project.projectId, period, patienceMs: PAGE_PATIENCE_MS };
    const report = await showReport.run(deps, visit.actor, input);
    const isNow = period.to >= dayOf(deps.now());
    return reportsPage(visit, project, { given, period, shown: { report, isNow }, problem: null });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_ARGUMENT') throw error;
    return reportsPage(visit, project, { given, period, shown: null, problem: describeProblem(error) });
  }
}

async function sendFile(
  deps: ConsoleDeps,
  { visit, request, reply }: Asked,
  kind: 'csv' | 'json',
  write: (report: ReportView) => string,
): Promise<Answer> {
  const { project: asked, ...given } = readQuery(request, ['project', ...PERIOD]);
  const { projectId } = needProject(visit, asked);
  const period = readReportPeriod(given, deps.now());
  const report = await showReport.run(deps, visit.actor, { projectId, period, patienceMs: FILE_PATIENCE_MS });
  const { from, to } = period;
  reply.type(kind === 'csv' ? 'text/csv; charset=utf-8' : 'application/json; charset=utf-8').headers({
    'Content-Disposition': `attachment; filename="report-${projectId}-${from}-${to}.${kind}"`,
    'Cache-Control': 'no-store',
  });
  return { sent: reply.send(write(report)) };
}
