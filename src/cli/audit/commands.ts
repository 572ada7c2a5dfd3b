import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const ACTION_OPTION = ['--action <action>', 'only these, as key.created'] as const;
const SUBJECT_OPTION = ['--subject <subject>', 'only what was done to this: prj_…, key_…, whe_…, trf_…, T…'] as const;
const BY_OPTION = ['--by <name>', 'only what this person did'] as const;

export function addAuditCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('audit').description('who did what here, which nobody can take back');
  group
    .command('list')
    .description('list what people did, the newest first')
    .option(...ACTION_OPTION)
    .option(...SUBJECT_OPTION)
    .option(...BY_OPTION)
    .option('--limit <count>', 'how many at most, 1 to 1000', '50')
    .option('--before <number>', 'the page after this entry: older ones')
    .action(async (options) => print((await import('./audit.ts')).printAudit(terminal, options)));
  group
    .command('verify')
    .description('find out whether the log was changed; exits 1 if it was')
    .option(
      '--head <number:hash>',
      'what an earlier run showed, kept elsewhere: shows whether the log was rewritten since',
    )
    .action(async (options) => print((await import('./audit.ts')).printVerifiedAudit(terminal, options)));
  group
    .command('export')
    .description('write the log for your auditors, the newest first')
    .option(...ACTION_OPTION)
    .option(...SUBJECT_OPTION)
    .option(...BY_OPTION)
    .option('--format <format>', 'csv or json; else csv, or json with --json')
    .option('--output <file>', 'a file, written whole or not at all; else standard output')
    .action(async (options) => {
      const result = await (await import('./audit.ts')).printAuditExport(terminal, options);
      if (result !== null) terminal.print(result);
    });
}
