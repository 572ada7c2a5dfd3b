import type { Command } from '@commander-js/extra-typings';
import type { Terminal } from '../terminal/terminal.ts';

/** An export can have any size and is written while it is read, so it isn't an operation. */
export function addAuditExport(group: Command, terminal: Terminal): void {
  group
    .command('export')
    .description('export the log for your auditors, newest first')
    .option('--action <action>', 'only actions of this type, such as key.created')
    .option('--subject <subject>', 'only actions on this subject: prj_…, key_…, whe_…, trf_…, T…')
    .option('--by <name>', 'only actions of this person')
    .option('--format <format>', 'csv or json (default: csv, or json with --json)')
    .option('--output <file>', 'output file, written completely or not at all (default: standard output)')
    .action(async (options) => {
      const result = await (await import('./export.ts')).printAuditExport(terminal, options);
      if (result !== null) terminal.print(result);
    });
}
