import type { Command } from '@commander-js/extra-typings';
import { PROJECT_OPTION } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** An export can have any size and is written while it is read, so it isn't an operation. */
export function addTransferExport(group: Command, terminal: Terminal): void {
  group
    .command('export')
    .description('export all transfers for your bookkeeping')
    .option(...PROJECT_OPTION)
    .option('--format <format>', 'csv or json (default: csv, or json with --json)')
    .option('--direction <direction>', 'in, out (sent from your addresses), or both: in, then out', 'in')
    .option('--kind <kind>', 'kind of incoming transfers: unmatched, duplicate, matched or all', 'all')
    .option('--from <date>', 'from this day or moment on (2026-09-01, UTC; a time needs its zone)')
    .option('--to <date>', 'end of the period: a day (included) or a time (excluded)')
    .option('--output <file>', 'output file, written completely or not at all (default: standard output)')
    .action(async ({ project: projectId, ...options }) => {
      const { printExport } = await import('./export.ts');
      const result = await printExport(terminal, { projectId, ...options });
      if (result !== null) terminal.print(result);
    });
}
