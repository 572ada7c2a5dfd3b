import type { Command } from '@commander-js/extra-typings';
import { PROJECT_OPTION } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addReportCommand(program: Command, terminal: Terminal): void {
  program
    .command('report')
    .description('show what to book of each day: requested, received, what paid nothing, what left, and the balance')
    .option(...PROJECT_OPTION)
    .option('--from <day>', 'the first day (2026-09-01, UTC); else the first of the month of --to')
    .option('--to <day>', 'the last day, which belongs to it; else today; 366 days at most')
    .option('--csv', 'a line for each day as CSV, on standard output')
    .action(async ({ project: projectId, ...options }) => {
      const result = await (await import('./report.ts')).printReport(terminal, { projectId, ...options });
      if (result !== null) terminal.print(result);
    });
}
