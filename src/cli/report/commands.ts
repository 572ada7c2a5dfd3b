import type { Command } from '@commander-js/extra-typings';
import { PROJECT_OPTION } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addReportCommand(program: Command, terminal: Terminal): void {
  program
    .command('report')
    .description('show daily bookkeeping figures: requested, received, unmatched, outgoing, and balance')
    .option(...PROJECT_OPTION)
    .option('--from <day>', 'first day (2026-09-01, UTC) (default: the first of the month of --to)')
    .option('--to <day>', 'last day, included (default: today); at most 366 days')
    .option('--csv', 'print one line per day as CSV on standard output')
    .action(async ({ project: projectId, ...options }) => {
      const result = await (await import('./report.ts')).printReport(terminal, { projectId, ...options });
      if (result !== null) terminal.print(result);
    });
}
