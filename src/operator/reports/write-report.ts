import { csvLine } from '../export/csv.ts';
import type { ReportDay, ReportView } from './views.ts';

/** The columns of a report, in their order. Scripts and spreadsheets rely on it: new ones come last. */
const COLUMNS: readonly (readonly [name: string, cell: (day: ReportDay, report: ReportView) => string | number])[] = [
  ['day', ({ day }) => day],
  ['projectId', (_, { projectId }) => projectId],
  ['network', (_, { network }) => network],
  ['paid', ({ paid }) => paid],
  ['requested', ({ requested }) => requested],
  ['received', ({ received }) => received],
  ['tails', ({ tails }) => tails],
  ['lateCount', ({ late }) => late.count],
  ['late', ({ late }) => late.amount],
  ['duplicateCount', ({ duplicate }) => duplicate.count],
  ['duplicate', ({ duplicate }) => duplicate.amount],
  ['unmatchedCount', ({ unmatched }) => unmatched.count],
  ['unmatched', ({ unmatched }) => unmatched.amount],
  ['outCount', ({ out }) => out.count],
  ['out', ({ out }) => out.amount],
];

/** A report as CSV, a line for each day. Sums of it are left to who reads it: in the file they would be added once more. */
export function writeReport(report: ReportView): string {
  const lines = report.days.map((day) => csvLine(COLUMNS.map(([, cell]) => cell(day, report))));
  return csvLine(COLUMNS.map(([name]) => name)) + lines.join('');
}
