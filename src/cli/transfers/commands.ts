import type { Command } from '@commander-js/extra-typings';
import { PROJECT_OPTION } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** An export can have any size and is written while it is read, so it isn't an operation. */
export function addTransferExport(group: Command, terminal: Terminal): void {
  group
    .command('export')
    .description('write the ledger of transfers for your books, whatever its size')
    .option(...PROJECT_OPTION)
    .option('--format <format>', 'csv or json; else csv, or json with --json')
    .option('--direction <direction>', 'in, out (what left your addresses), or both: in, then out', 'in')
    .option('--kind <kind>', 'of what came in: unmatched, duplicate, matched or all', 'all')
    .option('--from <date>', 'from this day or moment on (2026-09-01, UTC; a time needs its zone)')
    .option('--to <date>', 'to the end of this day, or until before this moment')
    .option('--output <file>', 'a file, written whole or not at all; else standard output')
    .action(async ({ project: projectId, ...options }) => {
      const { printExport } = await import('./export.ts');
      const result = await printExport(terminal, { projectId, ...options });
      if (result !== null) terminal.print(result);
    });
}
