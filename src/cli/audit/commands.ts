import type { Command } from '@commander-js/extra-typings';
import type { Terminal } from '../terminal/terminal.ts';

/** An export can have any size and is written while it is read, so it isn't an operation. */
export function addAuditExport(group: Command, terminal: Terminal): void {
  group
    .command('export')
    .description('write the log for your auditors, the newest first')
    .option('--action <action>', 'only these, as key.created')
    .option('--subject <subject>', 'only what was done to this: prj_…, key_…, whe_…, trf_…, T…')
    .option('--by <name>', 'only what this person did')
    .option('--format <format>', 'csv or json; else csv, or json with --json')
    .option('--output <file>', 'a file, written whole or not at all; else standard output')
    .action(async (options) => {
      const result = await (await import('./export.ts')).printAuditExport(terminal, options);
      if (result !== null) terminal.print(result);
    });
}
